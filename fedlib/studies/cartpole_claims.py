"""Claims of the full paper about constrained cartpole."""

from __future__ import annotations

from fedlib.claims import Claim, PaperValue

__all__ = ["CLAIMS", "PAPER_VALUES"]

CLAIMS: tuple[Claim, ...] = ()
PAPER_VALUES: tuple[PaperValue, ...] = ()
