"""Rules that methods take as fields."""

from fedlib.steps.local import SGD, Adam
from fedlib.steps.schedules import Convex, Fixed, Nonconvex, PowerLaw, Stochastic
from fedlib.steps.switching import Hard, Soft

__all__ = [
    "SGD",
    "Adam",
    "Convex",
    "Fixed",
    "Hard",
    "Nonconvex",
    "PowerLaw",
    "Soft",
    "Stochastic",
]
