"""When curves first reach a level."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlib.core.trace import Array


def rounds_to(rounds: NDArray[Any], curves: Iterable[Array], levels: Iterable[float]) -> Array:
    """The round in which each curve first falls to its level; the last one if it never does.

    Between two evaluations a curve is taken as straight. The last round in place of "never" makes
    differences between runs smaller than they are, not larger.
    """
    reached = []
    for curve, level in zip(curves, levels, strict=True):
        below = np.flatnonzero(curve <= level)
        if len(below) == 0:
            reached.append(rounds[-1])
            continue
        first = below[0]
        around = slice(max(first - 1, 0), first + 1)
        crossing = np.interp(-level, -curve[around], rounds[around])
        reached.append(crossing)
    return np.array(reached, float)
