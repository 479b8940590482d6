"""fedlib: constrained and multi-objective federated optimization, as the papers write it."""

from fedlib.algorithms import SGM, ConEx, FedAvg, FedSGM, PenaltyFedAvg, PolicyFedSGM
from fedlib.compress import Identity, RandK, Rounding, TopK
from fedlib.federation import Loop, Vectorized
from fedlib.run import Diverged, run
from fedlib.switching import Hard, Soft
from fedlib.trace import Trace
from fedlib.types import Problem

__version__ = "0.1.0"

__all__ = [
    "SGM",
    "ConEx",
    "Diverged",
    "FedAvg",
    "FedSGM",
    "Hard",
    "Identity",
    "Loop",
    "PenaltyFedAvg",
    "PolicyFedSGM",
    "Problem",
    "RandK",
    "Rounding",
    "Soft",
    "TopK",
    "Trace",
    "Vectorized",
    "run",
]
