"""Numbers with an interval over seeds: what tables, sentences and verdicts are made of.

The functions of intervals look along the last axis. A quantity that is the same for all seeds has
an interval of no width; of a single seed there is none, and its ends are NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
Ends = tuple[Array, Array]

DIGITS = 6  # that a number is stored with
LEVEL = 0.95  # of all intervals
POWER = 0.9  # of a test that has enough seeds


def first_minus_last(values: Array) -> Array:
    """Values of the first half of the seeds minus those of the last half: null data.

    `values` are `[S]` or `[S, T]`. Of three seeds one is in both halves. Fewer give no row.
    """
    count = len(values)
    if count < 3:
        return values[:0]
    half = max(2, count // 2)
    return np.asarray(values[:half] - values[count - half :])


@dataclass(frozen=True)
class Number:
    """A measured value with its 95 % interval over seeds.

    `low` and `high` are the value itself where no seed changes it, and NaN where there is no
    interval: a single seed, or a value that is not finite. `per_seed` are the single values (for a
    ratio: the ratio of each seed), `unit` what is counted.
    """

    value: float
    low: float
    high: float
    per_seed: tuple[float, ...]
    unit: str = ""

    def text(self, spec: str = ".3g") -> str:
        """`value [low, high] unit`, as tables show it; without brackets where nothing varies."""
        words = f"{self.value:{spec}}"
        varies = self.low != self.high
        if self.once:
            words += " (one seed)"
        elif varies and not np.isnan(self.low):
            words += f" [{self.low:{spec}}, {self.high:{spec}}]"
        return f"{words} {self.unit}".rstrip()

    @property
    def once(self) -> bool:
        """Whether it was measured on a single seed, which gives no interval."""
        if len(self.per_seed) != 1:
            return False
        return bool(np.isfinite(self.value) and np.isnan(self.low))

    def __rmul__(self, factor: float) -> Number:
        value = factor * self.value
        low, high = sorted((factor * self.low, factor * self.high))
        per_seed = tuple(factor * x for x in self.per_seed)
        return Number(value, low, high, per_seed)

    def __abs__(self) -> Number:
        value = abs(self.value)
        low, high = sorted((abs(self.low), abs(self.high)))
        if self.low < 0 < self.high:
            low = 0.0
        return Number(value, low, high, ())

    def meets(self, value: float, spread: float = 0.0) -> bool:
        """Whether a value, or another one as far from it as its spread, lies in the interval."""
        return self.low - spread <= value <= self.high + spread

    def shifted(self, by: float) -> Number:
        """The number with a constant added."""
        value = self.value + by
        low = self.low + by
        high = self.high + by
        per_seed = tuple(x + by for x in self.per_seed)
        return Number(value, low, high, per_seed)

    def to_json(self) -> dict[str, Any]:
        """Plain values, rounded to six significant digits."""
        return {
            "value": significant(self.value),
            "low": significant(self.low),
            "high": significant(self.high),
            "per_seed": [significant(x) for x in self.per_seed],
            "unit": self.unit,
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> Number:
        """The inverse of `to_json`; `null` is NaN."""
        return Number(
            value=_read(data["value"]),
            low=_read(data["low"]),
            high=_read(data["high"]),
            per_seed=tuple(map(_read, data["per_seed"])),
            unit=data["unit"],
        )


def exact(x: float, unit: str = "") -> Number:
    """A number that no seed changes: counted bits, a closed form, a setting, a count of runs."""
    value = float(x)
    return Number(value, value, value, (value,), unit)


def mean(per_seed: ArrayLike, unit: str = "") -> Number:
    """The mean over seeds with Student's t interval.

    Equal values have an interval of no width; a single seed has none, and its ends are NaN.
    """
    x = np.asarray(per_seed, float)
    ends = mean_ends(x)
    return _number(x.mean(), ends, x, unit)


def share(flags: ArrayLike, unit: str = "of seeds") -> Number:
    """The share of the seeds that have a property, with the exact binomial interval.

    `flags` is one truth value a seed; with the unit `"%"` everything is in percent.
    """
    x = np.asarray(flags)
    scale = 100.0 if unit == "%" else 1.0
    count = int(x.sum())
    test = scipy.stats.binomtest(count, len(x))
    interval = test.proportion_ci(LEVEL, method="exact")
    ends = (scale * interval.low, scale * interval.high)
    return _number(scale * x.mean(), ends, scale * x, unit)


def ratio(a: ArrayLike, b: ArrayLike, unit: str = "") -> Number:
    """Ratio of the means of two quantities measured on the same seeds, its interval by pairs."""
    x = np.asarray(a, float)
    y = np.asarray(b, float)
    ends = ratio_ends(x, y)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = x.mean() / y.mean()
        per_seed = x / y
    return _number(value, ends, per_seed, unit)


def over_seeds(values: Number | ArrayLike, unit: str = "") -> Number:
    """What a measure gives, as a number.

    The mean of values, the share of seeds for truth values, and what is a number already as it is.
    """
    if isinstance(values, Number):
        return values
    x = np.asarray(values)
    if x.dtype == bool:
        return share(x, unit)
    return mean(x, unit)


def _number(value: Any, ends: tuple[Any, Any], per_seed: Any, unit: str) -> Number:
    """A number of plain floats; without an interval where the value is not finite."""
    low, high = map(float, ends)
    if not np.isfinite(value):
        low = np.nan
        high = np.nan
    return Number(
        float(value),
        low,
        high,
        tuple(map(float, per_seed)),
        unit,
    )


def significant(x: float, digits: int = DIGITS) -> float | None:
    """Rounded to some significant digits; None (JSON's null) if it is not finite."""
    if not np.isfinite(x):
        return None
    return float(f"{x:.{digits}g}")


def _read(stored: float | None) -> float:
    """The inverse of `significant`."""
    return np.nan if stored is None else stored


def mean_ends(x: Array) -> Ends:
    """Student's t about the mean; of paired differences it is the paired t interval."""
    middle = x.mean(-1)
    half = _half(x)
    return middle - half, middle + half


def ratio_ends(a: Array, b: Array) -> Ends:
    """The ratio of the means of pairs, by the delta method with the quantile of Student's t.

    On the log scale where the ratio is positive, which keeps it so; else on the plain one. The
    other common interval, Fieller's, is often the whole line at three seeds.
    """
    top = a.mean(-1, keepdims=True)
    bottom = b.mean(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        slopes = top / bottom
        ratios = slopes[..., 0]
        positive = ratios > 0
        log_errors = a / top - b / bottom
        factor = np.exp(_half(log_errors))
        errors = (a - b * slopes) / bottom
        distance = _half(errors)
        low = np.where(positive, ratios / factor, ratios - distance)
        high = np.where(positive, ratios * factor, ratios + distance)
    return low, high


def seeds_for(x: Array, effect: float) -> int:
    """The number of seeds at which a t test sees an effect with 90 % power.

    `x` are the values per seed (of a comparison: the paired differences), whose scatter is taken
    for the true one; counts above 100 are met within 2 %. At least 3, also where nothing scatters.
    """
    scatter = float(np.std(x, ddof=1))
    if not scatter or not effect:
        return 3
    size = abs(effect) / scatter
    normal_quantile = scipy.special.ndtri((1 + LEVEL) / 2)
    power_quantile = scipy.special.ndtri(POWER)
    of_normal = ((normal_quantile + power_quantile) / size) ** 2
    n = 3
    while n < of_normal or not _sees(size, n):  # Student's t needs more than the normal
        n = max(n + 1, int(1.02 * n))
    return n


def _sees(size: float, n: int) -> bool:
    """Whether a t test of n values sees a mean of some size, in units of their scatter."""
    free = n - 1
    center = size * np.sqrt(n)
    missed = scipy.special.nctdtr(free, center, _quantile(free))
    return bool(1 - missed >= POWER)


def _quantile(free: int) -> Any:
    """Of Student's t: what `scipy.stats.t.ppf` calls, which takes long to import."""
    return scipy.special.stdtrit(free, (1 + LEVEL) / 2)


def _half(x: Array) -> Array:
    """Half the width of the t interval of a mean; NaN for one value, 0 for equal ones."""
    n = x.shape[-1]
    if n < 2:
        return np.full(x.shape[:-1], np.nan)
    with np.errstate(invalid="ignore"):
        scatter = x.std(-1, ddof=1)
        half = _quantile(n - 1) * scatter / np.sqrt(n)
        equal = np.ptp(x, -1) == 0
    return np.where(equal, 0.0, half)
