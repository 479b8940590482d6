"""How closely a run that is computed again, alone, elsewhere, follows the stored one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Tolerance:
    """How far a run computed anew is that of before, and up to what.

    Attributes
    ----------
    rounds : how many of the first, where rounding in another order ends an episode a step earlier,
        or doubles in a network every few steps; None where it is the same to the end.
    rtol, atol : how much a value may differ, of itself and of the largest of its curve.
    timed : curves that are measured times, which are never the same.
    """

    rounds: int | None = None
    rtol: float = 2e-3
    atol: float = 1e-5
    timed: tuple[str, ...] = ()


def tolerance_of(run: str, tolerances: Mapping[str, Tolerance]) -> Tolerance:
    """What a study says of a run: the first pattern that its name fits; the usual if none does."""
    fits = (one for pattern, one in tolerances.items() if fnmatchcase(run, pattern))
    return next(fits, Tolerance())
