r"""The staircase: a convex problem on which subgradient methods are as slow as the theorems allow.

All clients have f(w) = max(max_i w_i, |w| - D - D / sqrt(d)) and g(w) = |w| - 3 D, both 1-Lipschitz
on R^d (G = 1). The solution is w* = -(D / sqrt(d)) (1, .., 1), at distance D from the start 0, and
f(w*) = -D / sqrt(d). A step from the start lowers one coordinate and leaves the maximum where it
is, so a method that takes fewer steps than there are coordinates has not lowered f at all.

The function is the classical one behind the lower complexity bound for Lipschitz convex functions.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fedlib.core import Problem
from fedlib.core.problem import Batch
from papers.fedsgm.problems.norms import gap_metrics


def staircase(dim: int, distance: float = 1.0) -> Problem:
    """The staircase with one client, started at 0; see `norms.gap_metrics`.

    Args:
        dim: d, one more than the subgradient steps that cannot lower f.
        distance: D, the distance of the start from the solution.
    """
    scale = torch.full((1,), float(distance), dtype=torch.float64)
    solution = torch.full((dim,), -distance / math.sqrt(dim), dtype=torch.float64)
    return Problem(
        name="staircase",
        data=(scale,),
        rows=torch.zeros(1, 1, dtype=torch.long),
        sizes=(1,),
        losses=_losses,
        num_objectives=1,
        num_constraints=1,
        w0=torch.zeros(dim, dtype=torch.float64),
        metrics=gap_metrics,
        gradient=_gradient,
        heldout=(solution,),
        config={"name": "staircase", "dim": dim, "distance": distance},
    )


def _losses(w: Tensor, batch: Batch) -> Tensor:
    distance = batch.weight @ batch.data[0]
    length = w.norm()
    f = torch.maximum(w.amax(), length - distance * (1 + 1 / math.sqrt(w.shape[-1])))
    return torch.stack([f, length - 3 * distance])


def _gradient(w: Tensor, batch: Batch, weights: Tensor) -> Tensor:
    distance = batch.weight @ batch.data[0]
    length = w.norm()
    radial = w / length.clamp_min(torch.finfo(w.dtype).tiny)
    highest = (torch.arange(w.shape[-1], device=w.device) == w.argmax()).to(w.dtype)
    outside = length - distance * (1 + 1 / math.sqrt(w.shape[-1])) > w.amax()
    of_f = torch.where(outside, radial, highest)
    both: Tensor = weights[0] * of_f + weights[1] * radial
    return both
