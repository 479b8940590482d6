"""The derived numbers of the study of Federated Frank-Wolfe's rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fedlib import theory_fw
from fedlib.numbers import Number, mean, ratio
from fedlib.studies.base import Params, Traces
from fedlib.theory_fw import Constants
from fedlib.trace import Trace

__all__ = [
    "EARLY",
    "NORMS",
    "along",
    "bounds",
    "derive",
    "enough",
    "horizons",
    "least_gaps",
    "norms",
    "power",
]

NORMS = ("l1", "l2")
DIAMETER = 20.0  # of both sets, of radius 10
CLIENTS = 10
WINDOW = 0.05  # slopes are fitted from this share of the rounds on
EARLY = 20  # rounds that are Figure 4's first ones
LEAST_SEEDS = 3

Array = NDArray[np.float64]
Bound = Callable[[Constants, int], float]


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Where runs end, how fast they get there, and how far below the bounds they are.

    Keys are `run.measure`; differences of two runs, paired by seed, `run_vs_value.measure`. A
    number whose runs are missing is missing too.
    """
    found: dict[str, Number] = {}
    for name, trace in traces.items():
        kind = name.partition("_")[0]
        if name.endswith("_reference"):
            found |= {f"{name}.{k}": mean(v[:, 0]) for k, v in trace.metrics.items()}
        else:
            own = MEASURES[kind](trace)
            found |= {f"{name}.{k}": v for k, v in own.items()}
    found |= beside_bounds(traces, p) | rates(traces, p) | apart(traces, p) | errors(traces, p)
    return found | enough(p)


def norms(p: Params) -> list[str]:
    """The sets of the parameters, such as `["l1", "l2"]`."""
    return [f"l{int(k)}" for k in p["balls"]]


def enough(p: Params) -> dict[str, Number]:
    """`whole.part` for every part that is long enough to judge the paper by."""
    seeds = len(p["seeds"]) >= LEAST_SEEDS
    right = {
        "pair": p["pair_rounds"] >= 1000,
        "convex": p["convex_rounds"] >= 2000 and p["rows"] >= 400,
        "stochastic": p["stochastic_rounds"] >= 3000 and p["rows"] >= 400,
        "nonconvex": max(p["horizons"]) >= 1024 and p["rows"] >= 400,
        "shares": p["share_rounds"] >= 100 and p["most"] >= 500,
        "penalties": p["data"] == "mnist" and p["penalty_rounds"] >= 50 and p["pictures"] >= 3000,
        "wrong": p["convex_rounds"] >= 2000 and p["lanczos_rounds"] >= 500,
    }
    both = seeds and len(p["balls"]) == len(NORMS)
    return {f"whole.{k}": mean([1.0]) for k, holds in right.items() if holds and both}


def on_pair(trace: Trace) -> dict[str, Number]:
    """Where x is, and its distance from the minimizer at a tenth of the rounds and at the end."""
    x, early = trace.metrics["x"], np.searchsorted(trace.rounds, 0.1 * trace.rounds[-1])
    return {
        "x": mean(x[:, -1]),
        "farthest": mean([np.abs(x[:, -1]).max()]),
        "early": mean(np.abs(1 - x[:, early])),
        "late": mean(np.abs(1 - x[:, -1])),
        "nearer": mean(np.abs(1 - x[:, early]) - np.abs(1 - x[:, -1])),
    }


def to_the_least(trace: Trace) -> dict[str, Number]:
    """Excess and gap at the end, and the slope of the excess by rounds, both logarithmic."""
    ends = {k: mean(trace.metrics[k][:, -1]) for k in ("excess", "fw_gap")}
    return ends | {"slope": mean(power(trace.rounds, trace.metrics["excess"]))}


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


def of_gap(trace: Trace) -> dict[str, Number]:
    """The smallest gap of the evaluated rounds, the mean over the last fifth, and the last."""
    gap = trace.metrics["fw_gap"]
    found = {"least_gap": mean(least_gaps(trace)), "late_gap": mean(trace.late("fw_gap"))}
    return found | {"fw_gap": mean(gap[:, -1])}


def curves(trace: Trace) -> dict[str, Number]:
    """Loss, gap and accuracy at the end, on average over the rounds, and the best accuracy."""
    m = trace.metrics
    return {
        "loss": mean(m["loss"][:, -1]),
        "gap": mean(m["gap"][:, -1]),
        "accuracy": mean(100 * m["accuracy"][:, -1], "%"),
        "best_accuracy": mean(100 * m["accuracy"].max(1), "%"),
        "mean_loss": mean(over(trace, "loss")),
        "mean_accuracy": mean(100 * over(trace, "accuracy"), "%"),
    }


def over(trace: Trace, metric: str) -> Array:
    """Per seed the mean over the evaluated rounds, without the start that all runs have."""
    return np.asarray(trace.metrics[metric][:, 1:].mean(1))


def early(trace: Trace) -> dict[str, Number]:
    """`curves`, and the mean gaps of the first rounds, of F at w and of the surrogate."""
    first, surrogate = early_gaps(trace)
    return curves(trace) | {"early_gap": mean(first), "early_surrogate": mean(surrogate)}


def early_gaps(trace: Trace) -> tuple[Array, Array]:
    """Per seed the mean over the first rounds: (11) at w, and sum_i <g_i, x_i - s_i>."""
    some = (trace.rounds > 0) & (trace.rounds <= EARLY)
    return (
        np.asarray(trace.metrics["gap"][:, some].mean(1)),
        np.asarray(trace.info["gap"][:, 1 : EARLY + 1].mean(1)),
    )


MEASURES: Mapping[str, Callable[[Trace], dict[str, Number]]] = {
    "pair": on_pair,
    "convex": to_the_least,
    "sto": to_the_least,
    "wrong": to_the_least,
    "nonconvex": of_gap,
    "nuclear": of_gap,
    "share": curves,
    "penalty": early,
}


def bounds(bound: Bound, reference: Trace, lam: float, rounds: Array, batch: int = 1) -> Array:
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
    """The largest excess by its bound, (38) or (68), and the smallest gap by (62)."""
    found: dict[str, Number] = {}
    for norm in norms(p):
        for kind, name, bound in (
            ("convex", "convex_{}_fedfw", theory_fw.convex_excess),
            ("stochastic", "sto_{}", theory_fw.stochastic_excess),
        ):
            for lam in p[f"{kind}_penalties"]:
                run = f"{name.format(norm)}_L{lam:g}"
                top = partial(bounds, bound, traces[f"convex_{norm}_reference"], float(lam))
                found |= below(run, traces[run], top, p["batch"])
        for lam in p["nonconvex_penalties"]:
            for T, run in horizons(traces, norm, lam).items():
                known = traces[f"nonconvex_{norm}_reference"]
                above = bounds(gap_bound, known, float(lam), np.array([T - 1]))[:, 0]
                found[f"{run}.bound"] = mean(above)
                found[f"{run}.ratio"] = mean(least_gaps(traces[run]) / above)
    return found


def gap_bound(c: Constants, rounds: int) -> float:
    """(62)."""
    return theory_fw.nonconvex_gap(c, rounds)


def below(run: str, trace: Trace, top: Callable[..., Array], batch: int) -> dict[str, Number]:
    """The bound at the end, and the largest share of it that the excess takes in any round."""
    above = top(trace.rounds[1:], batch)
    shares = trace.metrics["excess"][:, 1:] / above
    return {f"{run}.bound": mean(above[:, -1]), f"{run}.ratio": mean(shares.max(1))}


def horizons(traces: Traces, norm: str, lam: float) -> dict[int, str]:
    """The runs of Theorem 2 by T, ascending."""
    start = f"nonconvex_{norm}_L{lam:g}_T"
    return dict(sorted((int(n.removeprefix(start)), n) for n in traces if n.startswith(start)))


def least_gaps(trace: Trace) -> Array:
    """Per seed the smallest Frank-Wolfe gap of the models before rounds 1 .. T."""
    return np.asarray(trace.of_rounds("fw_gap").min(1))


def rates(traces: Traces, p: Params) -> dict[str, Number]:
    """Theorem 2: the slope of the smallest gap by T, both logarithmic, per seed."""
    found = {}
    for norm in norms(p):
        for lam in p["nonconvex_penalties"]:
            runs = horizons(traces, norm, lam)
            if len(runs) > 1:
                gaps = np.array([least_gaps(traces[n]) for n in runs.values()])
                slopes = np.polyfit(np.log([*runs]), np.log(np.maximum(gaps, 1e-15)), 1)[0]
                found[f"nonconvex_{norm}_L{lam:g}.slope"] = mean(slopes)
    return found


def along(names: Traces, start: str) -> list[float]:
    """The values, ascending, of the runs whose names are `start` and a value."""
    return sorted(float(n.removeprefix(start)) for n in names if n.startswith(start))


def apart(traces: Traces, p: Params) -> dict[str, Number]:
    """Neighbours in p and in lambda_0, the larger minus the smaller, paired by seed."""
    found: dict[str, Number] = {}
    kinds = [f"share_mclr_L{lam:g}_p" for lam in p["share_penalties"]]
    for start in (*kinds, "share_fedfw_p", "share_plus_p"):
        for small, large in pairwise(along(traces, start)):
            a, b = traces[f"{start}{large:g}"], traces[f"{start}{small:g}"]
            name = f"{start}{large:g}_vs_{small:g}"
            found[f"{name}.mean_loss"] = mean(over(a, "loss") - over(b, "loss"))
            gain = 100 * (over(a, "accuracy") - over(b, "accuracy"))
            found[f"{name}.mean_accuracy"] = mean(gain, "points")
    for start in [f"penalty_{model}_{norm}_L" for model in ("mclr", "net") for norm in norms(p)]:
        for small, large in pairwise(along(traces, start)):
            two = (early_gaps(traces[f"{start}{x:g}"]) for x in (large, small))
            names = ("early_gap", "early_surrogate")
            for k, a, b in zip(names, *two, strict=True):
                found[f"{start}{large:g}_vs_{small:g}.{k}"] = mean(a - b)
    return found


def errors(traces: Traces, p: Params) -> dict[str, Number]:
    """Wrong oracles: excess and gap at the end beside those with exact ones."""
    found: dict[str, Number] = {}
    for norm in norms(p):
        exact = traces[f"wrong_{norm}_exact"].metrics["excess"][:, -1]
        for name, trace in traces.items():
            if name.startswith(f"wrong_{norm}_"):
                own = trace.metrics["excess"][:, -1]
                found[f"{name}.times"] = ratio(own, exact)
                found[f"{name}.more"] = mean(own - exact)
        found["wrong.rounds"] = mean([float(traces[f"wrong_{norm}_exact"].rounds[-1])])
    runs = {n: t.late("fw_gap") for n, t in traces.items() if n.startswith("nuclear_k")}
    best = max(runs, key=lambda n: int(n.removeprefix("nuclear_k")))
    return found | {f"{n}.times": ratio(gap, runs[best]) for n, gap in runs.items()}
