"""All algorithms, one file per paper or family of baselines."""

from fedlib.algorithms.baselines import SGM, FedAvg, PenaltyFedAvg
from fedlib.algorithms.conex import ConEx
from fedlib.algorithms.fedsgm import FedSGM
from fedlib.algorithms.policy_fedsgm import PolicyFedSGM

__all__ = ["ALGORITHMS", "SGM", "ConEx", "FedAvg", "FedSGM", "PenaltyFedAvg", "PolicyFedSGM"]

#: Every algorithm; the common test holds each of them to account.
ALGORITHMS = (FedSGM, FedAvg, PenaltyFedAvg, SGM, ConEx, PolicyFedSGM)
