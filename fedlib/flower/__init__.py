"""The same algorithms on a real federation: both ends of a round, and Flower between them."""

from fedlib.flower.job import Job
from fedlib.flower.parts import part, placed

__all__ = ["Job", "part", "placed"]
