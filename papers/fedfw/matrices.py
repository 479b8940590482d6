"""Matrices of low rank from clients' rows: regression of several tasks, and matrix completion.

Generated data with a known truth, whose nuclear norm is the radius of the feasible set: the case
that Frank-Wolfe methods are made for, since an extreme point has rank one.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, FloatType, Nonnegative, Seed
from fedlib.core.problem import Batch, Problem
from fedlib.core.sampling import seeded
from fedlib.data.split import Part
from fedlib.metrics import fw_gap
from fedlib.sets.balls import NuclearBall
from fedlib.sets.vertices import gauge_of

VISIBLE = 1e-3  # singular values below this part of the largest do not count as rank


def multi_task_regression(
    *,
    clients: Count = 10,
    rows: Count = 30,
    features: Count = 20,
    tasks: Count = 15,
    rank: Count = 2,
    noise: Nonnegative = 0.1,
    spread: Nonnegative = 0.5,
    seed: Seed = 0,
    dtype: FloatType = torch.float32,
) -> Problem:
    r"""Clients with $f_j(W)$ = mean over rows of $\frac12\|W'x-y\|^2$, W `[features, tasks]`.

    y = W*'x + noise with a random W* of the given rank, of Frobenius norm 1. Client j's inputs are
    normal with deviations of its own, exp(spread z). The feasible set is the nuclear ball around 0
    that has W* on its boundary.

    `metrics`: `loss`; `error`, the Frobenius norm of W - W*; `gap`; `size`; `rank`, the number of
    singular values above a thousandth of the largest.

    Parameters
    ----------
    clients, rows : N, and rows of each client.
    features, tasks, rank : of W*.
    noise : deviation of the noise.
    spread : heterogeneity of the clients' inputs.
    seed : fixes the data.
    dtype : of everything.

    Raises
    ------
    ValueError, TypeError
        for counts out of range, a rank above that of the matrix, negative noise or spread.
    """
    who = "multi_task_regression"
    checks.arguments(multi_task_regression, locals())
    rng = seeded(seed, "split")
    truth = _truth(who, features, tasks, rank, rng)
    scale = (spread * torch.randn(clients, 1, features, generator=rng)).exp()
    X = (scale * torch.randn(clients, rows, features, generator=rng)).flatten(0, 1)
    Y = X @ truth + noise * torch.randn(len(X), tasks, generator=rng)
    own = {"name": who, "clients": clients, "rows": rows, "features": features, "tasks": tasks}
    return _problem(
        (X.to(dtype), Y.to(dtype)),
        truth,
        losses=_row_losses,
        gradient=_row_gradient,
        metrics=matrix_metrics,
        heldout=(truth.to(dtype),),
        config={**own, "rank": rank, "noise": noise, "spread": spread, "split_by": "seed"},
    )


def matrix_completion(
    *,
    clients: Count = 10,
    users: Count = 50,
    items: Count = 40,
    rank: Count = 2,
    observed: Part = 0.3,
    noise: Nonnegative = 0.05,
    seed: Seed = 0,
    dtype: FloatType = torch.float32,
) -> Problem:
    r"""Clients with $f_j(W)$ = mean over their observed entries of $\frac12(W_{ui}-v_{ui})^2$.

    Each client has the observed entries of its own `users / clients` rows of the matrix W* (of the
    given rank, entries of mean square 1) with noise. The feasible set is the nuclear ball that has
    W* on its boundary.

    `metrics` as in `multi_task_regression`, `error` over the norm of W*; and `heldout`, the root
    mean square error on the entries that nobody observed.

    Parameters
    ----------
    clients : N, a divisor of `users`.
    users, items, rank : rows, columns and rank of W*.
    observed : the share of every row that is observed, rounded, one entry at least.
    noise : its deviation.
    seed : fixes the data.
    dtype : of everything.

    Raises
    ------
    ValueError, TypeError
        for counts out of range, clients that do not divide the users, or shares not in (0, 1).
    """
    who = "matrix_completion"
    checks.arguments(matrix_completion, locals())
    checks.require(users % clients == 0, who, "clients", f"divide users = {users}", clients)
    rng = seeded(seed, "split")
    truth = _truth(who, users, items, rank, rng) * (users * items) ** 0.5
    count = min(max(1, round(observed * items)), items - 1)
    order = torch.rand(users, items, generator=rng).argsort(1)
    order = order + items * torch.arange(users).unsqueeze(1)
    seen, unseen = order[:, :count].flatten(), order[:, count:].flatten()
    values = truth.flatten()[seen] + noise * torch.randn(len(seen), generator=rng)
    own = {"name": who, "clients": clients, "users": users, "items": items, "rank": rank}
    return _problem(
        (seen, values.to(dtype)),
        truth,
        losses=_entry_losses,
        gradient=_entry_gradient,
        metrics=_entry_metrics,
        heldout=(truth.to(dtype), unseen),
        config={**own, "observed": observed, "noise": noise, "split_by": "seed"},
    )


def _problem(
    data: tuple[Tensor, Tensor], truth: Tensor, *, config: dict[str, Any], **parts: Any
) -> Problem:
    """The problem of rows that are dealt out in their order, in the nuclear ball of the truth."""
    rows = torch.arange(len(data[0])).view(config["clients"], -1)
    radius = float(torch.linalg.svdvals(truth).sum())
    return Problem(
        name=config["name"],
        data=data,
        rows=rows,
        sizes=(rows.shape[1],) * len(rows),
        num_objectives=1,
        num_constraints=0,
        w0=torch.zeros(truth.numel(), dtype=data[1].dtype),
        config=config,
        **parts,
    ).within(NuclearBall(radius, *truth.shape))


def _row_losses(w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "1"]:
    x, y = batch.data
    error = x @ w.view(x.shape[-1], y.shape[-1]) - y
    return (batch.weight @ (0.5 * error.square().sum(-1))).unsqueeze(0)


def _row_gradient(w: Tensor, batch: Batch, weights: Tensor) -> Tensor:
    x, y = batch.data
    error = x @ w.view(x.shape[-1], y.shape[-1]) - y
    return (x.T @ (error * (batch.weight * weights[0]).unsqueeze(-1))).flatten()


def _entry_losses(w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "1"]:
    place, value = batch.data
    error = w.gather(0, place) - value
    return (batch.weight @ (0.5 * error.square())).unsqueeze(0)


def _entry_gradient(w: Tensor, batch: Batch, weights: Tensor) -> Tensor:
    place, value = batch.data
    error = (w.gather(0, place) - value) * batch.weight * weights[0]
    return torch.zeros_like(w).scatter_add(0, place, error)


def _entry_metrics(w: Float[Tensor, "d"], problem: Problem) -> dict[str, Tensor]:
    truth, hidden = problem.heldout
    values = matrix_metrics(w, problem)
    missed = (w - truth.flatten()).gather(0, hidden).square().mean().sqrt()
    return {**values, "error": values["error"] / truth.norm(), "heldout": missed}


def matrix_metrics(w: Float[Tensor, "d"], problem: Problem) -> dict[str, Float[Tensor, ""]]:
    """Loss, gap, and how the matrix compares with the truth."""
    truth = problem.heldout[0]
    assert problem.set is not None
    values = torch.linalg.svdvals(w.view(truth.shape))
    return {
        "loss": problem.mean_losses(w)[0],
        "error": (w - truth.flatten()).norm(),
        "gap": fw_gap(problem, w),
        "size": gauge_of(problem.set, w),
        "rank": (values > VISIBLE * values.amax()).sum().to(w.dtype),
    }


def _truth(who: str, rows: int, columns: int, rank: int, rng: torch.Generator) -> Tensor:
    """A random matrix `[rows, columns]` of Frobenius norm 1."""
    checks.count(who, "rank", rank, 1, min(rows, columns), "the smaller side of the matrix")
    truth = torch.randn(rows, rank, generator=rng) @ torch.randn(rank, columns, generator=rng)
    scaled: Tensor = truth / truth.norm()
    return scaled
