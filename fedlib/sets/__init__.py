"""Convex sets with projections and linear minimization oracles."""

from fedlib.sets.balls import Ball, L1Ball, Simplex
from fedlib.sets.blocks import Blocks, PerClient
from fedlib.sets.box import Box
from fedlib.sets.nuclear import NuclearBall

__all__ = ["Ball", "Blocks", "Box", "L1Ball", "NuclearBall", "PerClient", "Simplex"]
