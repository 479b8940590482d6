"""C14 in all settings that the full paper leaves open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

from fedlib.compress import TopK
from fedlib.core import Trace
from fedlib.core.trace import Array
from fedlib.steps import Soft
from papers.fedsgm import multiverse
from papers.fedsgm.curves import band, oscillation
from papers.kit.numbers import Number, mean, ratio
from papers.kit.rules import of
from papers.kit.store import Spec
from papers.kit.study import Traces

SEEDS = tuple(range(10, 20))  # splits that no other run has
#: Step size, clients a round, and K/d both ways.
STARTS = tuple(product((0.1, 0.3, 1.0), (5, 10, 20), (0.1, 1.0)))
MEASURES: dict[str, Callable[[Trace], Array]] = {
    "oscillation of f": lambda t: oscillation(t, "f"),
    "bands of f": lambda t: band(t, "f"),
    "oscillation of f over late f": lambda t: oscillation(t, "f") / t.late("f"),
    "bands of f over late f": lambda t: band(t, "f") / t.late("f"),
    "oscillation of g": oscillation,
}
SETTINGS = [
    f"step {lr:g}, {m} of 20 clients, K/d {k:g}, by {words}"
    for (lr, m, k), words in product(STARTS, MEASURES)
]


def run(beta: float, lr: float, participants: int, fraction: float) -> str:
    return f"many_soft{beta:g}_lr{lr:g}_m{participants}_K{fraction:g}"


RUNS = tuple(run(b, *start) for start in STARTS for b in (20, 40))


def specs(base: Spec) -> dict[str, Spec]:
    """Both sharpnesses from every start."""
    base = replace(base, seeds=SEEDS, keep=("f", "g"))
    found = {}
    for (lr, m, k), b in product(STARTS, (20.0, 40.0)):
        method: Any = replace(
            base.algorithm,  # type: ignore[type-var]
            lr=lr,
            participants=m,
            uplink=TopK(k),
            downlink=TopK(k),
            switch=Soft(b),
        )
        found[run(b, lr, m, k)] = replace(base, algorithm=method)
    return found


def derive(traces: Traces) -> dict[str, Number]:
    """In which settings beta = 20 is less stable than beta = 40."""
    cells: list[multiverse.Cell] = []
    control: list[multiverse.Cell] = []
    for start, measure in product(STARTS, MEASURES.values()):
        low, high = (measure(traces[run(b, *start)]) for b in (20, 40))
        for found, one in ((cells, low), (control, high)):
            pair = {"one": mean(one), "other": mean(high)}
            found.append(multiverse.cell(of("one") > of("other"), **pair, shown=ratio(one, high)))
    return multiverse.shares("C14", cells, control)


C14 = multiverse.rule(
    "C14",
    SETTINGS,
    "beta = 20 divided by beta = 40",
    1e3,
    "beta = 40 against itself",
    "A difference of beta = 20 and 40 counts by each of five measures of stability.",
)
