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
    return np.asarray((trace.of_rounds("g") > tolerance).sum(1), float)


def after_feasible(trace: Trace, tolerance: float) -> Array:
    """Per seed, the violating rounds after the first feasible one (0 if none is feasible)."""
    above = trace.of_rounds("g") > tolerance
    since = np.cumsum(~above, axis=1) > 0
    return np.asarray((above & since).sum(1), float)


def second_half(values: Array) -> Array:
    return values[:, values.shape[1] // 2 :]


def halves(values: Array) -> tuple[Array, Array]:
    """Values by seed in two disjoint halves, for null data; the last one is left out if odd."""
    half = len(values) // 2
    return values[:half], values[half : 2 * half]


def oscillation(trace: Trace, name: str = "g") -> Array:
    """Per seed, the mean |g(w_t+1) - g(w_t)| over the second half, in thousandths."""
    return 1e3 * mean_change(second_half(trace.of_rounds(name)))


def mean_change(values: Array) -> Array:
    """Per row the mean absolute change from an entry to the next; NaN where there is one alone."""
    steps = np.abs(np.diff(values, axis=1))
    with np.errstate(invalid="ignore"):
        return np.asarray(steps.sum(1) / np.float64(steps.shape[1]))


def jitter(trace: Trace, rounds: int = 20) -> Array:
    """Per seed, the standard deviation of g over the last rounds, in thousandths."""
    return np.asarray(1e3 * trace.of_rounds("g")[:, -rounds:].std(1))


def band(trace: Trace, name: str) -> Array:
    """Per seed, the mean distance of its curve from the seeds' median curve, in thousandths.

    The mean over seeds measures the width of the band that figures draw; unlike a standard
    deviation it has a value per seed, so that two runs can be compared seed by seed.
    """
    values = trace.of_rounds(name)
    return np.asarray(1e3 * np.abs(values - np.median(values, axis=0)).mean(1))


def tuned(runs: Mapping[Value, Trace], tolerance: float) -> Value:
    """The value of a grid whose run has the smallest late f among those with a feasible late g.

    Feasible is a mean late g of at most 1.05 times the tolerance. If none is feasible, the value
    with the smallest late g. Training data only.
    """
    f = {value: trace.late("f").mean() for value, trace in runs.items()}
    g = {value: trace.late("g").mean() for value, trace in runs.items()}
    feasible = [value for value in runs if g[value] <= FEASIBLE * tolerance]
    if feasible:
        return min(feasible, key=f.__getitem__)
    return min(g, key=g.__getitem__)


def over_limit(trace: Trace, tolerance: float, weight: float) -> Array:
    """Per seed and round, f plus a weight times what g exceeds the tolerance by."""
    excess_now = np.maximum(trace.of_rounds("g") - tolerance, 0)
    return np.asarray(trace.of_rounds("f") + weight * excess_now)
