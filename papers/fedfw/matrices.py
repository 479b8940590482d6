"""Matrices of low rank from clients' rows: regression of several tasks.

Generated data with a known truth, whose nuclear norm is the radius of the feasible set: the case
that Frank-Wolfe methods are made for, since an extreme point has rank one.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.core.problem import Batch, Problem
from fedlib.core.sampling import seeded
from fedlib.sets import NuclearBall
from fedlib.shapes import Vector


def multi_task_regression(
    *,
    clients: int = 10,
    rows: int = 30,
    features: int = 20,
    tasks: int = 15,
    rank: int = 2,
    noise: float = 0.1,
    spread: float = 0.5,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
) -> Problem:
    r"""Clients with $f_j(W)$ = mean over rows of $\frac12\|W'x-y\|^2$, W `[features, tasks]`.

    y = W*'x + noise with a random W* of the given rank, of Frobenius norm 1. Client j's inputs are
    normal with deviations of its own, exp(spread z). The feasible set is the nuclear ball around 0
    that has W* on its boundary; `heldout` is W*. `metrics`: `loss`.

    Parameters
    ----------
    clients, rows : N, and rows of each client.
    features, tasks, rank : of W*.
    noise : deviation of the noise.
    spread : heterogeneity of the clients' inputs.
    seed : fixes the data.
    dtype : of everything.
    """
    most = min(features, tasks)
    checks.count("multi_task_regression", "rank", rank, 1, most, "the sides of the matrix")
    rng = seeded(seed, "split")
    truth = torch.randn(features, rank, generator=rng) @ torch.randn(rank, tasks, generator=rng)
    truth = truth / truth.norm()
    scale = (spread * torch.randn(clients, 1, features, generator=rng)).exp()
    inputs = scale * torch.randn(clients, rows, features, generator=rng)
    X = inputs.flatten(0, 1)
    errors = noise * torch.randn(len(X), tasks, generator=rng)
    Y = X @ truth + errors
    radius = float(torch.linalg.svdvals(truth).sum())
    problem = Problem(
        name="multi_task_regression",
        data=(X.to(dtype), Y.to(dtype)),
        rows=torch.arange(len(X)).view(clients, rows),
        sizes=(rows,) * clients,
        losses=_losses,
        gradient=_gradient,
        num_objectives=1,
        num_constraints=0,
        w0=torch.zeros(truth.numel(), dtype=dtype),
        metrics=_metrics,
        heldout=(truth.to(dtype),),
        config={
            "name": "multi_task_regression",
            "clients": clients,
            "rows": rows,
            "features": features,
            "tasks": tasks,
            "rank": rank,
            "noise": noise,
            "spread": spread,
            "split_by": "seed",
        },
    )
    return problem.within(NuclearBall(radius, features, tasks))


def _errors(w: Tensor, batch: Batch) -> Tensor:
    """W'x - y, `[B, tasks]`."""
    x, y = batch.data
    W = w.view(x.shape[-1], y.shape[-1])
    return x @ W - y


def _losses(w: Vector, batch: Batch) -> Float[Tensor, "1"]:
    squares = 0.5 * _errors(w, batch).square().sum(-1)
    return (batch.weight @ squares).unsqueeze(0)


def _gradient(w: Tensor, batch: Batch, weights: Tensor) -> Tensor:
    x, _ = batch.data
    weight = batch.weight * weights[0]
    weighted = _errors(w, batch) * weight.unsqueeze(-1)
    return (x.T @ weighted).flatten()


def _metrics(w: Vector, problem: Problem) -> dict[str, Tensor]:
    return {"loss": problem.mean_losses(w)[0]}
