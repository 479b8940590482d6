"""Confidence intervals for what is measured once a seed, by the kind of number.

Every function looks along the last axis, so that many samples at once can be given. A quantity
that is the same for all seeds has an interval of no width; of a single seed there is none, and its
ends are NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

LEVEL = 0.95

Array = NDArray[Any]
Ends = tuple[Array, Array]


def mean_ends(x: Array) -> Ends:
    """Student's t about the mean; of paired differences it is the paired t interval."""
    middle, half = x.mean(-1), _half(x)
    return middle - half, middle + half


def ratio_ends(a: Array, b: Array) -> Ends:
    """The ratio of the means of pairs, by the delta method with the quantile of Student's t.

    On the log scale where the ratio is positive, which keeps it so; else on the plain one. The
    other common interval, Fieller's, is often the whole line at three seeds.
    """
    top, bottom = a.mean(-1, keepdims=True), b.mean(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        r = (top / bottom)[..., 0]
        relative = np.exp(_half(a / top - b / bottom))
        plain = _half((a - b * (top / bottom)) / bottom)
        positive = r > 0
        return (
            np.where(positive, r / relative, r - plain),
            np.where(positive, r * relative, r + plain),
        )


def difference_ends(a: Array, b: Array) -> Ends:
    """The mean of `b` minus that of `a`, of two groups of seeds, by Welch's t."""
    moved = b.mean(-1) - a.mean(-1)
    if min(a.shape[-1], b.shape[-1]) < 2:
        return np.full_like(moved, np.nan), np.full_like(moved, np.nan)
    parts = [np.where(np.ptp(x, -1) == 0, 0, x.var(-1, ddof=1) / x.shape[-1]) for x in (a, b)]
    total = parts[0] + parts[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        free = total**2 / sum(v**2 / (x.shape[-1] - 1) for v, x in zip(parts, (a, b), strict=True))
        half = _quantile(free) * np.sqrt(total)
    half = np.where(total == 0, 0.0, half)
    return moved - half, moved + half


def share_ends(hits: int, seeds: int) -> tuple[float, float]:
    """A share of seeds: the exact binomial interval of Clopper and Pearson."""
    found = scipy.stats.binomtest(hits, seeds).proportion_ci(LEVEL, method="exact")
    return float(found.low), float(found.high)


def seeds_for(x: Array, effect: float, power: float = 0.9) -> int:
    """The number of seeds at which a t test sees an effect with some power.

    `x` are the values per seed (of a comparison: the paired differences), whose scatter is taken
    for the true one; counts above 100 are met within 2 %. At least 3, also where nothing scatters.
    """
    scatter = float(np.std(x, ddof=1))
    if not scatter or not effect:
        return 3
    n = 3
    while True:
        free, shift = n - 1, abs(effect) / scatter * np.sqrt(n)
        if 1 - scipy.special.nctdtr(free, shift, _quantile(free)) >= power:
            return n
        n = max(n + 1, int(1.02 * n))


def _quantile(free: Any) -> Any:
    """Of Student's t: what `scipy.stats.t.ppf` calls, which takes long to import."""
    return scipy.special.stdtrit(free, (1 + LEVEL) / 2)


def _half(x: Array) -> Array:
    """Half the width of the t interval of a mean; NaN for one value, 0 for equal ones."""
    n = x.shape[-1]
    if n < 2:
        return np.full(x.shape[:-1], np.nan)
    with np.errstate(invalid="ignore"):
        half = _quantile(n - 1) * x.std(-1, ddof=1) / np.sqrt(n)
        return np.where(np.ptp(x, -1) == 0, 0.0, half)
