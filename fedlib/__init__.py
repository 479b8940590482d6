"""fedlib: constrained and multi-objective federated optimization, as the papers write it."""

from fedlib.algorithms import (
    FSMGDA,
    MGDA,
    SGM,
    SSCA,
    ConEx,
    ConstrainedSSCA,
    ConstrainedVerticalSSCA,
    FedAvg,
    FedCMOO,
    FedCMOOPref,
    FedCMOOTheory,
    FedSGM,
    MiniBatchSGD,
    PenaltyFedAvg,
    PolicyFedSGM,
    Scalarized,
    VerticalSGD,
    VerticalSSCA,
)
from fedlib.compress import Identity, RandK, Rounding, TopK
from fedlib.federation import Loop, Sequential, Vectorized
from fedlib.gram import MeanOfGrams, OneWay, TwoWay
from fedlib.lowrank import LowRank
from fedlib.preference import Preference
from fedlib.run import Diverged, run
from fedlib.schedules import PowerLaw
from fedlib.sketches import Exact, Largest, Masked
from fedlib.switching import Hard, Soft
from fedlib.trace import Trace
from fedlib.types import Problem
from fedlib.weights import FindWeights, Least, MinNorm

__version__ = "0.1.0"

__all__ = [
    "FSMGDA",
    "MGDA",
    "SGM",
    "SSCA",
    "ConEx",
    "ConstrainedSSCA",
    "ConstrainedVerticalSSCA",
    "Diverged",
    "Exact",
    "FedAvg",
    "FedCMOO",
    "FedCMOOPref",
    "FedCMOOTheory",
    "FedSGM",
    "FindWeights",
    "Hard",
    "Identity",
    "Largest",
    "Least",
    "Loop",
    "LowRank",
    "Masked",
    "MeanOfGrams",
    "MinNorm",
    "MiniBatchSGD",
    "OneWay",
    "PenaltyFedAvg",
    "PolicyFedSGM",
    "PowerLaw",
    "Preference",
    "Problem",
    "RandK",
    "Rounding",
    "Scalarized",
    "Sequential",
    "Soft",
    "TopK",
    "Trace",
    "TwoWay",
    "Vectorized",
    "VerticalSGD",
    "VerticalSSCA",
    "run",
]
