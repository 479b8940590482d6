"""Feasible sets, their projections and their vertices."""

from fedlib.sets.balls import Ball, Box
from fedlib.sets.blocks import Blocks, PerClient
from fedlib.sets.nuclear import NuclearBall
from fedlib.sets.sparse import L1Ball, Simplex

__all__ = ["Ball", "Blocks", "Box", "L1Ball", "NuclearBall", "PerClient", "Simplex"]
