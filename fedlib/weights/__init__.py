"""Weights of several objectives: rules, preferences, Gram matrices."""

from fedlib.weights.gram import MeanOfGrams, OneWay, TwoWay
from fedlib.weights.rules import FindWeights, FixedWeights, Least, MinNorm, Preference

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
