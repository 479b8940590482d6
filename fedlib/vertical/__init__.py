"""Clients that hold features in place of rows."""

from fedlib.vertical.composite import Composite, Partition, Party, contiguous
from fedlib.vertical.line import VerticalProblem, vertical

__all__ = ["Composite", "Partition", "Party", "VerticalProblem", "contiguous", "vertical"]
