"""The quantities of the study of Federated Frank-Wolfe's rates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedfw import theory_fw
from papers.fedfw.rates.runs import DEFAULTS, Labels, norms
from papers.fedfw.theory_fw import Constants
from papers.kit import quantities as kit
from papers.kit.numbers import Number, exact, mean, ratio
from papers.kit.quantities import Quantities, Row, labels_of, row, run_of, sweep
from papers.kit.study import Params, Traces

NORMS = ("l1", "l2")
DIAMETER = 20.0  # of both sets, of radius 10
CLIENTS = 10
ENTRIES = 65  # of a picture of 8 x 8 with its 1 for the bias, each between -1 and 1
#: What no model in the set can exceed: the cross-entropy of ten classes, whose scores differ by 10
#: times the largest entry (l1) or sqrt(2) times 10 times the length (l2) of a row; and the gap of a
#: loss with a slope of at most 1/4 in the score.
MOST = {
    "convex": {"l1": log(10) + 10, "l2": log(10) + 10 * sqrt(2 * ENTRIES)},
    "nonconvex": {"l1": DIAMETER / 4, "l2": DIAMETER / 4 * sqrt(ENTRIES)},
}
WINDOW = 0.05  # slopes are fitted from this share of the rounds on
EARLY = 20  # rounds that are Figure 4's first ones

Bound = Callable[[Constants, int], float]
Measure = Callable[[Trace], Array]
#: Part of a theorem's runs -> the part of its problem's constants, and its bound.
THEOREMS: dict[str, tuple[str, Bound]] = {
    "convex": ("convex", theory_fw.convex_excess),
    "sto": ("convex", theory_fw.stochastic_excess),
    "nonconvex": ("nonconvex", theory_fw.nonconvex_gap),
}


def last(metric: str) -> Measure:
    return lambda t: np.asarray(t.metrics[metric][:, -1])


def over(metric: str) -> Measure:
    """Per seed the mean over the evaluated rounds, without the start that all runs have."""
    return lambda t: np.asarray(t.metrics[metric][:, 1:].mean(1))


def early(trace: Trace) -> Array:
    """On the counterexample, the distance from the minimizer after a tenth of the rounds."""
    at = np.searchsorted(trace.rounds, 0.1 * trace.rounds[-1])
    return np.asarray(np.abs(1 - trace.metrics["x"][:, at]))


def late(trace: Trace) -> Array:
    return np.abs(1 - last("x")(trace))


def power(rounds: Array | NDArray[np.int64], values: Array) -> Array:
    """Per seed the exponent k of values that go like t^k, t = round + 1, over the late rounds.

    Least squares of the logarithms, from `WINDOW` of the rounds on, each round weighed by 1 / t so
    that every part of the logarithmic axis counts alike.
    """
    late = rounds >= max(1, WINDOW * rounds[-1])
    t = np.asarray(rounds[late], float) + 1
    x = np.log(t)
    weight = np.sqrt(1 / t)
    y = np.log(np.maximum(values[:, late], 1e-15))
    return np.array([np.polyfit(x, row, 1, w=weight)[0] for row in y])


def least_gaps(trace: Trace) -> Array:
    return np.asarray(trace.of_rounds("fw_gap").min(1))


def early_gap(trace: Trace) -> Array:
    """Per seed the mean of (11) at the server's model over the first rounds."""
    early = (trace.rounds > 0) & (trace.rounds <= EARLY)
    return np.asarray(trace.metrics["gap"][:, early].mean(1))


def early_surrogate(trace: Trace) -> Array:
    """Per seed the mean of sum_i <g_i, x_i - s_i> over the first rounds."""
    return np.asarray(trace.info["gap"][:, 1 : EARLY + 1].mean(1))


def measures(trace: Trace) -> dict[str, Number]:
    """The measures of a run alone, by its part."""
    labels = labels_of(trace)
    if labels.get("method") == "reference":
        return {name: mean(curve[:, 0]) for name, curve in trace.metrics.items()}
    values: dict[str, Array] = {}
    match labels["part"]:
        case "pair":
            x = last("x")(trace)
            values = {
                "x": x,
                "early": early(trace),
                "late": late(trace),
                "nearer": early(trace) - late(trace),
            }
            farthest = {"farthest": exact(np.abs(x).max())}
            return farthest | {name: mean(value) for name, value in values.items()}
        case "convex" | "sto":
            slope = power(trace.rounds, trace.metrics["excess"])
            values = {"excess": last("excess")(trace), "slope": slope}
        case "nonconvex":
            values = {"least_gap": least_gaps(trace)}
        case "nuclear":
            values = {"late_gap": trace.late("fw_gap")}
        case "share":
            values = {"mean_loss": over("loss")(trace)}
        case "penalty":
            values = {"early_gap": early_gap(trace), "early_surrogate": early_surrogate(trace)}
    return {name: mean(value) for name, value in values.items()}


def derive(traces: Traces, p: Params) -> Quantities:
    """Where runs end, how fast they get there, and how far below the bounds they are.

    A row whose runs are missing is missing too.
    """
    rows = [*beside_bounds(traces, p), *trends(traces, p), *errors(traces, p)]
    return Quantities.of([kit.of_runs(traces, measures), rows], DEFAULTS)


def bounds(bound: Bound, reference: Trace, lam: float, rounds: Any, batch: int = 1) -> Array:
    """A theorem's bound for the model after each number of rounds, `[S, T]`; t counts from 1."""
    rows = []
    for j in range(len(reference.seeds)):
        known = {k: float(v[j, 0]) for k, v in reference.metrics.items()}
        c = Constants(
            L=known["smooth"],
            D=DIAMETER,
            N=CLIENTS,
            lam0=lam,
            dual=known["dual"],
            slope=known["slope"],
            spread=known.get("spread", 0.0),
            sigma=float(np.sqrt(known["noise"] / batch)),
            first=known["first"],
        )
        rows.append([bound(c, int(t) + 1) for t in rounds])
    return np.array(rows)


def beside_bounds(traces: Traces, p: Params) -> Iterator[Row]:
    """The largest excess by its bound, (38) or (68), and the smallest gap by (62).

    `by_most` is the bound at its lowest, by the largest value that a model in the set can have. Of
    a theorem: of its runs the lowest such bound, and the largest share.
    """
    for part, (task, bound) in THEOREMS.items():
        lowest = []
        largest = []
        for trace in traces.values():
            labels = labels_of(trace)
            if labels["part"] != part or labels.get("method") == "reference":
                continue
            norm = str(labels["norm"])
            known = run_of(traces, DEFAULTS, part=task, norm=norm, method="reference")
            rounds = trace.rounds[1:]
            if part == "nonconvex":
                rounds = trace.rounds[-1:] - 1
                values = least_gaps(trace)[:, None]
            else:
                values = trace.metrics["excess"][:, 1:]
            above = bounds(bound, known, float(labels["L"]), rounds, p["batch"])
            lowest.append(above.min(1) / MOST[task][norm])
            largest.append((values / above).max(1))
            yield row("by_most", mean(lowest[-1]), **labels)
            yield row("ratio", mean(largest[-1]), **labels)
        yield row("by_most", mean(np.min(lowest, axis=0)), part=part)
        yield row("ratio", mean(np.max(largest, axis=0)), part=part)


def trends(traces: Traces, p: Params) -> Iterator[Row]:
    """Per seed the slope over a whole sweep, by least squares.

    Of losses by p (`trend`), and between logarithms of gaps by lambda_0 (`trend_gap`) and of
    Theorem 2's smallest gap by T (`slope`).
    """
    by_share: dict[str, Measure] = {"trend": over("loss"), "trend_last": last("loss")}
    by_penalty: dict[str, Measure] = {"trend_gap": early_gap, "trend_surrogate": early_surrogate}
    shares: list[Labels] = [{"model": "mclr", "L": float(lam)} for lam in p["share_penalties"]]
    shares += [{"method": "fedfw"}, {"method": "plus"}]
    shares += [{"method": "fedfw", "rows": "theirs"}, {"method": "plus", "rows": "theirs"}]
    for labels in shares:
        yield from slopes(traces, by_share, "p", {"part": "share", **labels}, straight)
    for norm in norms(p):
        for model in ("mclr", "net"):
            labels = {"part": "penalty", "model": model, "norm": norm}
            yield from slopes(traces, by_penalty, "L", labels, logarithm)
        for lam in map(float, p["nonconvex_penalties"]):
            labels = {"part": "nonconvex", "norm": norm, "L": lam}
            yield from slopes(traces, {"slope": least_gaps}, "T", labels, logarithm)


def slopes(
    traces: Traces,
    measured: dict[str, Measure],
    label: str,
    fixed: Labels,
    scale: Callable[[Array], Array],
) -> Iterator[Row]:
    """The slope of some measures over a sweep, and that of null data; none of a single run."""
    runs = sweep(traces, DEFAULTS, label, **fixed)
    if len(runs) < 2:
        return
    x = scale(np.array([*runs]))
    for name, measure in measured.items():
        y = scale(np.array([measure(run) for run in runs.values()]))
        yield row(name, mean(np.polyfit(x, y, 1)[0]), **fixed)
        yield row(name, mean(np.polyfit(x, kit.permuted(y), 1)[0]), **fixed, order="permuted")


def noise_added(traces: Traces, norm: str) -> Iterator[Row]:
    """What noise in an oracle's question adds to the excess, and the error that it makes.

    `missed` is the mean additive error of all oracles over the rounds, `above` what the noise adds
    to the excess beyond it, and `share` what it adds by what a run without noise takes away.
    """
    excess = last("excess")
    runs = sweep(traces, DEFAULTS, "noise", part="noisy", norm=norm)
    if not runs:
        return
    without = excess(runs[0.0])
    for noise, trace in runs.items():
        labels: Labels = {"part": "noisy", "norm": norm, "noise": noise}
        start = trace.metrics["excess"][:, 0]
        missed = trace.info["gap"].mean(1)
        yield row("excess", mean(excess(trace)), **labels)
        yield row("missed", mean(missed), **labels)
        yield row("more", mean(excess(trace) - without), **labels)
        yield row("above", mean(excess(trace) - without - missed), **labels)
        fall = start - without
        yield row("share", mean((excess(trace) - without) / fall), **labels)


def straight(values: Array) -> Array:
    """The values as they are."""
    return values


def logarithm(values: Array) -> Array:
    """The logarithm of values that may be 0."""
    return np.asarray(np.log(np.maximum(values, 1e-15)))


def errors(traces: Traces, p: Params) -> Iterator[Row]:
    """Excess and gaps with wrong oracles beside those with exact ones."""
    excess = last("excess")
    for norm in norms(p):
        exact_run = run_of(traces, DEFAULTS, part="wrong", norm=norm, method="exact")
        labels = ["method", "quality", "slip", "falling"]
        for trace in kit.chosen(traces, labels, DEFAULTS, part="wrong", norm=norm).values():
            times = ratio(excess(trace), excess(exact_run))
            yield row("times", times, **labels_of(trace))
            difference = mean(excess(trace) - excess(exact_run))
            yield row("more", difference, **labels_of(trace))
        yield from noise_added(traces, norm)
    runs = sweep(traces, DEFAULTS, "k", part="nuclear")
    gaps = {k: trace.late("fw_gap") for k, trace in runs.items()}
    for k, gap in gaps.items():
        yield row("times", ratio(gap, gaps[max(gaps)]), part="nuclear", k=k)
