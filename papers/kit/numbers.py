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
        if self.once:
            words += " (one seed)"
        elif self.low != self.high and not np.isnan(self.low):
            words += f" [{self.low:{spec}}, {self.high:{spec}}]"
        return f"{words} {self.unit}".rstrip()

    @property
    def once(self) -> bool:
        """Whether it was measured on a single seed, which gives no interval."""
        return len(self.per_seed) == 1 and bool(np.isfinite(self.value) and np.isnan(self.low))

    def __rmul__(self, factor: float) -> Number:
        low, high = sorted((factor * self.low, factor * self.high))
        per_seed = tuple(factor * x for x in self.per_seed)
        return Number(factor * self.value, low, high, per_seed)

    def __abs__(self) -> Number:
        low, high = sorted((abs(self.low), abs(self.high)))
        return Number(
            abs(self.value),
            0.0 if self.low < 0 < self.high else low,
            high,
            (),
        )

    def meets(self, value: float, spread: float = 0.0) -> bool:
        """Whether a value, or another one as far from it as its spread, lies in the interval."""
        return self.low - spread <= value <= self.high + spread

    def shifted(self, by: float) -> Number:
        """The number with a constant added."""
        per_seed = tuple(x + by for x in self.per_seed)
        return Number(self.value + by, self.low + by, self.high + by, per_seed)

    def to_json(self) -> dict[str, Any]:
        """Plain values, rounded to six significant digits."""
        ends = {k: significant(getattr(self, k)) for k in ("value", "low", "high")}
        return {**ends, "per_seed": [significant(x) for x in self.per_seed], "unit": self.unit}

    @staticmethod
    def from_json(data: dict[str, Any]) -> Number:
        """The inverse of `to_json`; `null` is NaN."""
        stored = [data["value"], data["low"], data["high"], *data["per_seed"]]
        value, low, high, *per_seed = [np.nan if x is None else x for x in stored]
        return Number(
            value,
            low,
            high,
            tuple(per_seed),
            data["unit"],
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
    return _number(x.mean(), mean_ends(x), x, unit)


def share(flags: ArrayLike, unit: str = "of seeds") -> Number:
    """The share of the seeds that have a property, with the exact binomial interval.

    `flags` is one truth value a seed; with the unit `"%"` everything is in percent.
    """
    x = np.asarray(flags)
    scale = 100.0 if unit == "%" else 1.0
    ends = scipy.stats.binomtest(int(x.sum()), len(x)).proportion_ci(LEVEL, method="exact")
    return _number(
        scale * x.mean(),
        (scale * ends.low, scale * ends.high),
        scale * x,
        unit,
    )


def ratio(a: ArrayLike, b: ArrayLike, unit: str = "") -> Number:
    """Ratio of the means of two quantities measured on the same seeds, its interval by pairs."""
    x = np.asarray(a, float)
    y = np.asarray(b, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _number(x.mean() / y.mean(), ratio_ends(x, y), x / y, unit)


def over_seeds(values: Number | ArrayLike, unit: str = "") -> Number:
    """What a measure gives, as a number.

    The mean of values, the share of seeds for truth values, and what is a number already as it is.
    """
    if isinstance(values, Number):
        return values
    x = np.asarray(values)
    return share(x, unit) if x.dtype == bool else mean(x, unit)


def _number(value: Any, ends: tuple[Any, Any], per_seed: Any, unit: str) -> Number:
    low, high = map(float, ends) if np.isfinite(value) else (np.nan, np.nan)
    return Number(
        float(value),
        low,
        high,
        tuple(map(float, per_seed)),
        unit,
    )


def significant(x: float, digits: int = DIGITS) -> float | None:
    """Rounded to some significant digits; None (JSON's null) if it is not finite."""
    return float(f"{x:.{digits}g}") if np.isfinite(x) else None


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
        ratios = (top / bottom)[..., 0]
        factor = np.exp(_half(a / top - b / bottom))
        distance = _half((a - b * (top / bottom)) / bottom)
        low = np.where(ratios > 0, ratios / factor, ratios - distance)
        high = np.where(ratios > 0, ratios * factor, ratios + distance)
    return low, high


def seeds_for(x: Array, effect: float, power: float = 0.9) -> int:
    """The number of seeds at which a t test sees an effect with some power.

    `x` are the values per seed (of a comparison: the paired differences), whose scatter is taken
    for the true one; counts above 100 are met within 2 %. At least 3, also where nothing scatters.
    """
    scatter = float(np.std(x, ddof=1))
    if not scatter or not effect:
        return 3
    size = abs(effect) / scatter
    of_normal = ((scipy.special.ndtri((1 + LEVEL) / 2) + scipy.special.ndtri(power)) / size) ** 2
    n = 3
    while n < of_normal or not _sees(size, n, power):  # Student's t needs more than the normal
        n = max(n + 1, int(1.02 * n))
    return n


def _sees(size: float, n: int, power: float) -> bool:
    """Whether a t test of n values sees a mean of some size, in units of their scatter."""
    free = n - 1
    return bool(1 - scipy.special.nctdtr(free, size * np.sqrt(n), _quantile(free)) >= power)


def _quantile(free: int) -> Any:
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
