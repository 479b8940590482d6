"""Quadratics with a known constrained optimum or a known Pareto front, for tests and pictures."""

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Positive
from fedlib.core.problem import Batch, ConvexSet, Problem
from fedlib.solvers.min_norm import min_norm

Vector = Float[Tensor, "d"]

FRONT = 501  # points on the front of two objectives; distances refer to the polygon through them


def quadratics(
    a: Float[Tensor, "N d"] | None = None,
    b: Float[Tensor, "N d"] | None = None,
    *,
    level: Positive = 0.5,
    set: ConvexSet | None = None,
) -> Problem:
    r"""A problem with $f_j(w) = \frac12\|w - a_j\|^2$, $g_j(w) = \frac12\|w - b_j\|^2 - c_j$.

    The optimum is the projection of $\bar a$ onto the ball around $\bar b$ of radius
    $\sqrt{2\,\text{level}}$. `metrics` returns `f` (excess over the optimum), `g` and `distance`.

    Parameters
    ----------
    a, b : the centres `[N, d]`; by default four clients in the plane, all with a_j = (1, 1) and
        b_j = 0.
    level : sets the c_j, such that $g(w) = \frac12\|w - \bar b\|^2 - \text{level}$.
    set : the feasible set; None for the whole space.

    Raises ValueError for a level that is not positive, or centres whose shapes differ or that are
    not finite.
    """
    checks.arguments(quadratics, locals())
    a = torch.ones(4, 2) if a is None else a
    b = torch.zeros_like(a) if b is None else b
    checks.require(a.numel(), "quadratics", "a", "be [N, d] with N, d at least 1", list(a.shape))
    checks.require(b.shape == a.shape, "quadratics", "b", f"be {[*a.shape]} as a is", [*b.shape])
    spread = 0.5 * ((b - b.mean(0)) ** 2).sum(1).mean()
    constant = (spread + level).expand(len(a)).contiguous()
    away = a.mean(0) - b.mean(0)
    radius = (2 * level) ** 0.5
    optimum = b.mean(0) + away * (radius / away.norm()).clamp(max=1.0)
    return Problem(
        name="quadratics",
        data=(a, b, constant),
        rows=torch.arange(len(a)).unsqueeze(1),
        sizes=(1,) * len(a),
        losses=quadratic_losses,
        gradient=quadratic_gradient,
        num_objectives=1,
        num_constraints=1,
        w0=torch.zeros_like(a[0]),
        metrics=quadratic_metrics,
        heldout=(optimum,),
        set=set,
        config={"name": "quadratics", "clients": len(a), "dim": a.shape[1], "level": level},
    )


def quadratic_losses(w: Vector, batch: Batch) -> Float[Tensor, "2"]:
    """f_j and g_j of a client with one row."""
    a, b, c = batch.data
    f = 0.5 * ((w - a) ** 2).sum(-1)
    g = 0.5 * ((w - b) ** 2).sum(-1) - c
    return torch.stack([batch.weight @ f, batch.weight @ g])


def quadratic_gradient(w: Vector, batch: Batch, weights: Float[Tensor, "2"]) -> Vector:
    """The gradient of `weights @ quadratic_losses` in closed form."""
    a, b, _ = batch.data
    return batch.weight @ (weights[0] * (w - a) + weights[1] * (w - b))


def quadratic_metrics(w: Vector, problem: Problem) -> dict[str, Float[Tensor, ""]]:
    """Excess objective, constraint and distance to the optimum."""
    a, b, c = problem.data
    (optimum,) = problem.heldout
    f = 0.5 * ((w - a) ** 2).sum(-1).mean() - 0.5 * ((optimum - a) ** 2).sum(-1).mean()
    g = (0.5 * ((w - b) ** 2).sum(-1) - c).mean()
    return {"f": f, "g": g, "distance": (w - optimum).norm()}


def pareto(
    centres: Float[Tensor, "N m M d"] | None = None,
    curvature: Float[Tensor, "M d"] | None = None,
    *,
    w0: Vector | None = None,
) -> Problem:
    r"""A problem with objectives $f_{jk}(w) = \frac1m\sum_i \frac12 \|w - c_{jik}\|_{A_k}^2$.

    `A_k` is diagonal and common to all clients, so $F_k(w) = \frac12\|w - \bar c_k\|_{A_k}^2$ plus
    a constant, the spread of its centres. `pareto_point` returns the Pareto optimal models. Rows
    differ in their centres, so minibatches are noisy, by the same amount at every model.

    `metrics` returns `f` (mean of the objectives), `f_1`, `f_2`, ..., and `stationarity`, the least
    norm of a convex combination of the gradients, which is zero only at Pareto optimal models. For
    two objectives it also returns `distance`, the distance to the front.

    Parameters
    ----------
    centres : `[N, m, M, d]`, the `c_{jik}` of client j, row i and objective k; by default two
        clients with one row each, whose four centres are different unit vectors.
    curvature : `[M, d]`, the diagonals of the `A_k`, positive; by default ones.
    w0 : `[d]`, the start, by default 0.

    Raises ValueError for shapes that do not match, entries that are not finite, or curvatures that
    are not positive.
    """
    checks.arguments(pareto, locals())
    centres = torch.eye(4).view(2, 1, 2, 4) if centres is None else centres
    checks.require(centres.numel(), "pareto", "centres", "be [N, m, M, d], all at least 1", centres)
    n, m, tasks, dim = centres.shape
    if curvature is None:
        curvature = centres.new_ones(tasks, dim)
    fits = curvature.shape == (tasks, dim) and (curvature > 0).all()
    checks.require(fits, "pareto", "curvature", f"be positive and [{tasks}, {dim}]", curvature)
    w0 = centres.new_zeros(dim) if w0 is None else w0
    checks.vector("pareto", "w0", w0, dim)
    middle = centres.mean((0, 1))
    shares = torch.linspace(0, 1, FRONT, dtype=centres.dtype)
    lam = torch.stack([1 - shares, shares], -1)
    front = pareto_point(middle, curvature, lam) if tasks == 2 else middle[:0]
    return Problem(
        name="pareto",
        data=(centres.flatten(0, 1), curvature.expand(n * m, tasks, dim)),
        rows=torch.arange(n * m).view(n, m),
        sizes=(m,) * n,
        losses=pareto_losses,
        gradient=pareto_gradient,
        num_objectives=tasks,
        num_constraints=0,
        w0=w0,
        metrics=pareto_metrics,
        heldout=(middle, curvature, front),
        config={"name": "pareto", "clients": n, "rows": m, "objectives": tasks, "dim": dim},
    )


def pareto_point(
    middle: Float[Tensor, "M d"], curvature: Float[Tensor, "M d"], lam: Float[Tensor, "*b M"]
) -> Float[Tensor, "*b d"]:
    r"""The minimizer of the weighted sum, $(\sum_k\lambda_kA_k)^{-1}\sum_k\lambda_kA_k\bar c_k$."""
    return (lam @ (curvature * middle)) / (lam @ curvature)


def pareto_losses(w: Vector, batch: Batch) -> Float[Tensor, "M"]:
    """The objectives of a client on some rows."""
    c, A = batch.data
    return batch.weight @ (0.5 * (A * (w - c) ** 2).sum(-1))


def pareto_gradient(w: Vector, batch: Batch, weights: Float[Tensor, "M"]) -> Vector:
    """The gradient of `weights @ pareto_losses` in closed form."""
    c, A = batch.data
    return batch.weight @ (weights.unsqueeze(-1) * A * (w - c)).sum(-2)


def pareto_metrics(w: Vector, problem: Problem) -> dict[str, Float[Tensor, ""]]:
    """Objectives, stationarity and distance to the front."""
    middle, curvature, front = problem.heldout
    c, A = problem.data
    F = (0.5 * (A * (w - c) ** 2).sum(-1)).mean(0)
    g = curvature * (w - middle)
    lam = min_norm((g @ g.mT).unsqueeze(0))[0]
    out = {"f": F.mean(), **{f"f_{k + 1}": F[k] for k in range(len(F))}}
    out["stationarity"] = (lam @ g).square().sum().sqrt()
    if len(F) == 2:
        out["distance"] = polygon_distance(w, front)
    return out


def polygon_distance(w: Vector, points: Float[Tensor, "p d"]) -> Float[Tensor, ""]:
    """The distance of `w` from the polygon through some points."""
    side = points[1:] - points[:-1]
    length = (side**2).sum(-1).clamp_min(torch.finfo(side.dtype).tiny)
    share = (((w - points[:-1]) * side).sum(-1) / length).clamp(0, 1)
    nearest = points[:-1] + share.unsqueeze(-1) * side
    return (w - nearest).square().sum(-1).min().sqrt()
