"""All algorithms, one file per paper or family of baselines."""

from fedlib.algorithms.baselines import SGM, FedAvg, PenaltyFedAvg, PenaltySGM
from fedlib.algorithms.conex import ConEx
from fedlib.algorithms.fedcmoo import FedCMOO, FedCMOOPref
from fedlib.algorithms.fedcmoo_theory import FedCMOOTheory
from fedlib.algorithms.feddr import FedDR, FedProx
from fedlib.algorithms.fedfw import FedFW, FedFWPlus, FedFWSto
from fedlib.algorithms.fedfw_reset import FedFWReset
from fedlib.algorithms.fedsgm import FedSGM
from fedlib.algorithms.multiobjective import FSMGDA, MGDA, Scalarized
from fedlib.algorithms.naive_fw import NaiveFW
from fedlib.algorithms.policy_fedsgm import PolicyFedSGM
from fedlib.algorithms.ssca import SSCA, ConstrainedSSCA, MiniBatchSGD
from fedlib.algorithms.vertical_sgd import VerticalSGD
from fedlib.algorithms.vertical_ssca import ConstrainedVerticalSSCA, VerticalSSCA

__all__ = [
    "FSMGDA",
    "MGDA",
    "SGM",
    "SSCA",
    "ConEx",
    "ConstrainedSSCA",
    "ConstrainedVerticalSSCA",
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
    "MiniBatchSGD",
    "NaiveFW",
    "PenaltyFedAvg",
    "PenaltySGM",
    "PolicyFedSGM",
    "Scalarized",
    "VerticalSGD",
    "VerticalSSCA",
]

#: Every algorithm; the common test holds each of them to account.
ALGORITHMS = (
    FedSGM,
    FedAvg,
    PenaltyFedAvg,
    SGM,
    PenaltySGM,
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
    FedFWReset,
    NaiveFW,
    FedDR,
    FedProx,
    SSCA,
    ConstrainedSSCA,
    MiniBatchSGD,
    VerticalSSCA,
    ConstrainedVerticalSSCA,
    VerticalSGD,
)
