"""All algorithms, one file per paper or family of baselines."""

from fedlib.algorithms.baselines import SGM, FedAvg, PenaltyFedAvg
from fedlib.algorithms.fedsgm import FedSGM

__all__ = ["ALGORITHMS", "SGM", "FedAvg", "FedSGM", "PenaltyFedAvg"]

#: Every algorithm; the common test holds each of them to account.
ALGORITHMS = (FedSGM, FedAvg, PenaltyFedAvg, SGM)
