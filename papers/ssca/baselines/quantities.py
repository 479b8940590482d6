"""The quantities of the study of momentum SGD beside SSCA."""

from collections.abc import Iterator
from itertools import product

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.kit import quantities as kit
from papers.kit.numbers import Number, exact, mean
from papers.kit.quantities import Quantities, Row, row
from papers.kit.study import Params, Traces
from papers.ssca.baselines.runs import DEFAULTS, cells
from papers.ssca.convergence.quantities import area, at


def derive(traces: Traces, p: Params) -> Quantities:
    """Costs of every run, what tuning picks, and differences by seed."""
    rows = [
        *kit.of_runs(traces, measures),
        *picked(traces, p),
        *compared(traces, p),
    ]
    return Quantities.of([rows], DEFAULTS)


def measures(trace: Trace) -> dict[str, Number]:
    """The mean cost over the rounds, and the cost at the end."""
    end = float(trace.rounds[-1])
    return {
        "area": mean(area(trace)),
        "cost": mean(at(trace, end)),
    }


def areas(traces: Traces, labels: kit.Labels) -> Array | None:
    """Per seed the mean cost over the rounds of the run with these labels, if it is there."""
    name = kit.name_of(labels, DEFAULTS)
    if name not in traces:
        return None
    return area(traces[name])


def picked(traces: Traces, p: Params) -> Iterator[Row]:
    """`best_a` and `best_beta`: the point with the lowest mean cost on the tuning seeds."""
    for cell in cells(p):
        tuning = {"draw": "tuning", **cell}
        costs = tuning_costs(traces, p, tuning)
        if costs:
            a, beta = min(costs, key=costs.__getitem__)
            yield row("best_a", exact(a), **tuning)
            yield row("best_beta", exact(beta), **tuning)


def tuning_costs(traces: Traces, p: Params, tuning: kit.Labels) -> dict[tuple[float, float], float]:
    """The mean cost of every point (a, beta) whose run is there and has finite costs alone."""
    costs = {}
    for a, beta in product(p["rates"], p["betas"]):
        labels = {**tuning, "method": "momentum", "a": a, "beta": beta}
        by_seed = areas(traces, labels)
        if by_seed is None:
            continue
        if np.isfinite(by_seed).all():
            costs[a, beta] = by_seed.mean()
    return costs


def compared(traces: Traces, p: Params) -> Iterator[Row]:
    """`ahead` is SSCA's mean cost minus that of momentum SGD, seed by seed.

    `null` is that of momentum SGD on half of the seeds minus that on the others.
    """
    for cell in cells(p):
        fresh = {"draw": "fresh", **cell}
        ours = areas(traces, {**fresh, "method": "ssca"})
        rival = areas(traces, {**fresh, "method": "momentum"})
        if ours is None or rival is None:
            continue
        size = len(rival) // 2
        first_half = rival[:size]
        second_half = rival[size : 2 * size]
        yield row("ahead", mean(ours - rival), **fresh)
        yield row("null", mean(first_half - second_half), **fresh)
