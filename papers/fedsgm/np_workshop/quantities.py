"""The quantities of study W: measures of every run, ratios hard/soft, predictions."""

from collections.abc import Iterator
from functools import partial
from itertools import product
from math import sqrt

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedsgm.curves import (
    START,
    after_feasible,
    band,
    halves,
    jitter,
    second_half,
    violations,
)
from papers.fedsgm.multiverse import shares
from papers.fedsgm.np_workshop.runs import OPEN_BETAS, OPEN_LRS, defaults, open_starts, problem
from papers.fedsgm.skewness import final_models, multiplier
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
ABOUT = (4 / sqrt(2), 4 * sqrt(2))  # nearer to 4 than to 2 or 8


def derive(traces: Traces, p: Params) -> Quantities:
    """The table of quantities: violations, late values and jitter, ratios hard/soft, and P1, P2."""
    tolerance = p["tolerance"]
    usual = defaults(p)
    measured = {name: trace for name, trace in traces.items() if is_measured(trace)}
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


def is_measured(trace: Trace) -> bool:
    """Whether a run is measured by itself: the others serve predictions and open settings."""
    labels = labels_of(trace)
    return labels["splits"] != "open" and not labels["settled"]


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
        numbers["drift"] = mean(drift(trace), "1e-3")
        numbers["late_drift"] = mean(late_drift(trace), "1e-3")
    return numbers


def drift(trace: Trace) -> Array:
    """The mean drift of the clients over the rounds, by seed, in thousandths."""
    return np.asarray(1e3 * trace.info["drift"].mean(1))


def late_drift(trace: Trace) -> Array:
    """The mean drift of the clients over the second half of the rounds, by seed, in thousandths."""
    late = second_half(trace.info["drift"])
    return np.asarray(1e3 * late.mean(1))


def null_data(traces: Traces, usual: Defaults) -> Iterator[Row]:
    """Measures of hard switching on two disjoint halves of the seeds: between them is no effect."""
    fresh = run_of(traces, usual, switch="hard", splits="fresh")
    drifting = run_of(
        traces,
        usual,
        switch="hard",
        splits="drift",
        fraction=1.0,
    )
    by_seed = {
        "band_f": band(fresh, "f"),
        "band_g": band(fresh, "g"),
        "drift": drift(drifting),
        "late_drift": late_drift(drifting),
    }
    for measure, values in by_seed.items():
        for number, half in enumerate(halves(values)):
            yield row(measure, mean(half, "1e-3"), half=number)


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
        violations_of_hard = violations(hard, tolerance)
        violations_of_soft = violations(soft, tolerance)
        yield row("ratio", ratio(violations_of_hard, violations_of_soft), **labels)
        f_of_hard = late_objective(hard)
        f_of_soft = late_objective(soft)
        yield row("loss_ratio", ratio(f_of_soft, f_of_hard), **labels)
        fall = START - f_of_hard
        price = (f_of_soft - f_of_hard) / fall
        yield row("price", mean(price), **labels)


def predictions(traces: Traces, p: Params) -> Iterator[Row]:
    """P1 (hard's share of constraint rounds) and P2 (soft's level), predicted and measured.

    The multiplier is the ratio of the gradients' norms at the final model, which nothing in the
    runs was fitted to.
    """
    tolerance = p["tolerance"]
    settled = partial(
        run_of,
        traces,
        defaults(p),
        fraction=1.0,
        settled=True,
    )

    hard = settled(switch="hard")
    share = second_half(hard.info["sigma"]).mean(1)
    factor = multipliers(hard, p["clients"])
    yield from compared("share", share, factor / (1 + factor))

    soft = settled(switch="soft")
    level = soft.late("g", SETTLED)
    factor = multipliers(soft, p["clients"])
    below_tolerance = 1 / (p["beta"] * (1 + factor))
    yield from compared("level", level, tolerance - below_tolerance)
    gap = np.abs(level - tolerance)
    yield row("gap_of_tolerance", mean(gap), prediction="level")
    count = after_feasible(soft, tolerance)
    yield row("after", mean(count, "rounds"), **labels_of(soft))


def compared(name: str, measured: Array, predicted: Array) -> Iterator[Row]:
    """A prediction, what was measured, and the mean distance of both."""
    yield row("predicted", mean(predicted), prediction=name)
    yield row("measured", mean(measured), prediction=name)
    yield row("gap", mean(np.abs(measured - predicted)), prediction=name)


def multipliers(trace: Trace, clients: int) -> Array:
    """The multiplier of the constraint at the final model of every seed."""
    models = final_models(trace, partial(problem, clients=clients))
    return np.array([multiplier(task, w) for task, w in models])


def fewer_violations(traces: Traces, tolerance: float, usual: Defaults) -> Iterator[Row]:
    """At each step size, the share of the open settings with about four times fewer violations.

    Null data are hard switching on two disjoint halves of the seeds.
    """
    for lr in OPEN_LRS:
        settings = []
        starts = [start for start in open_starts() if start["lr"] == lr]
        for start, beta in product(starts, OPEN_BETAS):
            hard = run_of(traces, usual, **start, switch="hard")
            soft = run_of(traces, usual, **start, switch="soft", beta=beta)
            count = violations(hard, tolerance)
            fewer = about_four(count, violations(soft, tolerance))
            settings.append((fewer, about_four(*halves(count))))
        yield from shares(settings, "about_four", "about_four_null", lr=lr)


def about_four(numerator: Array, denominator: Array) -> State:
    """Whether the ratio of two means is nearer to 4 than to 2 or 8; None if the seeds leave it."""
    rule = between("ratio", *ABOUT)
    return rule.holds({"ratio": ratio(numerator, denominator)})


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
    for (name, objective), (margin, size) in product(OBJECTIVES.items(), MARGINS.items()):
        settings = []
        for start, beta in product(open_starts(), OPEN_BETAS):
            soft = partial(run_of, traces, usual, switch="soft", beta=beta)
            hard = objective(run_of(traces, usual, **start, switch="hard"))
            slack = SLACK * size(hard)
            rise = objective(soft(**start)) - hard
            slowest_rise = objective(soft(**{**start, "lr": min(OPEN_LRS)})) - hard
            settings.append((at_most(rise, slack), at_most(slowest_rise, slack)))
        measure = f"{name}_within_{margin}"
        yield from shares(settings, measure, f"{measure}_control")


def fall(objective: Array) -> Array:
    """The fall of an objective from its start."""
    return START - objective


def level(objective: Array) -> Array:
    return objective


def at_most(values: Array, bound: Array) -> State:
    """Whether the mean of some values is at most that of a bound; None if the seeds leave it."""
    rule = of("excess") <= 0
    return rule.holds({"excess": mean(values - bound)})


#: How an objective is read off a run, by what its measures are called.
OBJECTIVES = {"late": late_objective, "mean": mean_objective}
#: What a rise of the objective is held against, of hard switching's.
MARGINS = {"fall": fall, "level": level}
