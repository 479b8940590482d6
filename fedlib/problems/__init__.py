"""What is minimized: one file per study problem."""

from fedlib.problems.attributes import attributes
from fedlib.problems.cartpole import cartpole
from fedlib.problems.classification import (
    classification,
    mlp_classification,
    softmax_regression,
)
from fedlib.problems.client_rows import ClientRows
from fedlib.problems.constrained import classifier
from fedlib.problems.fairness import fairness
from fedlib.problems.feasible_data import constrained_pictures, constrained_synthetic
from fedlib.problems.generated_molecules import generated
from fedlib.problems.low_rank import matrix_completion, multi_task_regression
from fedlib.problems.neyman_pearson import neyman_pearson
from fedlib.problems.own import from_clients, from_frame
from fedlib.problems.paired_digits import paired_digits
from fedlib.problems.pareto import pareto
from fedlib.problems.qm9 import qm9
from fedlib.problems.quadratics import quadratics
from fedlib.problems.staircase import staircase
from fedlib.problems.swish_network import swish_network
from fedlib.problems.vertical_network import vertical_network
from fedlib.problems.weakly_convex import clipped_distances

__all__ = [
    "ClientRows",
    "attributes",
    "cartpole",
    "classification",
    "classifier",
    "clipped_distances",
    "constrained_pictures",
    "constrained_synthetic",
    "fairness",
    "from_clients",
    "from_frame",
    "generated",
    "matrix_completion",
    "mlp_classification",
    "multi_task_regression",
    "neyman_pearson",
    "paired_digits",
    "pareto",
    "qm9",
    "quadratics",
    "softmax_regression",
    "staircase",
    "swish_network",
    "vertical_network",
]
