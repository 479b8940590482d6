"""Numbers with an interval over seeds: what tables, sentences and verdicts are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

RESAMPLES = 4999


@dataclass(frozen=True)
class Number:
    """A measured value with its 95 % bootstrap interval over seeds.

    `per_seed` are the single values (for a ratio: the ratio of each seed), `unit` what is counted.
    """

    value: float
    low: float
    high: float
    per_seed: tuple[float, ...]
    unit: str = ""

    def text(self, spec: str = ".3g") -> str:
        """`value [low, high] unit`, as tables show it."""
        interval = f"{self.value:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"
        return f"{interval} {self.unit}".rstrip()

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
        back = {k: number(data[k]) for k in ("value", "low", "high")}
        return Number(**back, per_seed=tuple(map(number, data["per_seed"])), unit=data["unit"])


def mean(per_seed: ArrayLike, unit: str = "") -> Number:
    """The mean over seeds with its bootstrap interval (scipy, percentile, fixed resampling)."""
    x = np.asarray(per_seed, float)
    return _bootstrap((x,), lambda a, axis=-1: np.mean(a, axis=axis), x, unit)


def measured(traces: Mapping[str, Any], measures: Mapping[str, Any]) -> dict[str, Number]:
    """`run.measure` -> the mean over seeds, for every run and measure.

    A measure is a function of a run's Trace that gives a value per seed, or a pair of one and the
    unit.
    """
    found = {}
    for name, trace in traces.items():
        for key, measure in measures.items():
            of, unit = measure if isinstance(measure, tuple) else (measure, "")
            found[f"{name}.{key}"] = mean(of(trace), unit)
    return found


def ratio(a: ArrayLike, b: ArrayLike, unit: str = "") -> Number:
    """Ratio of the means of two quantities measured on the same seeds, resampled in pairs."""
    x, y = np.asarray(a, float), np.asarray(b, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _bootstrap(
            (x, y), lambda p, q, axis=-1: p.mean(axis=axis) / q.mean(axis=axis), x / y, unit
        )


def difference(a: ArrayLike, b: ArrayLike, unit: str = "") -> Number:
    """The mean of `b` minus the mean of `a`, of two groups of seeds that are resampled apart.

    There is no value per seed: `per_seed` is empty. For the same seeds take `mean(b - a)`, whose
    interval is narrower because what a seed does to both cancels.
    """
    x, y = np.asarray(a, float), np.asarray(b, float)
    return _bootstrap(
        (x, y), lambda p, q, axis=-1: q.mean(axis=axis) - p.mean(axis=axis), (), unit, paired=False
    )


def _bootstrap(
    samples: Sequence[Any],
    statistic: Callable[..., Any],
    each: Any,
    unit: str,
    *,
    paired: bool = True,
) -> Number:
    value = float(statistic(*samples))
    still = all(np.ptp(s) == 0 for s in samples)
    if still or min(map(len, samples)) < 2 or not np.isfinite(value):
        return Number(value, value, value, tuple(map(float, each)), unit)
    interval = stats.bootstrap(
        samples,
        statistic,
        paired=paired,
        vectorized=True,
        n_resamples=RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return Number(value, float(interval.low), float(interval.high), tuple(map(float, each)), unit)


def significant(x: float, digits: int = 6) -> float | None:
    """Rounded to some significant digits; None (JSON's null) if it is not finite."""
    return float(f"{x:.{digits}g}") if np.isfinite(x) else None


def number(x: float | None) -> float:
    return float("nan") if x is None else float(x)
