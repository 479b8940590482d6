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
        if self.gap_bound == self.bound:
            return self.worst
        return self.gap

    @property
    def share(self) -> Array:
        """The largest of both measures, each divided by its bound."""
        share_of_gap = self.gap / self.gap_bound
        share_of_g = self.g / self.bound
        return np.asarray(np.maximum(share_of_gap, share_of_g))


def reached(trace: Trace) -> Reached:
    """The measured values of a run, from its stored solutions."""
    planned = again(trace)
    accuracy = planned.rate.accuracy
    labels = labels_of(trace)
    if labels["method"] == "weak":
        gap, g = good_rounds(planned, trace)
        return Reached(gap, g, planned.stationarity, accuracy)
    gap, g = at_output(planned, trace)
    return Reached(gap, g, accuracy, accuracy)


def at_output(planned: Plan, trace: Trace) -> tuple[Array, Array]:
    """The measured f - f* and g at the output of a run, by instance."""
    rows = []
    outputs = torch.from_numpy(trace.output)
    for seed, w in zip(trace.seeds, outputs, strict=True):
        problem = planned.spec.problem(seed)
        values = problem.metrics(w, problem)
        gap = float(values["f_gap"])
        g = float(values["g"])
        rows.append([gap, g])
    gaps, constraints = np.array(rows).T
    return gaps, constraints


def good_rounds(planned: Plan, trace: Trace) -> tuple[Array, Array]:
    """Mean distance to the prox points and mean g over the good rounds that were evaluated.

    On these instances all g_j are equal, so that a round is good exactly if g <= tolerance.
    """
    tolerance = trace.config["algorithm"]["tolerance"]
    names = [name for name in trace.metrics if name.startswith("w")]
    coordinates = [trace.of_rounds(name) for name in sorted(names)]
    points = np.stack(coordinates, axis=-1)  # [S, T, d]
    constraints = trace.of_rounds("g")
    rows = []
    for seed, w, g in zip(trace.seeds, points, constraints, strict=True):
        problem = planned.spec.problem(seed)
        good = g <= tolerance
        distances = stationarity(problem, w[good], RHO_HAT)
        rows.append([distances.mean(), g[good].mean()])
    mean_distances, mean_constraints = np.array(rows).T
    return mean_distances, mean_constraints


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
        share = run.share
        by_instance = {
            "gap": run.gap,
            "g": run.g,
            "worst": run.worst,
            "share": share,
        }
        for measure, values in by_instance.items():
            number = over_instances(labels, values)
            yield row(measure, number, **labels)
        yield row("top", exact(share.max()), **labels)
        yield row("bound", exact(run.bound), **labels)


def over_instances(labels: Labels, values: Array) -> Number:
    """The mean over the instances; the staircase is a single one, of which nothing is drawn."""
    if labels["method"] == "stairs":
        return exact(values[0])
    return mean(values)


def slopes(traces: Traces, runs: Mapping[str, Reached]) -> Iterator[Row]:
    """Of every sweep over T the slope that was reached, and that of the bound.

    The interval is over the instances. Of a single T there is no slope.
    """
    for labels in sweeps_of(traces):
        by_rounds = {}
        for rounds in sweep(traces, DEFAULTS, "T", **labels):
            name = name_of({**labels, "T": rounds}, DEFAULTS)
            by_rounds[rounds] = runs[name]
        if len(by_rounds) < 2:
            continue
        promised = [run.gap_bound for run in by_rounds.values()]
        slope_bound = slope([*by_rounds], np.array(promised))
        yield row("slope_bound", exact(float(slope_bound)), **labels)
        by_instance = reached_slopes(by_rounds)
        if len(by_instance):
            yield row("slope", over_instances(labels, by_instance), **labels)


def sweeps_of(traces: Traces) -> list[Labels]:
    """The labels that the runs of each sweep over T have in common."""
    sweeps: dict[str, Labels] = {}
    for trace in traces.values():
        shared = {**labels_of(trace)}
        if "T" in shared:
            del shared["T"]
            sweeps[str(shared)] = shared
    return [*sweeps.values()]


def reached_slopes(by_rounds: Mapping[int, Reached]) -> Array:
    """The slope of what figures show, by instance.

    Instances where the measure is not positive somewhere are left out.
    """
    plotted = np.array([run.plotted for run in by_rounds.values()])  # [T, S]
    positive = plotted > 0
    usable = positive.all(0)
    if not usable.any():
        return np.array([])
    return slope([*by_rounds], plotted[:, usable])


def slope(rounds: Sequence[int], values: Array) -> Array:
    """The slope of the logarithm of values, along the first axis, against log T: least squares."""
    x = np.log(rounds)
    y = np.log(values)
    coefficients = np.polyfit(x, y, 1)
    return np.asarray(coefficients[0])
