"""What is minimized: one file per study problem."""

from fedlib.problems.classification import (
    classification,
    mlp_classification,
    softmax_regression,
)
from fedlib.problems.neyman_pearson import neyman_pearson
from fedlib.problems.quadratics import quadratics

__all__ = [
    "classification",
    "mlp_classification",
    "neyman_pearson",
    "quadratics",
    "softmax_regression",
]
