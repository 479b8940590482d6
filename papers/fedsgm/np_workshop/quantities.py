"""The quantities of study W: measures of every run, ratios hard/soft, predictions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from math import sqrt

import numpy as np
import torch

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedsgm.curves import after_feasible, band, jitter, violations
from papers.fedsgm.multiverse import shares
from papers.fedsgm.np_workshop.runs import OPEN_BETAS, OPEN_LRS, defaults, open_starts, problem
from papers.fedsgm.skewness import multiplier
from papers.kit.numbers import Number, mean, ratio
from papers.kit.quantities import (
    Defaults,
    Quantities,
    Row,
    labels_of,
    of_runs,
    row,
    run_of,
    table,
)
from papers.kit.rules import State, between, of
from papers.kit.study import Params, Traces

LATE = 0.2  # "late" is the last 20 rounds of 100
SETTLED = 0.5  # the second half of the long runs
ABOUT = (4 / sqrt(2), 4 * sqrt(2))  # nearer to 4 than to 2 or 8


def derive(traces: Traces, p: Params) -> Quantities:
    """The table of quantities: violations, late values and jitter, ratios hard/soft, and P1, P2."""
    tolerance = float(p["tolerance"])
    usual = defaults(p)
    measured = {
        name: trace
        for name, trace in traces.items()
        if labels_of(trace)["splits"] != "open" and not labels_of(trace)["settled"]
    }
    tables = [
        of_runs(measured, partial(measures, tolerance)),
        table(ratios(measured, tolerance, usual)),
        table(predictions(traces, p)),
    ]
    if p["many"]:
        tables.append(shares("C3", fewer_violations(traces, tolerance, usual)))
        tables.append(shares("C4", no_price(traces, usual)))
    return Quantities.of(tables, usual)


def measures(tolerance: float, trace: Trace) -> dict[str, Number]:
    """Violations, late values and jitter of a run."""
    return {
        "violations": mean(violations(trace, tolerance), "rounds"),
        "after": mean(after_feasible(trace, tolerance), "rounds"),
        "f": mean(trace.late("f", LATE)),
        "g": mean(trace.late("g", LATE)),
        "jitter": mean(jitter(trace), "1e-3"),
        "band_f": mean(band(trace, "f"), "1e-3"),
        "band_g": mean(band(trace, "g"), "1e-3"),
    }


def ratios(traces: Traces, tolerance: float, usual: Defaults) -> Iterator[Row]:
    """Violations of hard divided by those of soft switching, and late f of soft by that of hard.

    A row has the labels of the soft run but for `switch`.
    """
    for soft in traces.values():
        labels = {**labels_of(soft)}
        if labels.pop("switch") == "hard":
            continue
        shared = {label: value for label, value in labels.items() if label != "beta"}
        hard = run_of(traces, usual, **shared, switch="hard")
        counts = violations(hard, tolerance), violations(soft, tolerance)
        yield row("ratio", ratio(*counts), **labels)
        yield row("loss_ratio", ratio(soft.late("f", LATE), hard.late("f", LATE)), **labels)


def predictions(traces: Traces, p: Params) -> Iterator[Row]:
    """P1 (hard's share of constraint rounds) and P2 (soft's level), predicted and measured.

    The multiplier is the ratio of the gradients' norms at the final model, which nothing in the
    runs was fitted to.
    """
    settled = {"fraction": 1.0, "settled": True}
    hard = run_of(traces, defaults(p), switch="hard", **settled)
    soft = run_of(traces, defaults(p), switch="soft", **settled)
    second_half = hard.info["sigma"].shape[1] // 2
    share = hard.info["sigma"][:, second_half:].mean(1)
    factor = multipliers(hard, p["clients"])
    yield from compared("share", share, factor / (1 + factor))
    level = soft.late("g", SETTLED)
    factor = multipliers(soft, p["clients"])
    yield from compared("level", level, p["tolerance"] - 1 / (p["beta"] * (1 + factor)))
    apart = np.abs(level - p["tolerance"])
    yield row("gap_of_tolerance", mean(apart), prediction="level")
    count = mean(after_feasible(soft, p["tolerance"]), "rounds")
    yield row("after", count, **labels_of(soft))


def compared(name: str, measured: Array, predicted: Array) -> Iterator[Row]:
    """A prediction, what was measured, and the mean distance of both."""
    yield row("predicted", mean(predicted), prediction=name)
    yield row("measured", mean(measured), prediction=name)
    yield row("gap", mean(np.abs(measured - predicted)), prediction=name)


def multipliers(trace: Trace, clients: int) -> Array:
    """The multiplier of the constraint at the final model of every seed."""
    models = torch.as_tensor(trace.state, dtype=torch.float32)
    pairs = zip(trace.seeds, models, strict=True)
    return np.array([multiplier(problem(seed, clients=clients), w) for seed, w in pairs])


def excess(trace: Trace, tolerance: float) -> Array:
    """By how much the constraint exceeds its level, summed over the rounds, by seed."""
    return np.asarray(np.maximum(trace.of_rounds("g") - tolerance, 0).sum(1))


def fewer_violations(
    traces: Traces, tolerance: float, usual: Defaults
) -> Iterator[tuple[State, State]]:
    """In every open setting, whether soft switching violates about four times less.

    The control is hard switching against itself.
    """
    nearly_four = between("ratio", *ABOUT)
    for start, beta, count in product(open_starts(), OPEN_BETAS, (violations, excess)):
        hard = count(run_of(traces, usual, **start, switch="hard"), tolerance)
        soft = count(run_of(traces, usual, **start, switch="soft", beta=beta), tolerance)
        against_itself = nearly_four.holds({"ratio": ratio(hard, hard)})
        yield nearly_four.holds({"ratio": ratio(hard, soft)}), against_itself


def late_objective(trace: Trace) -> Array:
    """The mean of f over the last fifth of the rounds, by seed."""
    return trace.late("f", LATE)


def mean_objective(trace: Trace) -> Array:
    """The mean of f over all rounds, by seed."""
    return np.asarray(trace.of_rounds("f").mean(1))


def no_price(traces: Traces, usual: Defaults) -> Iterator[tuple[State, State]]:
    """In every open setting, whether the objective of soft switching is at most 5 % above hard's.

    The control is soft switching at the smallest step size, whatever that of hard switching.
    """
    no_larger = of("soft") <= 1.05 * of("hard")
    for start, beta, objective in product(
        open_starts(), OPEN_BETAS, (late_objective, mean_objective)
    ):
        hard = mean(objective(run_of(traces, usual, **start, switch="hard")))
        states = []
        for lr in (start["lr"], min(OPEN_LRS)):
            labels = {**start, "lr": lr, "switch": "soft", "beta": beta}
            soft = mean(objective(run_of(traces, usual, **labels)))
            states.append(no_larger.holds({"soft": soft, "hard": hard}))
        yield states[0], states[1]
