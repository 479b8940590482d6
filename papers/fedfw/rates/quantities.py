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
    """Per seed the value of the last model."""
    return lambda t: np.asarray(t.metrics[metric][:, -1])


def over(metric: str) -> Measure:
    """Per seed the mean over the evaluated rounds, without the start that all runs have."""
    return lambda t: np.asarray(t.metrics[metric][:, 1:].mean(1))


def apart(x: Array) -> Array:
    """The distance from the counterexample's minimizer, 1."""
    return np.abs(1 - x)


def power(rounds: Array | NDArray[np.int64], values: Array) -> Array:
    """Per seed the exponent k of values that go like t^k, t = round + 1, over the late rounds.

    Least squares of the logarithms, from `WINDOW` of the rounds on, each round weighed by 1 / t so
    that every part of the logarithmic axis counts alike.
    """
    late = rounds >= max(1, WINDOW * rounds[-1])
    t = np.asarray(rounds[late], float) + 1
    log_values = logarithm(values[:, late])
    slopes, _ = np.polyfit(np.log(t), log_values.T, 1, w=np.sqrt(1 / t))
    return np.asarray(slopes)


def least_gaps(trace: Trace) -> Array:
    return np.asarray(trace.of_rounds("fw_gap").min(1))


def early_gap(trace: Trace) -> Array:
    """Per seed the mean of (11) at the server's model over the first rounds."""
    early = (trace.rounds > 0) & (trace.rounds <= EARLY)
    return np.asarray(trace.metrics["gap"][:, early].mean(1))


def early_surrogate(trace: Trace) -> Array:
    """Per seed the mean of sum_i <g_i, x_i - s_i> over the first rounds."""
    return np.asarray(trace.info["gap"][:, 1 : EARLY + 1].mean(1))


def of_counterexample(trace: Trace) -> dict[str, Number]:
    """Where a run ends, and its distance from the minimizer: early, after a tenth, and there."""
    models = trace.metrics["x"]
    tenth = np.searchsorted(trace.rounds, 0.1 * trace.rounds[-1])
    final = models[:, -1]
    return {
        "farthest": exact(np.abs(final).max()),
        "x": mean(final),
        "early": mean(apart(models[:, tenth])),
        "late": mean(apart(final)),
    }


def measures(trace: Trace) -> dict[str, Number]:
    """The measures of a run alone, by its part."""
    labels = labels_of(trace)
    if labels.get("method") == "reference":
        return {name: mean(curve[:, 0]) for name, curve in trace.metrics.items()}
    match labels["part"]:
        case "pair":
            return of_counterexample(trace)
        case "convex" | "sto":
            excess = trace.metrics["excess"]
            slope = power(trace.rounds, excess)
            return {"excess": mean(excess[:, -1]), "slope": mean(slope)}
        case "nonconvex":
            return {"least_gap": mean(least_gaps(trace))}
        case "nuclear":
            return {"late_gap": mean(trace.late("fw_gap"))}
    return {}


def derive(traces: Traces, p: Params) -> Quantities:
    """Where runs end, how fast they get there, and how far below the bounds they are.

    A row whose runs are missing is missing too.
    """
    rows = [*beside_bounds(traces, p), *trends(traces, p), *errors(traces, p)]
    return Quantities.of([kit.of_runs(traces, measures), rows], DEFAULTS)


def bounds(
    bound: Bound,
    reference: Trace,
    lam: float,
    rounds: Any,
    batch: int = 1,
) -> Array:
    """A theorem's bound for the model after each number of rounds, `[S, T]`; t counts from 1."""
    of_seeds = []
    for seed in range(len(reference.seeds)):
        known = constants(reference, seed, lam, batch)
        of_rounds = [bound(known, int(t) + 1) for t in rounds]
        of_seeds.append(of_rounds)
    return np.array(of_seeds)


def constants(
    reference: Trace,
    seed: int,
    lam: float,
    batch: int,
) -> Constants:
    """What the theorems ask for, of the problem of the seed at a place; lambda_0 is `lam`."""
    known = {name: float(curve[seed, 0]) for name, curve in reference.metrics.items()}
    sigma = np.sqrt(known["noise"] / batch)
    return Constants(
        L=known["smooth"],
        D=DIAMETER,
        N=CLIENTS,
        lam0=lam,
        dual=known["dual"],
        slope=known["slope"],
        spread=known.get("spread", 0.0),
        sigma=float(sigma),
        first=known["first"],
    )


def beside_bounds(traces: Traces, p: Params) -> Iterator[Row]:
    """The largest excess by its bound, (38) or (68), and the smallest gap by (62).

    `by_most` is the bound at its lowest, by the largest value that a model in the set can have. Of
    a theorem: of its runs the lowest such bound, and the largest share.
    """
    for part, (task, _) in THEOREMS.items():
        shares_of_most = []
        ratios = []
        for trace in traces.values():
            labels = labels_of(trace)
            if labels["part"] != part or labels.get("method") == "reference":
                continue
            values, above = with_bound(traces, trace, p)
            most = MOST[task][str(labels["norm"])]
            share_of_most = above.min(1) / most
            relative = values / above
            ratio_to_bound = relative.max(1)
            yield row("by_most", mean(share_of_most), **labels)
            yield row("ratio", mean(ratio_to_bound), **labels)
            shares_of_most.append(share_of_most)
            ratios.append(ratio_to_bound)
        lowest = np.min(shares_of_most, axis=0)
        largest = np.max(ratios, axis=0)
        yield row("by_most", mean(lowest), part=part)
        yield row("ratio", mean(largest), part=part)


def with_bound(traces: Traces, trace: Trace, p: Params) -> tuple[Array, Array]:
    """What a theorem bounds in a run, and its bound: a row a seed, a column a round."""
    labels = labels_of(trace)
    task, bound = THEOREMS[str(labels["part"])]
    if task == "nonconvex":
        rounds = trace.rounds[-1:] - 1
        values = least_gaps(trace)[:, None]
    else:
        rounds = trace.rounds[1:]
        values = trace.metrics["excess"][:, 1:]
    problem: Labels = {"part": task, "norm": labels["norm"], "method": "reference"}
    reference = run_of(traces, DEFAULTS, **problem)
    above = bounds(
        bound,
        reference,
        float(labels["L"]),
        rounds,
        p["batch"],
    )
    return values, above


def trends(traces: Traces, p: Params) -> Iterator[Row]:
    """Per seed the slope over a whole sweep, by least squares.

    Of losses by p (`trend`), and between logarithms of gaps by lambda_0 (`trend_gap`) and of
    Theorem 2's smallest gap by T (`slope`).
    """
    by_share: dict[str, Measure] = {"trend": over("loss"), "trend_last": last("loss")}
    by_penalty: dict[str, Measure] = {
        "trend_gap": early_gap,
        "trend_surrogate": early_surrogate,
    }
    by_horizon: dict[str, Measure] = {"slope": least_gaps}
    for labels in swept_shares(p):
        shares: Labels = {"part": "share", **labels}
        yield from slopes(traces, by_share, "p", shares, np.asarray)
    for norm in norms(p):
        for model in ("mclr", "net"):
            penalties: Labels = {"part": "penalty", "model": model, "norm": norm}
            yield from slopes(traces, by_penalty, "L", penalties, logarithm)
        for lam in map(float, p["nonconvex_penalties"]):
            horizons: Labels = {"part": "nonconvex", "norm": norm, "L": lam}
            yield from slopes(traces, by_horizon, "T", horizons, logarithm)


def swept_shares(p: Params) -> Iterator[Labels]:
    """The labels of the runs of which there is one for each share of the clients."""
    for lam in map(float, p["share_penalties"]):
        yield {"model": "mclr", "L": lam}
    for method in ("fedfw", "plus"):
        yield {"method": method}
    for method in ("fedfw", "plus"):
        yield {"method": method, "rows": "theirs"}


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
        measured_by_run = np.array([measure(run) for run in runs.values()])
        y = scale(measured_by_run)
        slope, _ = np.polyfit(x, y, 1)
        null_slope, _ = np.polyfit(x, kit.permuted(y), 1)
        yield row(name, mean(slope), **fixed)
        yield row(name, mean(null_slope), **fixed, order="permuted")


def noise_added(traces: Traces, norm: str) -> Iterator[Row]:
    """What noise in an oracle's question adds to the excess, and the error that it makes.

    `missed` is the mean additive error of all oracles over the rounds, `above` what the noise adds
    to the excess beyond it, and `share` what it adds by what a run without noise takes away.
    """
    runs = sweep(
        traces,
        DEFAULTS,
        "noise",
        part="noisy",
        norm=norm,
    )
    if not runs:
        return
    without = last("excess")(runs[0.0])
    for noise, trace in runs.items():
        excess = last("excess")(trace)
        added = excess - without
        missed = trace.info["gap"].mean(1)
        fall = trace.metrics["excess"][:, 0] - without
        measured = {
            "excess": excess,
            "missed": missed,
            "more": added,
            "above": added - missed,
            "share": added / fall,
        }
        for name, values in measured.items():
            yield row(
                name,
                mean(values),
                part="noisy",
                norm=norm,
                noise=noise,
            )


def logarithm(values: Array) -> Array:
    """The logarithm of values that may be 0."""
    return np.asarray(np.log(np.maximum(values, 1e-15)))


def errors(traces: Traces, p: Params) -> Iterator[Row]:
    """Excess and gaps with wrong oracles beside those with exact ones."""
    for norm in norms(p):
        yield from of_wrong_oracles(traces, norm)
        yield from noise_added(traces, norm)
    runs = sweep(traces, DEFAULTS, "k", part="nuclear")
    gaps = {steps: trace.late("fw_gap") for steps, trace in runs.items()}
    for steps, gap in gaps.items():
        with_most_steps = gaps[max(gaps)]
        yield row("times", ratio(gap, with_most_steps), part="nuclear", k=steps)


def of_wrong_oracles(traces: Traces, norm: str) -> Iterator[Row]:
    """The excess with wrong oracles over that with exact ones, and minus it, on one set."""
    exact_run = run_of(
        traces,
        DEFAULTS,
        part="wrong",
        norm=norm,
        method="exact",
    )
    exact_excess = last("excess")(exact_run)
    errors_of_oracles = ["method", "quality", "slip", "falling"]
    runs = kit.chosen(
        traces,
        errors_of_oracles,
        DEFAULTS,
        part="wrong",
        norm=norm,
    )
    for trace in runs.values():
        labels = labels_of(trace)
        excess = last("excess")(trace)
        yield row("times", ratio(excess, exact_excess), **labels)
        yield row("more", mean(excess - exact_excess), **labels)
