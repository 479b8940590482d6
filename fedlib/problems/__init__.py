"""What is minimized: one file per study problem."""

from fedlib.problems.cartpole import cartpole
from fedlib.problems.classification import (
    classification,
    mlp_classification,
    softmax_regression,
)
from fedlib.problems.fairness import fairness
from fedlib.problems.neyman_pearson import neyman_pearson
from fedlib.problems.quadratics import quadratics
from fedlib.problems.staircase import staircase
from fedlib.problems.weakly_convex import clipped_distances

__all__ = [
    "cartpole",
    "classification",
    "clipped_distances",
    "fairness",
    "mlp_classification",
    "neyman_pearson",
    "quadratics",
    "softmax_regression",
    "staircase",
]
