"""Rules for the weights, and estimates of the Gram matrix."""

from fedlib.weights.gram import MeanOfGrams, OneWay, TwoWay
from fedlib.weights.preference import Preference
from fedlib.weights.rules import FindWeights, FixedWeights, Least, MinNorm

__all__ = [
    "FindWeights",
    "FixedWeights",
    "Least",
    "MeanOfGrams",
    "MinNorm",
    "OneWay",
    "Preference",
    "TwoWay",
]
