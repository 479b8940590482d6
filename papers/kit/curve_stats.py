"""How curves of runs go: where they end, how noisy they are, whether they rest. `[S, T]` each."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import NDArray

Curve = NDArray[np.float64]  # [S, T]: a metric at the evaluated rounds, of every seed
PerSeed = NDArray[np.float64]  # [S]
Seeds = NDArray[np.bool_]  # [S]: which of them
Way = Literal["settled", "still improving", "worsening", "unknown"]

LATE = 0.1  # share of the evaluated rounds whose mean is where a run ends
STRETCH = 0.2  # share of the evaluated rounds, the last, that a dead curve rests at least
SMALL = 0.02  # of the whole progress: what changes less from one tenth to the next has settled
ABRUPT = 1e-3  # of the whole range: who comes to rest at an optimum makes smaller steps before
DIGIT = 1e-5  # curves are stored with six significant digits
TWICE = 2.0  # standard errors that are more than noise
COVERED = 0.95  # of the interval over seeds
FEWEST = 5  # evaluated rounds from which scatter can be read


def tenth(x: Curve) -> int:
    """Evaluated rounds in the last tenth of a run, its start left out."""
    return max(1, round(LATE * (len(x[0]) - 1)))


def stretch(x: Curve) -> int:
    """Evaluated rounds that a dead curve rests at least."""
    return max(2, round(STRETCH * (len(x[0]) - 1)))


def late(x: Curve) -> PerSeed:
    """The mean over the last tenth."""
    return np.asarray(x[:, -tenth(x) :].mean(1))


def noise(y: Curve) -> PerSeed:
    """The standard error of the mean over the last tenth, from the scatter over the last fifth.

    Scatter is that from one evaluated round to the next about their common pace, so that a steady
    course has none; 0 where too few rounds are evaluated to tell.
    """
    n = tenth(y)
    steps = np.diff(y[:, -max(2 * n, 3) - 1 :], axis=1)
    if y.shape[1] < FEWEST:
        return np.zeros(len(y))
    return np.asarray(steps.std(1, ddof=1) / np.sqrt(2.0 * n))


def gains(y: Curve) -> Seeds:
    """Seeds whose curve ends lower than it starts, by more than rounding and noise."""
    return np.asarray(y[:, 0] - late(y) > np.maximum(TWICE * noise(y), DIGIT * np.abs(y).max(1)))


def way(y: Curve) -> Way:
    """Where the mean over seeds of a curve that should fall goes, by its last two tenths.

    Settled if their difference is less than a fiftieth of the whole progress (at that pace as many
    rounds again would add less than a fifth to it), or within noise: the interval over seeds holds
    0, or with fewer than three seeds the scatter of single rounds explains it.
    """
    n = tenth(y)
    if y.shape[1] < 2 * n + 2:
        return "unknown"
    change = y[:, -n:].mean(1) - y[:, -2 * n : -n].mean(1)
    progress = np.abs(y.mean(0) - y[:, 0].mean()).max()
    spread = TWICE * np.sqrt(2.0 * (noise(y) ** 2).mean() / len(y))
    if len(y) > 2:
        spread = scipy.stats.sem(change) * scipy.stats.t.ppf((1 + COVERED) / 2, len(y) - 1)
    if abs(change.mean()) <= max(SMALL * progress, spread, DIGIT * np.abs(y).max()):
        return "settled"
    return "still improving" if change.mean() < 0 else "worsening"


def first_below(t: NDArray[Any], x: Curve, level: PerSeed | float) -> PerSeed:
    """The round at which each curve first falls to its level; the last one if it never does.

    Between two evaluations, at the rounds `t [T]`, a curve is taken as straight.
    """
    goals = np.broadcast_to(level, len(x))
    found = np.full(len(x), float(t[-1]))
    for s, (curve, goal) in enumerate(zip(x, goals, strict=True)):
        below = np.flatnonzero(curve <= goal)
        if len(below):
            two = slice(max(below[0] - 1, 0), below[0] + 1)
            found[s] = np.interp(-goal, -curve[two], t[two])
    return found


def rests_from(x: Curve) -> NDArray[np.int64]:
    """The column from which each seed's curve is exactly constant to the end, `[S]`."""
    same = (x == x[:, -1:])[:, ::-1]
    return np.asarray(np.where(same.all(1), 0, x.shape[1] - same.argmin(1)))


def abruptly(x: Curve) -> Seeds:
    """Seeds whose curve came to rest from a step that was not small."""
    since, rows = rests_from(x), np.arange(len(x))
    step = np.abs(x[rows, since] - x[rows, np.maximum(since - 1, 0)])
    return np.asarray(step > np.maximum(ABRUPT * np.ptp(x, axis=1), DIGIT * np.abs(x[:, -1])))


def moves(x: Curve) -> Seeds:
    """Seeds whose curve leaves its start by more than rounding."""
    return np.asarray(np.abs(x - x[:, :1]).max(1) > DIGIT * np.abs(x).max(1))
