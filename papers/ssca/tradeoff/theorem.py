r"""What the check of Theorem 5 runs: the constrained example (37) with full batches.

Where $w$ solves $\min |w|^2$ subject to $F(w) \le U$ with the multiplier $\nu > 0$, the theorem
says that the gradient of $F(w) + \lambda |w|^2$ with $\lambda = 1 / \nu$ is zero there.
"""

from dataclasses import replace
from functools import lru_cache

import torch
from torch import Tensor

from fedlib.core import Problem
from fedlib.steps import PowerLaw
from papers.ssca.common import SCALES, over_all, slice_table, tables
from papers.ssca.network import swish_network

#: With full batches there is nothing to average, and steps may stay.
STEPS = {"rho": PowerLaw(1.0), "gamma": PowerLaw(0.1), "batch_size": None}


@lru_cache(maxsize=32)
def theorem_problem(
    seed: int,
    *,
    pictures: int,
    clients: int,
    hidden: int,
) -> Problem:
    r"""The network on scikit-learn's first digits, in float64, with its gradient in the metrics.

    `metrics`, on all pictures of all clients: `cost` F, `norm` $|w|^2$, `slope` $|\nabla F|$, and
    the gradient's parts `along` w (its length, with sign) and `across` it. With these,
    $|\nabla F + 2 \lambda w|^2 = \text{across}^2 + (\text{along} + 2 \lambda |w|)^2$.
    """
    train, test = tables("digits")
    network = swish_network(
        slice_table(train, slice(pictures)),
        test,
        clients=clients,
        hidden=hidden,
        seed=seed,
        evaluate=pictures,
        scale=SCALES["digits"],
        dtype=torch.float64,
        config={"data": "digits", "measured": "gradient"},
    )

    def metrics(w: Tensor, problem: Problem) -> dict[str, Tensor]:
        slope = problem.gradient
        assert slope is not None
        whole_weight = w.new_ones(1)
        gradient = over_all(problem, lambda rows: slope(w, rows, whole_weight), torch.zeros_like(w))
        unit = w / w.norm()
        along = gradient @ unit
        return {
            "cost": over_all(problem, lambda rows: problem.losses(w, rows)[0], w.new_zeros(())),
            "norm": w @ w,
            "slope": gradient.norm(),
            "along": along,
            "across": (gradient - along * unit).norm(),
        }

    return replace(network, metrics=metrics)
