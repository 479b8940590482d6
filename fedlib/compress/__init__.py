"""Compressors of vectors `[d]`, sketches of Jacobians `[M, d]`, and their wire formats."""

from fedlib.compress.compressors import Identity, RandK, Rounding, TopK
from fedlib.compress.lowrank import LowRank
from fedlib.compress.sketches import Exact, Largest, Masked

__all__ = [
    "Exact",
    "Identity",
    "Largest",
    "LowRank",
    "Masked",
    "RandK",
    "Rounding",
    "TopK",
]
