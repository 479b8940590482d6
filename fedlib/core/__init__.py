"""The run: problems, clients, the line between client and server, rounds, traces."""

from fedlib.core.federation import Loop, Sequential, Vectorized
from fedlib.core.run import run
from fedlib.core.trace import Trace
from fedlib.core.types import Problem
from fedlib.core.walk import Diverged

__all__ = [
    "Diverged",
    "Loop",
    "Problem",
    "Sequential",
    "Trace",
    "Vectorized",
    "run",
]
