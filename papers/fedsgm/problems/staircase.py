r"""The staircase: a convex problem on which subgradient methods are as slow as the theorems allow.

All clients have f(w) = max(max_i w_i, |w| - 1 - 1 / sqrt(d)) and g(w) = |w| - 3, both 1-Lipschitz
on R^d (G = 1). The solution is w* = -(1 / sqrt(d)) (1, .., 1), at distance D = 1 from the start 0,
and f(w*) = -1 / sqrt(d). A step from the start lowers one coordinate and leaves the maximum where
it is, so a method that takes fewer steps than there are coordinates has not lowered f at all.

The function is the classical one behind the lower complexity bound for Lipschitz convex functions.
"""

import math

import torch
from torch import Tensor

from fedlib.core import Problem
from fedlib.core.problem import Batch
from papers.fedsgm.problems.norms import gap_metrics, units


def staircase(dim: int) -> Problem:
    """The staircase with one client, started at 0; see `norms.gap_metrics`.

    `dim` is d, one more than the subgradient steps that cannot lower f.
    """
    start = torch.zeros(dim, dtype=torch.float64)
    return Problem(
        name="staircase",
        data=(torch.ones(1, dtype=torch.float64),),
        rows=torch.zeros(1, 1, dtype=torch.long),
        sizes=(1,),
        losses=_losses,
        num_objectives=1,
        num_constraints=1,
        w0=start,
        metrics=gap_metrics,
        gradient=_gradient,
        heldout=(start - 1 / math.sqrt(dim),),
        config={"name": "staircase", "dim": dim, "distance": 1.0},
    )


def _cone(w: Tensor) -> Tensor:
    """|w| - 1 - 1 / sqrt(d), the part of f that decides far from the start."""
    height: Tensor = w.norm() - (1 + 1 / math.sqrt(w.shape[-1]))
    return height


def _losses(w: Tensor, batch: Batch) -> Tensor:  # noqa: ARG001 - clients have no data
    return torch.stack([torch.maximum(w.amax(), _cone(w)), w.norm() - 3])


def _gradient(w: Tensor, batch: Batch, weights: Tensor) -> Tensor:  # noqa: ARG001
    radial = units(w)
    highest = (torch.arange(w.shape[-1], device=w.device) == w.argmax()).to(w.dtype)
    of_f = torch.where(_cone(w) > w.amax(), radial, highest)
    both: Tensor = weights[0] * of_f + weights[1] * radial
    return both
