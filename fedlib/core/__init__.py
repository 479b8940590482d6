"""The run: problems, clients, the line between client and server, rounds, traces."""

from fedlib.core.batched import Diverged
from fedlib.core.federation import Loop, Sequential, Vectorized
from fedlib.core.run import run
from fedlib.core.trace import Trace
from fedlib.core.types import Problem

__all__ = [
    "Diverged",
    "Loop",
    "Problem",
    "Sequential",
    "Trace",
    "Vectorized",
    "run",
]
