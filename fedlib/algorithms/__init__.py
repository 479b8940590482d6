"""The methods of the papers and their baselines.

A new method is imported here, and named in `__all__`.
"""

import sys
from typing import Any

import torch

from fedlib.algorithms.conex import ConEx
from fedlib.algorithms.constrained_ssca import ConstrainedSSCA, ConstrainedVerticalSSCA
from fedlib.algorithms.fedavg import FedAvg
from fedlib.algorithms.fedcmoo import FedCMOO, FedCMOOPref, FedCMOOTheory
from fedlib.algorithms.feddr import FedDR
from fedlib.algorithms.fedfw import FedFW, FedFWPlus, FedFWSto
from fedlib.algorithms.fedfw_reset import FedFWReset
from fedlib.algorithms.fedsgm import FedSGM
from fedlib.algorithms.fsmgda import FSMGDA
from fedlib.algorithms.mgda import MGDA
from fedlib.algorithms.minibatch_sgd import MiniBatchSGD, VerticalSGD
from fedlib.algorithms.multi_fedsgm import MultiFedSGM
from fedlib.algorithms.naive_fw import NaiveFW
from fedlib.algorithms.penalty import PenaltyFedAvg, PenaltySGM
from fedlib.algorithms.scalarized import Scalarized
from fedlib.algorithms.sgm import SGM
from fedlib.algorithms.ssca import SSCA, VerticalSSCA

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
    "FedSGM",
    "MiniBatchSGD",
    "MultiFedSGM",
    "NaiveFW",
    "PenaltyFedAvg",
    "PenaltySGM",
    "Scalarized",
    "VerticalSGD",
    "VerticalSSCA",
]

#: Every algorithm of the library; one common test checks all of them.
ALGORITHMS: tuple[Any, ...] = tuple(globals()[name] for name in __all__)

# so that `torch.load` reads back what `torch.save(trace.state, path)` wrote
for _method in ALGORITHMS:
    _names = vars(sys.modules[_method.__module__])
    _states = [entry for entry in _names.values() if hasattr(entry, "_fields")]
    torch.serialization.add_safe_globals(_states)
