"""The derived numbers of the study on bounds: what was reached, and what was promised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import torch

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedsgm.bounds.methods import RHO_HAT
from papers.fedsgm.bounds.runs import Plan, again, parts
from papers.fedsgm.problems.prox import stationarity
from papers.kit.numbers import Number, exact, mean
from papers.kit.study import Params, Traces


@dataclass(frozen=True)
class Reached:
    """What a run reached on every instance, and what its theorem promises.

    For weakly convex f, `gap` is the mean distance to the prox points over the good rounds that
    were looked at, and `gap_bound` its bound; else both are those of f(mean iterate) - f*.
    """

    gap: Array  # [S]
    g: Array  # [S]
    gap_bound: float
    bound: float  # of g, and of the gap but for weakly convex f

    @property
    def worst(self) -> Array:
        """The accuracy that was reached, max(f gap, g); NaN where no round was a good one."""
        return np.asarray(np.maximum(self.gap, self.g))

    @property
    def plotted(self) -> Array:
        """What figures and slopes show: the gap for weakly convex f, else `worst`."""
        return self.worst if self.gap_bound == self.bound else self.gap

    @property
    def share(self) -> Array:
        """The largest of both measures, each divided by its bound."""
        return np.asarray(np.maximum(self.gap / self.gap_bound, self.g / self.bound))


def reached(name: str, trace: Trace) -> Reached:
    """The measured values of a run, from its stored solutions."""
    planned = again(name, trace)
    accuracy = planned.rate.accuracy
    if parts(name)[0] == "weak":
        gap, g = _good_rounds(planned, trace)
        return Reached(gap, g, planned.stationarity, accuracy)
    rows = []
    for seed, w in zip(trace.seeds, torch.from_numpy(trace.output), strict=True):
        problem = planned.spec.problem(seed)
        values = problem.metrics(w, problem)
        rows.append([float(values["f_gap"]), float(values["g"])])
    gap, g = np.array(rows).T
    return Reached(gap, g, accuracy, accuracy)


def _good_rounds(planned: Plan, trace: Trace) -> tuple[Array, Array]:
    """Mean distance to the prox points and mean g over the good rounds that were evaluated.

    On these instances all g_j are equal, so that a round is good exactly if g <= tolerance.
    """
    tolerance = trace.config["algorithm"]["tolerance"]
    names = sorted(k for k in trace.metrics if k.startswith("w"))
    points = np.stack([trace.of_rounds(k) for k in names], -1)  # [S, T, d]
    rows = []
    for seed, w, g in zip(trace.seeds, points, trace.of_rounds("g"), strict=True):
        good = g <= tolerance
        distance = stationarity(planned.spec.problem(seed), w[good], RHO_HAT)
        rows.append([distance.mean(), g[good].mean()])
    gap, values = np.array(rows).T
    return gap, values


def derive(traces: Traces, p: Params) -> dict[str, Number]:  # noqa: ARG001
    """Per run what was reached and the bound; per sweep over T the fitted slopes."""
    found = {name: reached(name, trace) for name, trace in traces.items()}
    numbers: dict[str, Number] = {}
    for name, r in found.items():
        each = {"gap": r.gap, "g": r.g, "worst": r.worst, "share": r.share}
        numbers |= {f"{name}.{k}": over_instances(name, x) for k, x in each.items()}
        numbers |= {f"{name}.top": exact(r.share.max()), f"{name}.bound": exact(r.bound)}
    for start in dict.fromkeys(n.rsplit("_", 1)[0] for n in found if horizon(n)):
        numbers |= {f"{start}.{k}": v for k, v in slopes(start, found).items()}
    return numbers


def over_instances(name: str, values: Array) -> Number:
    """The mean over the instances; the staircase is a single one, of which nothing is drawn."""
    return exact(values[0]) if name.startswith("stairs") else mean(values)


def slopes(start: str, found: Mapping[str, Reached]) -> dict[str, Number]:
    """Slopes of log `shown` and of the log of its bound against log T, least squares.

    The interval is over the instances; those where the measure is not positive somewhere are left
    out. Of a single T there is no slope.
    """
    runs = horizons(start, found)
    if len(runs) < 2:
        return {}
    x = np.log(list(runs))
    shown = np.array([found[n].plotted for n in runs.values()])  # [T, S]
    usable = (shown > 0).all(0)
    promised = np.log([found[n].gap_bound for n in runs.values()])
    bound = {"slope_bound": exact(np.polyfit(x, promised, 1)[0])}
    if not usable.any():
        return bound
    return {"slope": over_instances(start, np.polyfit(x, np.log(shown[:, usable]), 1)[0])} | bound


def horizons(start: str, names: Iterable[str]) -> dict[int, str]:
    """T -> name of the runs of a sweep over T, in order."""
    found = {horizon(n): n for n in names if n.rsplit("_", 1)[0] == start and horizon(n)}
    return dict(sorted(found.items()))


def horizon(name: str) -> int:
    """T, if this is a run of a sweep over T; else 0."""
    setting = parts(name)[2]
    return int(setting[1:]) if setting[0] == "T" else 0
