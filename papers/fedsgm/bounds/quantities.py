"""The quantities of the study on bounds: what was reached, and what was promised."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedsgm.bounds.methods import RHO_HAT
from papers.fedsgm.bounds.runs import DEFAULTS, Plan, again
from papers.fedsgm.problems.prox import stationarity
from papers.kit.numbers import Number, exact, mean
from papers.kit.quantities import Labels, Quantities, Row, labels_of, name_of, row, sweep
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


def reached(trace: Trace) -> Reached:
    """The measured values of a run, from its stored solutions."""
    planned = again(trace)
    accuracy = planned.rate.accuracy
    if labels_of(trace)["method"] == "weak":
        gap, g = good_rounds(planned, trace)
        return Reached(gap, g, planned.stationarity, accuracy)
    rows = []
    for seed, w in zip(trace.seeds, torch.from_numpy(trace.output), strict=True):
        problem = planned.spec.problem(seed)
        values = problem.metrics(w, problem)
        rows.append([float(values["f_gap"]), float(values["g"])])
    gap, g = np.array(rows).T
    return Reached(gap, g, accuracy, accuracy)


def good_rounds(planned: Plan, trace: Trace) -> tuple[Array, Array]:
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


def derive(traces: Traces, p: Params) -> Quantities:
    """The table of quantities: per run what was reached and the bound; per sweep over T slopes."""
    del p
    runs = {name: reached(trace) for name, trace in traces.items()}
    rows = [*measures(traces, runs), *slopes(traces, runs)]
    return Quantities.of([rows], DEFAULTS)


def measures(traces: Traces, runs: Mapping[str, Reached]) -> Iterator[Row]:
    """What each run reached, by itself and as a share of the bound, and the bound."""
    for name, run in runs.items():
        labels = labels_of(traces[name])
        by_instance = {"gap": run.gap, "g": run.g, "worst": run.worst, "share": run.share}
        for measure, values in by_instance.items():
            yield row(measure, over_instances(labels, values), **labels)
        yield row("top", exact(run.share.max()), **labels)
        yield row("bound", exact(run.bound), **labels)


def over_instances(labels: Labels, values: Array) -> Number:
    """The mean over the instances; the staircase is a single one, of which nothing is drawn."""
    return exact(values[0]) if labels["method"] == "stairs" else mean(values)


def slopes(traces: Traces, runs: Mapping[str, Reached]) -> Iterator[Row]:
    """Of every sweep over T the slope that was reached, and that of the bound.

    The interval is over the instances. Of a single T there is no slope.
    """
    for labels in sweeps_of(traces):
        rounds = [*sweep(traces, DEFAULTS, "T", **labels)]
        if len(rounds) < 2:
            continue
        by_rounds = {T: runs[name_of({**labels, "T": T}, DEFAULTS)] for T in rounds}
        promised = [run.gap_bound for run in by_rounds.values()]
        yield row("slope_bound", exact(float(slope(rounds, np.array(promised)))), **labels)
        by_instance = reached_slopes(by_rounds)
        if len(by_instance):
            yield row("slope", over_instances(labels, by_instance), **labels)


def sweeps_of(traces: Traces) -> list[Labels]:
    """The labels that the runs of each sweep over T have in common."""
    sweeps: dict[str, Labels] = {}
    for trace in traces.values():
        labels = labels_of(trace)
        if "T" in labels:
            shared = {label: value for label, value in labels.items() if label != "T"}
            sweeps[str(shared)] = shared
    return [*sweeps.values()]


def reached_slopes(by_rounds: Mapping[int, Reached]) -> Array:
    """The slope of what figures show, by instance.

    Instances where the measure is not positive somewhere are left out.
    """
    plotted = np.array([run.plotted for run in by_rounds.values()])  # [T, S]
    usable = (plotted > 0).all(0)
    return slope([*by_rounds], plotted[:, usable]) if usable.any() else np.array([])


def slope(rounds: Sequence[int], values: Array) -> Array:
    """The slope of the logarithm of values, along the first axis, against log T: least squares."""
    return np.asarray(np.polyfit(np.log(rounds), np.log(values), 1)[0])
