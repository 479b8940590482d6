"""Both ends of a round: the same algorithms where server and clients are processes of their own."""

from fedlib.federated.job import Job
from fedlib.federated.parts import part, placed

__all__ = ["Job", "part", "placed"]
