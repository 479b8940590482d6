"""Convex sets with projections and linear minimization oracles."""

from fedlib.sets.balls import Ball, Box, L1Ball, NuclearBall, Simplex
from fedlib.sets.blocks import Blocks, PerClient

__all__ = ["Ball", "Blocks", "Box", "L1Ball", "NuclearBall", "PerClient", "Simplex"]
