"""All algorithms, one file per paper or family of baselines."""

from fedlib.algorithms.baselines import SGM, FedAvg, PenaltyFedAvg
from fedlib.algorithms.conex import ConEx
from fedlib.algorithms.fedcmoo import FedCMOO, FedCMOOPref
from fedlib.algorithms.fedcmoo_theory import FedCMOOTheory
from fedlib.algorithms.feddr import FedDR, FedProx
from fedlib.algorithms.fedfw import FedFW, FedFWPlus, FedFWSto
from fedlib.algorithms.fedsgm import FedSGM
from fedlib.algorithms.multiobjective import FSMGDA, MGDA, Scalarized
from fedlib.algorithms.naive_fw import NaiveFW
from fedlib.algorithms.policy_fedsgm import PolicyFedSGM

__all__ = [
    "ALGORITHMS",
    "FSMGDA",
    "MGDA",
    "SGM",
    "ConEx",
    "FedAvg",
    "FedCMOO",
    "FedCMOOPref",
    "FedCMOOTheory",
    "FedDR",
    "FedFW",
    "FedFWPlus",
    "FedFWSto",
    "FedProx",
    "FedSGM",
    "NaiveFW",
    "PenaltyFedAvg",
    "PolicyFedSGM",
    "Scalarized",
]

#: Every algorithm; the common test holds each of them to account.
ALGORITHMS = (
    FedSGM,
    FedAvg,
    PenaltyFedAvg,
    SGM,
    ConEx,
    PolicyFedSGM,
    FedCMOO,
    FedCMOOPref,
    FedCMOOTheory,
    FSMGDA,
    Scalarized,
    MGDA,
    FedFW,
    FedFWPlus,
    FedFWSto,
    NaiveFW,
    FedDR,
    FedProx,
)
