"""The derived numbers of the study of SSCA's Figure 4 and of Theorem 5."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.kit.numbers import Number, mean
from papers.kit.study import Params, Traces
from papers.ssca.common import SPLITS

METRICS = ("cost", "norm", "accuracy")  # of the runs of Figure 4
PATH = ("cost", "norm", "slope", "along", "across")  # of the runs of Theorem 5
REPORTS = ("nu", "slack", "moved")


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Where every run ends; the order along each curve; Theorem 5's gradients and distances."""
    numbers: dict[str, Number] = {}
    for name, trace in traces.items():
        if name.startswith("theorem_"):
            found = theorem(trace, p["theorem_rounds"])
        else:
            found = {k: mean(trace.metrics[k][:, -1]) for k in METRICS}
        numbers |= {f"{name}.{k}": v for k, v in found.items()}
    for split in SPLITS:
        numbers |= curves(traces, split, p)
    return numbers


def sweep(traces: Traces, split: str, kind: str) -> dict[float, Trace]:
    """The runs of one curve by their lambda (`kind` `"ssca"`) or U (`"limit"`), ascending."""
    start = f"{split}_{kind}_" + ("ridge" if kind == "ssca" else "U")
    found = {float(n.removeprefix(start)): t for n, t in traces.items() if n.startswith(start)}
    return dict(sorted(found.items()))


def final(runs: dict[float, Trace], metric: str) -> Array:
    """The metric of the final models, `[runs, S]`."""
    return np.array([t.metrics[metric][:, -1] for t in runs.values()])


def curves(traces: Traces, split: str, p: Params) -> dict[str, Number]:
    """Rank correlations along the two curves of a split; levels kept; one curve on the other."""
    found: dict[str, Number] = {}
    ridges, limits = (sweep(traces, split, kind) for kind in ("ssca", "limit"))
    for kind, runs in (("ssca", ridges), ("limit", limits)):
        if len(runs) > 1:
            found[f"{split}_{kind}.order"] = ordered(final(runs, "cost"), final(runs, "norm"))
    if len(limits) > 1:
        levels = np.repeat(np.array([*limits])[:, None], len(p["seeds"]), 1)
        found[f"{split}_limit.accuracy_order"] = ordered(levels, final(limits, "accuracy"))
    for level, trace in limits.items():
        name = f"{split}_limit_U{level:g}"
        found[f"{name}.excess"] = mean(100 * (trace.metrics["cost"][:, -1] / level - 1), "%")
        if len(ridges) > 1:
            share = beside(trace, final(ridges, "cost"), final(ridges, "norm"))
            if np.isfinite(share).all():
                found[f"{name}.norm_ratio"] = mean(share)
    return found


def ordered(x: Array, y: Array) -> Number:
    """Per seed the rank correlation of two rows of values `[runs, S]`."""
    return mean([scipy.stats.spearmanr(a, b).statistic for a, b in zip(x.T, y.T, strict=True)])


def beside(trace: Trace, cost: Array, norm: Array) -> Array:
    """Per seed |w|^2 as a multiple of the other curve's at the same cost, NaN outside of it.

    Between the points of the other curve, `[runs, S]` each, log |w|^2 is linear in the cost.
    """
    found = []
    own = zip(trace.metrics["cost"][:, -1], trace.metrics["norm"][:, -1], strict=True)
    for (x, y), costs, norms in zip(own, cost.T, norm.T, strict=True):
        order = np.argsort(costs)
        there = np.interp(x, costs[order], np.log(norms[order]), left=np.nan, right=np.nan)
        found.append(y / np.exp(there))
    return np.array(found)


def relative_gradient(trace: Trace) -> tuple[NDArray[np.int64], Array]:
    """Rounds, and |grad (27)| / |grad F| there with lambda = 1 / nu of that round, `[S, T]`.

    Infinite where nu is zero; the start, before which no round has given a nu, is left out.
    """
    rounds = trace.rounds[1:]
    m = {k: v[:, 1:] for k, v in trace.metrics.items()}
    with np.errstate(divide="ignore"):
        ridge = 1 / trace.info["nu"][:, rounds - 1]
    whole = np.hypot(m["across"], m["along"] + 2 * ridge * np.sqrt(m["norm"]))
    return rounds, np.asarray(whole / m["slope"])


def continued(trace: Trace, rounds: int) -> int:
    """The column of the evaluated model that the constrained method hands over."""
    return int(np.searchsorted(trace.rounds, rounds, side="right")) - 1


def theorem(trace: Trace, rounds: int) -> dict[str, Number]:
    """What holds at the handover, and what the further rounds change."""
    t, gradient = continued(trace, rounds), relative_gradient(trace)[1]
    cost = trace.metrics["cost"]
    return {
        "cost": mean(cost[:, t]),
        "norm": mean(trace.metrics["norm"][:, t]),
        "nu": mean(trace.info["nu"][:, rounds - 1]),
        "slack": mean(trace.info["slack"][:, rounds - 1]),
        "slope": mean(trace.metrics["slope"][:, t]),
        "half_gradient": mean(gradient[:, continued(trace, rounds // 2) - 1]),
        "gradient": mean(gradient[:, t - 1]),
        "end_gradient": mean(gradient[:, -1]),
        "moved": mean(trace.info["moved"][:, -1]),
        "drift": mean(cost[:, -1] - cost[:, t]),
    }
