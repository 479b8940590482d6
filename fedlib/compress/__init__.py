"""What travels: compressors of vectors, sketches and low-rank factors of matrices."""

from fedlib.compress.compressors import Identity, RandK, Rounding, TopK
from fedlib.compress.lowrank import LowRank
from fedlib.compress.sketches import Exact, Largest, Masked

__all__ = ["Exact", "Identity", "Largest", "LowRank", "Masked", "RandK", "Rounding", "TopK"]
