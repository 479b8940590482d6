"""How often the intervals over seeds hold the true value, found by simulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from papers.kit.intervals import Ends, difference_ends, mean_ends, ratio_ends, share_ends

Array = NDArray[Any]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]

SEEDS = (3, 5, 10, 20)
SPREAD = 0.25  # standard deviation of the normal data about their mean of 1
LOG_SPREAD = 0.5  # standard deviation of the logarithm of the lognormal data

#: What the values of single seeds are drawn from, each with a mean of 1.
DISTRIBUTIONS: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.normal(1, SPREAD, shape),
    "lognormal": lambda rng, shape: rng.lognormal(-(LOG_SPREAD**2) / 2, LOG_SPREAD, shape),
    "exponential": lambda rng, shape: rng.exponential(1, shape),
}

#: Kind of number -> the interval from two groups of values, and the true value.
KINDS: dict[str, tuple[Callable[[Array, Array], Ends], float]] = {
    "mean": (lambda a, _: mean_ends(a), 1.0),
    "paired difference": (lambda a, b: mean_ends(b - a), 0.0),
    "difference of two groups": (difference_ends, 0.0),
    "ratio of means": (ratio_ends, 1.0),
}


def coverage(kind: str, distribution: str, seeds: int, samples: int = 20_000) -> float:
    """The share of simulated samples whose interval holds the true value; always the same."""
    rng = np.random.default_rng([seeds, [*DISTRIBUTIONS].index(distribution)])
    a, b = (DISTRIBUTIONS[distribution](rng, (samples, seeds)) for _ in range(2))
    ends, truth = KINDS[kind]
    low, high = ends(a, b)
    return float(((low <= truth) & (truth <= high)).mean())


def share_coverage(share: float, seeds: int) -> float:
    """The same of a share of seeds, without simulation: all counts by their probabilities."""
    hits = np.arange(seeds + 1)
    ends = [share_ends(int(k), seeds) for k in hits]
    held = [low <= share <= high for low, high in ends]
    return float(scipy.stats.binom.pmf(hits, seeds, share) @ np.array(held))


def table() -> list[tuple[str, str, list[float]]]:
    """Kind, distribution, and the coverage at each of `SEEDS`."""
    rows = [
        (kind, distribution, [coverage(kind, distribution, n) for n in SEEDS])
        for kind in KINDS
        for distribution in DISTRIBUTIONS
    ]
    return [*rows, *(_of_shares(share) for share in (0.5, 0.9))]


def _of_shares(share: float) -> tuple[str, str, list[float]]:
    return "share of seeds", f"{100 * share:.0f} % true", [share_coverage(share, n) for n in SEEDS]
