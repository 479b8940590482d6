"""The core of the library: problems, clients, the line between client and server, traces."""

from fedlib.core.federation import Loop, Sequential, Vectorized
from fedlib.core.problem import Problem
from fedlib.core.trace import Trace

__all__ = ["Loop", "Problem", "Sequential", "Trace", "Vectorized"]
