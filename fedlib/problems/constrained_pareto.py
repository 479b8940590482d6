"""Several quadratic objectives in a ball, with a known Pareto set, for tests and pictures."""

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Positive
from fedlib.core.problem import Batch, Problem
from fedlib.problems.quadratics import (
    front_weights,
    half_square,
    pareto_point,
    polygon_distance,
)
from fedlib.shapes import Jacobian, PerLoss, Scalar, Vector


def constrained_pareto(
    centres: Float[Tensor, "N m M d"] | None = None,
    ball_centres: Float[Tensor, "N d"] | None = None,
    *,
    level: Positive = 0.5,
    w0: Vector | None = None,
) -> Problem:
    r"""A problem with objectives and a constraint, whose Pareto optimal models are known.

    Client j has the objectives $f_{jk}(w) = \frac1m\sum_i \frac12\|w - c_{jik}\|^2$ and the
    constraint $g_j(w) = \frac12\|w - b_j\|^2 - c$, where c makes $g(w) = \frac12\|w - \bar b\|^2 -
    \text{level}$. A feasible model is Pareto optimal if and only if it minimizes a weighted sum of
    the objectives over the ball. For weights $\lambda$ of the simplex, the minimizer is the
    projection of $\sum_k\lambda_k\bar c_k$ onto the ball (`constrained_pareto_point`), so the
    Pareto set is the projection of the convex hull of the mean centres.

    `metrics` returns `f` (mean of the objectives), `f_1`, `f_2`, ..., and `g`. For two objectives
    it also returns `distance`, the distance to the Pareto set.

    Parameters
    ----------
    centres : Tensor or None
        `[N, m, M, d]`, the `c_{jik}` of client j, row i and objective k; by default four clients
        in the plane with mean centres (2, 0) and (0, 2).
    ball_centres : Tensor or None
        `[N, d]`, the `b_j`; by default different points with mean 0 in the plane, else 0.
    level : float
        Half of the ball's squared radius.
    w0 : Tensor or None
        `[d]`, the start, by default 0.

    Raises ValueError for shapes that do not match, entries that are not finite, or a level that is
    not positive.
    """
    checks.arguments(constrained_pareto, locals())
    name = "constrained_pareto"
    if centres is None:
        offsets = torch.tensor([[0.5, 0.0], [-0.5, 0.0], [0.0, 0.5], [0.0, -0.5]])
        centres = offsets.view(4, 1, 1, 2) + 2 * torch.eye(2)
        if ball_centres is None:
            ball_centres = offsets.flip(0)
    checks.require(centres.numel(), name, "centres", "be [N, m, M, d], all at least 1", centres)
    clients, rows, objectives, dim = centres.shape
    if ball_centres is None:
        ball_centres = centres.new_zeros(clients, dim)
    fits = ball_centres.shape == (clients, dim)
    checks.require(fits, name, "ball_centres", f"be [{clients}, {dim}]", ball_centres)
    if w0 is None:
        w0 = centres.new_zeros(dim)
    checks.vector(name, "w0", w0, dim)
    middle = centres.mean((0, 1))
    ball = ball_centres.mean(0)
    spread = half_square(ball_centres, ball).mean()
    front = middle[:0]
    if objectives == 2:
        lam = front_weights(centres.dtype)
        front = constrained_pareto_point(middle, ball, level, lam)
    total = clients * rows
    return Problem(
        name=name,
        data=(
            centres.flatten(0, 1),
            ball_centres.repeat_interleave(rows, 0),
            (spread + level).repeat(total),
        ),
        rows=torch.arange(total).view(clients, rows),
        sizes=(rows,) * clients,
        losses=ball_losses,
        gradient=ball_gradient,
        num_objectives=objectives,
        num_constraints=1,
        w0=w0,
        metrics=ball_metrics,
        heldout=(front,),
        config={
            "name": name,
            "clients": clients,
            "rows": rows,
            "objectives": objectives,
            "dim": dim,
            "level": level,
        },
    )


def constrained_pareto_point(
    middle: Jacobian,
    ball: Vector,
    level: float,
    lam: Float[Tensor, "*b M"],
) -> Float[Tensor, "*b d"]:
    r"""The minimizers over the ball of weighted sums: $\sum_k\lambda_k\bar c_k$, projected."""
    free = pareto_point(middle, torch.ones_like(middle), lam)
    away = free - ball
    radius = (2 * level) ** 0.5
    distance = away.norm(dim=-1, keepdim=True)
    share = radius / distance.clamp_min(radius)
    nearest: Tensor = ball + away * share
    return nearest


def ball_losses(w: Vector, batch: Batch) -> PerLoss:
    """The objectives of a client on some rows, then its constraint."""
    c, b, constant = batch.data
    f = half_square(w, c)
    g = half_square(w, b) - constant
    g = g.unsqueeze(-1)
    losses = torch.cat([f, g], -1)
    return batch.weight @ losses


def ball_gradient(w: Vector, batch: Batch, weights: PerLoss) -> Vector:
    """The gradient of `weights @ ball_losses` in closed form."""
    c, b, _ = batch.data
    balls = b.unsqueeze(-2)
    centres = torch.cat([c, balls], -2)
    gradients = weights.unsqueeze(-1) * (w - centres)
    return batch.weight @ gradients.sum(-2)


def ball_metrics(w: Vector, problem: Problem) -> dict[str, Scalar]:
    """Objectives, constraint and distance to the Pareto set."""
    (front,) = problem.heldout
    objectives = problem.num_objectives
    means = problem.mean_losses(w)
    values = {"f": means[:objectives].mean()}
    for k in range(objectives):
        values[f"f_{k + 1}"] = means[k]
    values["g"] = means[objectives]
    if objectives == 2:
        values["distance"] = polygon_distance(w, front)
    return values
