"""How far and which way: step sizes, switching, convex stand-ins."""

from fedlib.steps.schedules import Convex, Fixed, Nonconvex, PowerLaw, Stochastic
from fedlib.steps.switching import Hard, Soft

__all__ = ["Convex", "Fixed", "Hard", "Nonconvex", "PowerLaw", "Soft", "Stochastic"]
