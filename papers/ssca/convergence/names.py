"""The runs of SSCA's Figures 2 and 3 by their names, as the claims need them."""

from __future__ import annotations

from papers.kit.rules import stat_value
from papers.ssca.common import LEVELS, SPLITS

BATCHES = (1, 10, 100)
RATES, FALLS = (0.1, 0.3, 1.0, 3.0), (0.0, 0.3)
NUMBER = {"samples": (1, 2), "features": (3, 4)}  # the algorithms of a split
SEARCHED = ("*_sgd*_a3_p*",)  # the largest step of the grid may diverge: it is not chosen
OWN = {split: tuple(f"{split}_ssca_B{b}" for b in BATCHES) for split in SPLITS}
LIMITS = tuple(f"{s}_limit_B{b}_U{u:g}" for s in SPLITS for b in BATCHES for u in LEVELS)


def grid(kind: str, *batches: int) -> tuple[str, ...]:
    return tuple(f"{kind}_B{b}_a{a:g}_p{p:g}" for b in batches for a in RATES for p in FALLS)


def values(*keys: str) -> str:
    """Some numbers in one text, without intervals."""
    return " / ".join(map(stat_value, keys))
