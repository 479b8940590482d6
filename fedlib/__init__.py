"""fedlib: constrained and multi-objective federated optimization, as the papers write it."""

from fedlib.account import hold_to_account
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
    FedDR,
    FedFW,
    FedFWPlus,
    FedFWReset,
    FedFWSto,
    FedProx,
    FedSGM,
    MiniBatchSGD,
    NaiveFW,
    PenaltyFedAvg,
    PenaltySGM,
    PolicyFedSGM,
    Scalarized,
    VerticalSGD,
    VerticalSSCA,
)
from fedlib.blocks import Blocks, PerClient
from fedlib.compare import compare
from fedlib.compress import Identity, RandK, Rounding, TopK
from fedlib.federation import Loop, Sequential, Vectorized
from fedlib.gram import MeanOfGrams, OneWay, TwoWay
from fedlib.lowrank import LowRank
from fedlib.nuclear import NuclearBall
from fedlib.preference import Preference
from fedlib.run import Diverged, run
from fedlib.schedules import Convex, Fixed, Nonconvex, PowerLaw, Stochastic
from fedlib.sets import Ball, Box
from fedlib.sketches import Exact, Largest, Masked
from fedlib.sparse_sets import L1Ball, Simplex
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
    "Ball",
    "Blocks",
    "Box",
    "ConEx",
    "ConstrainedSSCA",
    "ConstrainedVerticalSSCA",
    "Convex",
    "Diverged",
    "Exact",
    "FedAvg",
    "FedCMOO",
    "FedCMOOPref",
    "FedCMOOTheory",
    "FedDR",
    "FedFW",
    "FedFWPlus",
    "FedFWReset",
    "FedFWSto",
    "FedProx",
    "FedSGM",
    "FindWeights",
    "Fixed",
    "Hard",
    "Identity",
    "L1Ball",
    "Largest",
    "Least",
    "Loop",
    "LowRank",
    "Masked",
    "MeanOfGrams",
    "MinNorm",
    "MiniBatchSGD",
    "NaiveFW",
    "Nonconvex",
    "NuclearBall",
    "OneWay",
    "PenaltyFedAvg",
    "PenaltySGM",
    "PerClient",
    "PolicyFedSGM",
    "PowerLaw",
    "Preference",
    "Problem",
    "RandK",
    "Rounding",
    "Scalarized",
    "Sequential",
    "Simplex",
    "Soft",
    "Stochastic",
    "TopK",
    "Trace",
    "TwoWay",
    "Vectorized",
    "VerticalSGD",
    "VerticalSSCA",
    "compare",
    "hold_to_account",
    "run",
]
