"""C22 in all settings that the paper leaves open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pandas as pd

from fedlib.algorithms.penalty import PenaltyFedAvg
from fedlib.core import Trace
from fedlib.steps import SGD, Adam, Hard, Soft
from papers.fedsgm.curves import tuned
from papers.fedsgm.multiverse import rule, shares
from papers.kit.numbers import mean
from papers.kit.rules import State, all_of, of
from papers.kit.store import Spec
from papers.kit.study import Traces

# ---- C22, fair classification ---------------------------------------------------------------

#: What the printed step size may mean -> the local step and its size.
MEANT = {
    "step size 0.1": (SGD(), 0.1),
    "step size 0.3": (SGD(), 0.3),
    "Adam with step size 0.0001": (Adam(), 1e-4),
}
SHARP = (40.0, 80.0, 120.0)  # from the theory's value to three times it, as the authors say
RHOS = (0.1, 1.0, 10.0)
ROWS = {"training rows": ("f", "g"), "test rows": ("test_loss", "test_gap")}


def fair_run(method: str, step: int) -> str:
    return f"many_{method}_step{step}"


FAIR = tuple(
    fair_run(m, i)
    for i in range(len(MEANT))
    for m in ("hard", *(f"soft{b:g}" for b in SHARP), *(f"penalty{r:g}" for r in RHOS))
)


def fair_specs(hard: Spec) -> dict[str, Spec]:
    """Hard switching, three sharpnesses and three penalties with every step."""
    start: Any = hard.algorithm
    names = ("local_steps", "participants", "batch_size", "tolerance")
    found = {}
    for i, (local, lr) in enumerate(MEANT.values()):
        shared: dict[str, Any] = {"local": local, "lr": lr, **{k: getattr(start, k) for k in names}}
        methods = {"hard": replace(start, **shared, switch=Hard())}
        methods |= {f"soft{b:g}": replace(start, **shared, switch=Soft(b)) for b in SHARP}
        methods |= {f"penalty{r:g}": PenaltyFedAvg(**shared, rho=r) for r in RHOS}
        for name, method in methods.items():
            found[fair_run(name, i)] = replace(hard, algorithm=method, seeds=(5, 6, 7))
    return found


def fair(traces: Traces, tolerance: float) -> pd.DataFrame:
    """In which settings soft switching has both the smaller gap and no larger loss."""

    def against(own: Trace, hard: Trace, best: Trace, f: str, g: str) -> State:
        runs = {"one": own, "hard": hard, "penalty": best}
        numbers = {f"{n}_{k}": mean(t.late(k)) for n, t in runs.items() for k in (f, g)}
        better = [of(f"one_{g}") < of(f"{x}_{g}") for x in ("hard", "penalty")]
        better += [of(f"one_{f}") <= of(f"{x}_{f}") for x in ("hard", "penalty")]
        return all_of(*better).holds(numbers)

    def compared() -> Iterator[tuple[State, State]]:
        for i, b, kinds in product(range(len(MEANT)), SHARP, ROWS.values()):
            hard, soft = (traces[fair_run(m, i)] for m in ("hard", f"soft{b:g}"))
            best = traces[tuned(traces, [fair_run(f"penalty{r:g}", i) for r in RHOS], tolerance)]
            yield against(soft, hard, best, *kinds), against(hard, hard, best, *kinds)

    return shares("C22", compared())


RULE = rule(
    "C22",
    "hard switching instead of soft switching",
    "The rivals are hard switching and, at each step size, the best of three penalties. The claim "
    "holds in a setting if soft switching has a smaller gap and no larger loss than either. The "
    "settings with Adam count, although hard switching predicts no better there than the majority "
    "class on two of three seeds.",
)
