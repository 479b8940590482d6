"""The quantities of study W: measures of every run, ratios hard/soft, predictions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from math import log, sqrt

import numpy as np
import torch

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedsgm.curves import after_feasible, band, jitter, second_half, violations
from papers.fedsgm.multiverse import share_of
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
)
from papers.kit.rules import State, between, of
from papers.kit.study import Params, Traces

LATE = 0.2  # "late" is the last 20 rounds of 100
SETTLED = 0.5  # the second half of the long runs
SLACK = 0.05  # of the fall from the start, or of a level: what counts as no difference
START = log(2)  # f and g at w = 0
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
        ratios(measured, tolerance, usual),
        predictions(traces, p),
        null_data(traces, usual),
    ]
    if p["many"]:
        tables.append(fewer_violations(traces, tolerance, usual))
        tables.append(prices(traces, usual))
    return Quantities.of(tables, usual)


def measures(tolerance: float, trace: Trace) -> dict[str, Number]:
    """Violations, late values and jitter of a run, and the drift of its clients if it has that."""
    numbers = {
        "violations": mean(violations(trace, tolerance), "rounds"),
        "after": mean(after_feasible(trace, tolerance), "rounds"),
        "f": mean(trace.late("f", LATE)),
        "g": mean(trace.late("g", LATE)),
        "jitter": mean(jitter(trace), "1e-3"),
        "band_f": mean(band(trace, "f"), "1e-3"),
        "band_g": mean(band(trace, "g"), "1e-3"),
    }
    if "drift" in trace.info:
        numbers["drift"] = mean(1e3 * trace.info["drift"].mean(1), "1e-3")
        numbers["late_drift"] = mean(1e3 * late_drift(trace), "1e-3")
    return numbers


def late_drift(trace: Trace) -> Array:
    """The mean drift of the clients over the second half of the rounds, by seed."""
    return np.asarray(second_half(trace.info["drift"]).mean(1))


def null_data(traces: Traces, usual: Defaults) -> Iterator[Row]:
    """Measures of hard switching on two disjoint halves of the seeds: between them is no effect."""
    many = run_of(traces, usual, switch="hard", splits="fresh")
    drifting = run_of(traces, usual, switch="hard", splits="drift", fraction=1.0)
    by_seed = {
        "band_f": band(many, "f"),
        "band_g": band(many, "g"),
        "drift": 1e3 * drifting.info["drift"].mean(1),
        "late_drift": 1e3 * late_drift(drifting),
    }
    for measure, values in by_seed.items():
        half = len(values) // 2
        yield row(measure, mean(values[:half], "1e-3"), half=0)
        yield row(measure, mean(values[half : 2 * half], "1e-3"), half=1)


def ratios(traces: Traces, tolerance: float, usual: Defaults) -> Iterator[Row]:
    """Violations of hard divided by those of soft switching, and late f of soft by that of hard.

    The price is by how much late f is higher, as a share of hard switching's fall from the start. A
    row has the labels of the soft run but for `switch`.
    """
    for soft in traces.values():
        labels = {**labels_of(soft)}
        if labels.pop("switch") == "hard":
            continue
        shared = {label: value for label, value in labels.items() if label != "beta"}
        hard = run_of(traces, usual, **shared, switch="hard")
        counts = violations(hard, tolerance), violations(soft, tolerance)
        yield row("ratio", ratio(*counts), **labels)
        late = soft.late("f", LATE), hard.late("f", LATE)
        yield row("loss_ratio", ratio(*late), **labels)
        yield row("price", mean((late[0] - late[1]) / (START - late[1])), **labels)


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


def fewer_violations(traces: Traces, tolerance: float, usual: Defaults) -> Iterator[Row]:
    """At each step size, the share of the open settings with about four times fewer violations.

    Null data are hard switching on two disjoint halves of the seeds.
    """
    nearly_four = between("ratio", *ABOUT)
    for lr in OPEN_LRS:
        states: list[State] = []
        null: list[State] = []
        starts = [start for start in open_starts() if start["lr"] == lr]
        for start, beta in product(starts, OPEN_BETAS):
            hard = violations(run_of(traces, usual, **start, switch="hard"), tolerance)
            soft = violations(run_of(traces, usual, **start, switch="soft", beta=beta), tolerance)
            half = len(hard) // 2
            states.append(nearly_four.holds({"ratio": ratio(hard, soft)}))
            null.append(nearly_four.holds({"ratio": ratio(hard[:half], hard[half : 2 * half])}))
        yield row("about_four", share_of(states), lr=lr)
        yield row("about_four_null", share_of(null), lr=lr)


def late_objective(trace: Trace) -> Array:
    """The mean of f over the last fifth of the rounds, by seed."""
    return trace.late("f", LATE)


def mean_objective(trace: Trace) -> Array:
    """The mean of f over all rounds, by seed."""
    return np.asarray(trace.of_rounds("f").mean(1))


def prices(traces: Traces, usual: Defaults) -> Iterator[Row]:
    """The share of the open settings in which soft switching's objective is hardly larger.

    Hardly is 5 % of hard switching's fall from the start, or 5 % of its level. The control is soft
    switching at the smallest step size, whatever that of hard switching.
    """
    for name, objective in OBJECTIVES.items():
        states: dict[str, list[State]] = {}
        for start, beta in product(open_starts(), OPEN_BETAS):
            hard = objective(run_of(traces, usual, **start, switch="hard"))
            for suffix, lr in (("", start["lr"]), ("_control", min(OPEN_LRS))):
                labels = {**start, "lr": lr, "switch": "soft", "beta": beta}
                rise = objective(run_of(traces, usual, **labels)) - hard
                over = {"fall": rise - SLACK * (START - hard), "level": rise - SLACK * hard}
                for margin, excess in over.items():
                    state = NO_EXCESS.holds({"excess": mean(excess)})
                    states.setdefault(f"{name}_within_{margin}{suffix}", []).append(state)
        for measure, of_settings in states.items():
            yield row(measure, share_of(of_settings))


#: How an objective is read off a run, by what its measures are called.
OBJECTIVES = {"late": late_objective, "mean": mean_objective}
NO_EXCESS = of("excess") <= 0
