"""Weights of several objectives: rules, preferences, Gram matrices."""

from fedlib.weights.gram import MeanOfGrams, OneWay, TwoWay
from fedlib.weights.rules import FindWeights, Least, MinNorm, Preference

__all__ = ["FindWeights", "Least", "MeanOfGrams", "MinNorm", "OneWay", "Preference", "TwoWay"]
