"""The derived numbers of the study of Federated Frank-Wolfe's rates."""

from __future__ import annotations

from collections.abc import Callable
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedfw import theory_fw
from papers.fedfw.theory_fw import Constants
from papers.kit.numbers import Number, exact, mean, measured, ratio
from papers.kit.study import Params, Traces, swept

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
#: How the runs of a theorem begin, its problem, and its bound.
THEOREMS: dict[str, tuple[str, str, Bound]] = {
    "convex": ("convex_{}_fedfw_L", "convex", theory_fw.convex_excess),
    "sto": ("sto_{}_L", "convex", theory_fw.stochastic_excess),
    "nonconvex": ("nonconvex_{}_L", "nonconvex", theory_fw.nonconvex_gap),
}


def norms(p: Params) -> list[str]:
    return [f"l{int(k)}" for k in p["balls"]]


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
    x, weight = np.log(t), np.sqrt(1 / t)
    y = np.log(np.maximum(values[:, late], 1e-15))
    return np.array([np.polyfit(x, row, 1, w=weight)[0] for row in y])


def least_gaps(trace: Trace) -> Array:
    return np.asarray(trace.of_rounds("fw_gap").min(1))


def early_gap(trace: Trace) -> Array:
    """Per seed the mean of (11) at the server's model over the first rounds."""
    some = (trace.rounds > 0) & (trace.rounds <= EARLY)
    return np.asarray(trace.metrics["gap"][:, some].mean(1))


def early_surrogate(trace: Trace) -> Array:
    """Per seed the mean of sum_i <g_i, x_i - s_i> over the first rounds."""
    return np.asarray(trace.info["gap"][:, 1 : EARLY + 1].mean(1))


TO_THE_LEAST = {
    "excess": last("excess"),
    "slope": lambda t: power(t.rounds, t.metrics["excess"]),
}
#: The measures of a run by the first word of its name.
MEASURES: dict[str, dict[str, Any]] = {
    "pair": {
        "x": last("x"),
        "farthest": lambda t: exact(np.abs(last("x")(t)).max()),
        "early": early,
        "late": late,
        "nearer": lambda t: early(t) - late(t),
    },
    "convex": TO_THE_LEAST,
    "sto": TO_THE_LEAST,
    "wrong": {},
    "nonconvex": {"least_gap": least_gaps},
    "nuclear": {"late_gap": lambda t: t.late("fw_gap")},
    "share": {"mean_loss": over("loss")},
    "penalty": {"early_gap": early_gap, "early_surrogate": early_surrogate},
}


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Where runs end, how fast they get there, and how far below the bounds they are.

    Keys are `run.measure`. A number whose runs are missing is missing too.
    """
    found: dict[str, Number] = {}
    for name, trace in traces.items():
        if name.endswith("_reference"):
            found |= {f"{name}.{k}": mean(v[:, 0]) for k, v in trace.metrics.items()}
        else:
            found |= measured({name: trace}, MEASURES[name.partition("_")[0]])
    return found | beside_bounds(traces, p) | trends(traces, p) | errors(traces)


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


def beside_bounds(traces: Traces, p: Params) -> dict[str, Number]:
    """The largest excess by its bound, (38) or (68), and the smallest gap by (62).

    `by_most` is the bound at its lowest, by the largest value that a model in the set can have. Of
    a theorem, such as `convex.ratio`: of its runs the lowest such bound, and the largest share.
    """
    found: dict[str, Number] = {}
    for kind, (form, task, bound) in THEOREMS.items():
        by_most, shares = [], []
        for norm in norms(p):
            known = traces[f"{task}_{norm}_reference"]
            for run in (n for n in traces if n.startswith(form.format(norm))):
                trace, lam = traces[run], float(run.partition("_L")[2].partition("_")[0])
                rounds, values = trace.rounds[1:], trace.metrics.get("excess")
                if values is None:
                    rounds, values = trace.rounds[-1:] - 1, least_gaps(trace)[:, None]
                above = bounds(bound, known, lam, rounds, p["batch"])
                by_most.append(above.min(1) / MOST[task][norm])
                shares.append((values[:, -len(rounds) :] / above).max(1))
                found[f"{run}.by_most"], found[f"{run}.ratio"] = mean(by_most[-1]), mean(shares[-1])
        found[f"{kind}.by_most"] = mean(np.min(by_most, axis=0))
        found[f"{kind}.ratio"] = mean(np.max(shares, axis=0))
    return found


def trends(traces: Traces, p: Params) -> dict[str, Number]:
    """Per seed the slope over a whole sweep, by least squares.

    Of losses by p (`trend`), and between logarithms of gaps by lambda_0 (`trend_gap`) and of
    Theorem 2's smallest gap by T (`slope`). Keys are what the names of the runs have in common,
    such as `share_fedfw.trend`.
    """
    by_share: dict[str, Measure] = {"trend": over("loss"), "trend_last": last("loss")}
    by_penalty: dict[str, Measure] = {"trend_gap": early_gap, "trend_surrogate": early_surrogate}
    sweeps: list[tuple[str, dict[str, Measure], bool]] = [
        *((f"share_mclr_L{lam:g}_p", by_share, False) for lam in p["share_penalties"]),
        *((f"share_{method}_p", by_share, False) for method in ("fedfw", "plus")),
    ]
    for norm in norms(p):
        sweeps += [(f"penalty_{model}_{norm}_L", by_penalty, True) for model in ("mclr", "net")]
        starts = [f"nonconvex_{norm}_L{lam:g}_T" for lam in p["nonconvex_penalties"]]
        sweeps += [(start, {"slope": least_gaps}, True) for start in starts]
    found: dict[str, Number] = {}
    for start, measures, logs in sweeps:
        runs = swept(traces, start)
        x = np.array([*runs])
        if len(x) > 1:
            for k, of in measures.items():
                y = np.array([*map(of, runs.values())])
                a, b = (np.log(x), np.log(np.maximum(y, 1e-15))) if logs else (x, y)
                found[f"{start.rpartition('_')[0]}.{k}"] = mean(np.polyfit(a, b, 1)[0])
    return found


def errors(traces: Traces) -> dict[str, Number]:
    found: dict[str, Number] = {}
    for name, trace in traces.items():
        if name.startswith("wrong_"):
            own, exact = map(last("excess"), (trace, traces[f"{name.rpartition('_')[0]}_exact"]))
            found |= {f"{name}.times": ratio(own, exact), f"{name}.more": mean(own - exact)}
    gaps = {k: trace.late("fw_gap") for k, trace in swept(traces, "nuclear_k").items()}
    return found | {f"nuclear_k{k:g}.times": ratio(x, gaps[max(gaps)]) for k, x in gaps.items()}
