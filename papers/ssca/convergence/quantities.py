"""The quantities of the study of SSCA's Figures 2 and 3."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import log

import numpy as np
import pandas as pd

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.kit import crossings
from papers.kit import quantities as kit
from papers.kit.numbers import Number, mean
from papers.kit.quantities import (
    Labels,
    Quantities,
    Row,
    estimates,
    name_of,
    row,
)
from papers.kit.study import Params, Traces
from papers.ssca.common import SPLITS
from papers.ssca.convergence.counts import bits_off, counted, megabits
from papers.ssca.convergence.runs import DEFAULTS, LOCAL_STEPS, TUNED
from papers.ssca.leaks import leaked

LOOKS = (10, 30, 50, 100)  # rounds whose cost is recorded
STRIDE = 10  # rounds between the points by which curves are compared; all runs have them
GUESSING = log(10)  # the cost of equal shares for ten digits
UNITS = {"accuracy": "points", "sent_to_half": "Mbit", "sent_to_quarter": "Mbit"}


def derive(traces: Traces, p: Params) -> Quantities:
    """Measures of every run and of the chosen baselines, differences by seed, bits, counts.

    Where a run is missing, the rows that need it are.
    """
    runs = shown(traces)
    privacy = [row(name, number, method="leak") for name, number in leaked().items()]
    tables = [
        kit.of_runs(runs, partial(numbers, p=p)),
        differences(kit.measured(runs, partial(compared_measures, p=p)), p),
        [*counted(), *bits_off(runs, p)],
        privacy,
    ]
    return Quantities.of(tables, DEFAULTS)


def at(trace: Trace, rounds: float, metric: str = "cost") -> Array:
    """Per seed, a metric after a number of rounds, linear between evaluations, `[S]`."""
    curves = trace.metrics[metric]
    return np.array([np.interp(rounds, trace.rounds, curve) for curve in curves])


def area(trace: Trace) -> Array:
    """Per seed the mean cost over the rounds 0 .. T, by the trapezoidal rule, `[S]`.

    SGD is evaluated less often than the others: so all are compared by every `STRIDE`-th round.
    """
    end = int(trace.rounds[-1])
    points = {*range(0, end, STRIDE), end}
    rounds = np.array(sorted(points), float)
    curves = np.stack([at(trace, number) for number in rounds], axis=1)
    areas = np.trapezoid(curves, rounds, axis=1)
    return np.asarray(areas / end)


def measures(trace: Trace) -> dict[str, Array]:
    """What one run is measured by, per seed."""
    end = float(trace.rounds[-1])
    measured = {f"cost_{look}": at(trace, look) for look in LOOKS if look <= end}
    measured["area"] = area(trace)
    measured["accuracy"] = 100 * at(trace, end, "accuracy")
    return measured


def compared_measures(trace: Trace, p: Params) -> dict[str, Array]:
    """The same, and of the runs that judge the costs of communication what is sent, in Mbit.

    Until the cost first falls to a half and to a quarter of that of guessing; of a run that does
    not, all that it sends.
    """
    measured = measures(trace)
    if kit.labels_of(trace)["draw"] == "later":
        a_round = sum(number.value for number in megabits(trace, p).values())
        for name, share in {"half": 0.5, "quarter": 0.25}.items():
            measured[f"sent_to_{name}"] = a_round * rounds_to(trace, share * GUESSING)
    return measured


def rounds_to(trace: Trace, level: float) -> Array:
    """Per seed the round in which the cost first falls to a level, T if it does not, `[S]`."""
    costs = trace.metrics["cost"]
    levels = [level] * len(costs)
    return crossings.rounds_to(trace.rounds, costs, levels)


def numbers(trace: Trace, p: Params) -> dict[str, Number]:
    """The same as numbers, and the bits of a round."""
    means = {}
    for name, values in measures(trace).items():
        unit = "%" if name == "accuracy" else ""
        means[name] = mean(values, unit)
    labels = kit.labels_of(trace)
    if labels["start"] == "usual" and labels["draw"] == "usual":
        means |= megabits(trace, p)
    return means


def shown(traces: Traces) -> dict[str, Trace]:
    """All runs; of SGD those with the lowest mean cost over the rounds and the seeds.

    They lack the labels of the point of the grid.
    """
    runs: dict[str, Trace] = {}
    lowest: dict[str, float] = {}
    for name, trace in traces.items():
        labels = dict(kit.labels_of(trace))
        if "a" not in labels:
            runs[name] = trace
            continue
        del labels["a"], labels["p"]
        grid = name_of(labels, DEFAULTS)
        cost = float(np.nan_to_num(area(trace).mean(), nan=np.inf))
        if cost < lowest.get(grid, np.inf) or grid not in runs:
            lowest[grid] = cost
            runs[grid] = replace(trace, config={**trace.config, "labels": labels})
    return runs


def differences(values: pd.DataFrame, p: Params) -> Iterator[Row]:
    """Differences of two runs: labelled as the former, and by what it is held against."""
    comparisons = list(compared(p))
    for against, run, rival in comparisons:
        apart = kit.minus(values, DEFAULTS, run, rival)
        if len(apart):
            yield from estimates(apart, UNITS, **run, minus=against)
    different = {name_of(run, DEFAULTS): run for _, run, _ in comparisons}
    for run in different.values():
        apart = kit.halves_apart(values, DEFAULTS, run)
        if len(apart):
            yield from estimates(apart, UNITS, **run, minus="nothing")


#: What the other run is, and the labels of both.
Comparison = tuple[str, Labels, Labels]


def compared(p: Params) -> Iterator[Comparison]:
    """The pairs of runs that are compared."""
    batches = sorted(p["batches"])
    yield from compared_later(p, batches)
    for split in SPLITS:
        for batch in batches:
            yield from beside_sgd({"start": "usual", "split": split}, batch)
        yield from beside_sgd({"start": "he", "split": split}, batches[0])
        for batch in p["fine_batches"]:
            run: Labels = {"draw": "fresh", "split": split, "method": "ssca", "B": batch}
            yield "sgd", run, {**run, "method": "sgd"}
    for batch in batches:
        yield by_split({"start": "usual", "method": "ssca", "B": batch})


def compared_later(p: Params, batches: list[int]) -> Iterator[Comparison]:
    """The pairs of runs by batch and by split on the later seeds."""
    for algorithm in algorithms(p):
        labels = {"draw": "later", **algorithm}
        for split in SPLITS:
            yield from by_batch({**labels, "split": split}, batches)
        for batch in batches:
            yield by_split({**labels, "B": batch})
    for method, split, batch in TUNED:
        cell: Labels = {"draw": "later", "split": split}
        ours = {**cell, "method": "ssca", "B": LOCAL_STEPS[method] * batch}
        yield method, ours, {**cell, "method": method, "B": batch}


def algorithms(p: Params) -> Iterator[Labels]:
    """The labels of Algorithms 1 and 3, and of 2 and 4 at every level."""
    yield {"method": "ssca"}
    for level in p["levels"]:
        yield {"method": "limit", "U": level}


def by_batch(run: Labels, batches: list[int]) -> Iterator[Comparison]:
    """A run with every batch but the smallest, beside the same with the next smaller one."""
    for small, large in pairwise(batches):
        yield f"B{small}", {**run, "B": large}, {**run, "B": small}


def by_split(run: Labels) -> Comparison:
    """A run with its features split, beside the same with its samples split."""
    return "samples", {**run, "split": "features"}, {**run, "split": "samples"}


def beside_sgd(cell: Labels, batch: int) -> Iterator[Comparison]:
    """Algorithm 1 or 3 without its bias beside the plain one, and that beside SGD."""
    plain = {**cell, "method": "ssca", "B": batch}
    yield "plain", {**plain, "debiased": True}, plain
    yield "sgd", plain, {**cell, "method": "sgd", "B": batch}
    yield "sgd2", plain, {**cell, "method": "sgd2", "B": batch // 2}
