"""What is read off the curves of a constrained run: violations, late values, oscillation."""

from collections.abc import Mapping
from math import log
from typing import TypeVar

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array

FEASIBLE = 1.05  # a run counts as feasible if its late mean of g is below this times epsilon
START = log(2)  # f and g of the logistic models at w = 0
Value = TypeVar("Value")


def violations(trace: Trace, tolerance: float) -> Array:
    """Per seed, the number of rounds 0 .. T-1 whose model has exact g(w_t) above the tolerance."""
    above = trace.of_rounds("g") > tolerance
    counts = above.sum(1)
    return np.asarray(counts, float)


def after_feasible(trace: Trace, tolerance: float) -> Array:
    """Per seed, the violating rounds after the first feasible one (0 if none is feasible)."""
    above = trace.of_rounds("g") > tolerance
    feasible_so_far = np.cumsum(~above, axis=1)
    violating = above & (feasible_so_far > 0)
    counts = violating.sum(1)
    return np.asarray(counts, float)


def second_half(values: Array) -> Array:
    """The second half of the rounds of `values`, `[S, T]`."""
    middle = values.shape[1] // 2
    return values[:, middle:]


def halves(values: Array) -> tuple[Array, Array]:
    """Values by seed in two disjoint halves, for null data; the last one is left out if odd."""
    size = len(values) // 2
    first_half = values[:size]
    second = values[size : 2 * size]
    return first_half, second


def oscillation(trace: Trace, name: str = "g") -> Array:
    """Per seed, the mean |g(w_t+1) - g(w_t)| over the second half, in thousandths."""
    late = second_half(trace.of_rounds(name))
    return 1e3 * mean_change(late)


def mean_change(values: Array) -> Array:
    """Per row the mean absolute change from an entry to the next; NaN where there is one alone."""
    changes = np.diff(values, axis=1)
    totals = np.abs(changes).sum(1)
    count = np.float64(changes.shape[1])
    with np.errstate(invalid="ignore"):
        return np.asarray(totals / count)


def jitter(trace: Trace, rounds: int = 20) -> Array:
    """Per seed, the standard deviation of g over the last rounds, in thousandths."""
    last_rounds = trace.of_rounds("g")[:, -rounds:]
    return np.asarray(1e3 * last_rounds.std(1))


def band(trace: Trace, name: str) -> Array:
    """Per seed, the mean distance of its curve from the seeds' median curve, in thousandths.

    The mean over seeds measures the width of the band that figures draw; unlike a standard
    deviation it has a value per seed, so that two runs can be compared seed by seed.
    """
    values = trace.of_rounds(name)
    median = np.median(values, axis=0)
    distances = np.abs(values - median)
    return np.asarray(1e3 * distances.mean(1))


def tuned(runs: Mapping[Value, Trace], tolerance: float) -> Value:
    """The value of a grid whose run has the smallest late f among those with a feasible late g.

    Feasible is a mean late g of at most 1.05 times the tolerance. If none is feasible, the value
    with the smallest late g. Training data only.
    """
    late_f = {}
    late_g = {}
    for value, trace in runs.items():
        late_f[value] = trace.late("f").mean()
        late_g[value] = trace.late("g").mean()
    limit = FEASIBLE * tolerance
    feasible = [value for value, g in late_g.items() if g <= limit]
    if feasible:
        return min(feasible, key=late_f.__getitem__)
    return min(late_g, key=late_g.__getitem__)


def over_limit(trace: Trace, tolerance: float, weight: float) -> Array:
    """Per seed and round, f plus a weight times what g exceeds the tolerance by."""
    f = trace.of_rounds("f")
    above = trace.of_rounds("g") - tolerance
    excess = np.maximum(above, 0)
    return np.asarray(f + weight * excess)
