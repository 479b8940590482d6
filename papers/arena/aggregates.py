"""Over problems and seeds: interquartile means, and probabilities of improvement.

R. Agarwal, M. Schwarzer, P. S. Castro, A. Courville, M. G. Bellemare, *Deep Reinforcement Learning
at the Edge of the Statistical Precipice*, NeurIPS 2021: the mean of the middle half of all scores,
and P(X better than Y), the mean over problems of the share of pairs of runs (ties count half). The
paper takes percentile intervals of a bootstrap, which cover 88 % instead of 95 at five seeds; here
they are Student's t on the jackknife's values (94 %).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy

from fedlib.core.trace import Array
from papers.arena.contest import has
from papers.arena.rules import PLACES, Field
from papers.kit.numbers import Number, mean

#: Methods are compared over problems that all of them can take.
GROUPS = {
    "functions": ("np", "fair", "pair", "sparse"),
    "positive": ("np", "pair", "sparse"),
    "sets": ("sparse", "rank"),
}
BOTH = ("grads", "grads_mean")

Scores = Array  # problems down, seeds across, perhaps many of these


def aggregates(fields: Sequence[Field]) -> dict[str, Number]:
    """`GROUP_METHOD_PLACE.iqm`, and `.better`, the probability to improve on the best by it."""
    found: dict[str, Number] = {}
    for group, names in GROUPS.items():
        there = [field for field in fields if field.problem in names]
        if len(there) < len(names):
            continue
        for place in BOTH:
            scores = scores_of(there, place)
            best = max(scores, key=lambda m: float(iqm(scores[m])))
            for method, x in scores.items():
                key = f"{group}_{method}_{place}"
                found[f"{key}.iqm"] = estimate(iqm, x)
                found[f"{key}.better"] = estimate(better, x, scores[best])
    return found


def scores_of(fields: Sequence[Field], place: str) -> dict[str, Scores]:
    """Scores of the tuned methods that take part everywhere."""
    common = [m for m in fields[0].runs if all(m in f.runs and has(f, m, place) for f in fields)]
    seeds = min(len(field.reference.seeds) for field in fields)
    return {m: np.stack([score(f, m, place)[:seeds] for f in fields]) for m in common}


def score(field: Field, method: str, place: str) -> Array:
    """1 at the optimum, 0 as far off it as the start, on the test rows; a value a seed."""
    x = field.tuned(method, place)
    start = field.off(x.trace, "test_")[:, 0]
    return np.asarray(1 - field.off(x.trace, f"{PLACES[place][1]}test_")[:, x.at] / start)


def iqm(scores: Scores) -> Array:
    """The mean of the middle half, over the last two axes."""
    flat = scores.reshape(*scores.shape[:-2], -1)
    return np.asarray(scipy.stats.trim_mean(flat, 0.25, axis=-1))


def better(x: Scores, y: Scores) -> Array:
    """P(X better than Y), over all pairs of runs of a problem, the mean over problems."""
    above = x[..., :, None] - y[..., None, :]
    return np.asarray(((above > 0) + 0.5 * (above == 0)).mean((-1, -2, -3)))


def estimate(statistic: Callable[..., Array], *groups: Scores) -> Number:
    """A statistic with a 95 % interval: t on the jackknife's values, a seed left out everywhere."""
    whole, seeds = float(statistic(*groups)), groups[0].shape[-1]
    left = [float(statistic(*(np.delete(x, s, -1) for x in groups))) for s in range(seeds)]
    spread = mean([seeds * whole - (seeds - 1) * x for x in left])
    half = (spread.high - spread.low) / 2
    return Number(whole, whole - half, whole + half, ())
