"""The studies' problems, and functions that make your own."""

from fedlib.problems.classification import classifier
from fedlib.problems.client_rows import ClientRows
from fedlib.problems.constrained_pareto import constrained_pareto
from fedlib.problems.fairness import fairness
from fedlib.problems.fairness_gap import GroupGap
from fedlib.problems.neyman_pearson import neyman_pearson
from fedlib.problems.own import from_clients, from_frame
from fedlib.problems.quadratics import pareto, quadratics

__all__ = [
    "ClientRows",
    "GroupGap",
    "classifier",
    "constrained_pareto",
    "fairness",
    "from_clients",
    "from_frame",
    "neyman_pearson",
    "pareto",
    "quadratics",
]
