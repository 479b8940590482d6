"""Quadratics with a known constrained optimum or a known Pareto front, for tests and pictures."""

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Positive
from fedlib.core.problem import Batch, ConvexSet, Problem
from fedlib.shapes import Jacobian, PerObjective, Scalar, Vector
from fedlib.solvers.min_norm import min_norm

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
    a : Tensor or None
        `[N, d]`, the centres of the objectives; by default four clients in the plane, all with
        a_j = (1, 1).
    b : Tensor or None
        `[N, d]`, the centres of the constraints; by default 0.
    level : float
        Sets the c_j, such that $g(w) = \frac12\|w - \bar b\|^2 - \text{level}$.
    set : ConvexSet or None
        The feasible set; None for the whole space.

    Raises ValueError for a level that is not positive, or centres whose shapes differ or that are
    not finite.
    """
    checks.arguments(quadratics, locals())
    if a is None:
        a = torch.ones(4, 2)
    if b is None:
        b = torch.zeros_like(a)
    shape = list(a.shape)
    checks.require(a.numel(), "quadratics", "a", "be [N, d] with N, d at least 1", shape)
    checks.require(a.shape == b.shape, "quadratics", "b", f"be {shape} as a is", list(b.shape))
    clients, dim = shape
    middle = b.mean(0)
    spread = half_square(b, middle).mean()
    constant = (spread + level).expand(clients).contiguous()
    away = a.mean(0) - middle
    radius = (2 * level) ** 0.5
    share = (radius / away.norm()).clamp(max=1.0)
    optimum = middle + away * share
    return Problem(
        name="quadratics",
        data=(a, b, constant),
        rows=torch.arange(clients).unsqueeze(1),
        sizes=(1,) * clients,
        losses=quadratic_losses,
        gradient=quadratic_gradient,
        num_objectives=1,
        num_constraints=1,
        w0=torch.zeros_like(a[0]),
        metrics=quadratic_metrics,
        heldout=(optimum,),
        set=set,
        config={
            "name": "quadratics",
            "clients": clients,
            "dim": dim,
            "level": level,
        },
    )


def half_square(x: Float[Tensor, "*#b d"], centre: Float[Tensor, "*#b d"]) -> Float[Tensor, "*b"]:
    """Half of the squared distance."""
    squares = (x - centre) ** 2
    return 0.5 * squares.sum(-1)


def quadratic_losses(w: Vector, batch: Batch) -> Float[Tensor, "2"]:
    """f_j and g_j of a client with one row."""
    a, b, c = batch.data
    f = half_square(w, a)
    g = half_square(w, b) - c
    means = [batch.weight @ f, batch.weight @ g]
    return torch.stack(means)


def quadratic_gradient(w: Vector, batch: Batch, weights: Float[Tensor, "2"]) -> Vector:
    """The gradient of `weights @ quadratic_losses` in closed form."""
    a, b, _ = batch.data
    f_gradients = weights[0] * (w - a)
    g_gradients = weights[1] * (w - b)
    return batch.weight @ (f_gradients + g_gradients)


def quadratic_metrics(w: Vector, problem: Problem) -> dict[str, Scalar]:
    """Excess objective, constraint and distance to the optimum."""
    a, b, c = problem.data
    (optimum,) = problem.heldout
    f = half_square(w, a).mean()
    least = half_square(optimum, a).mean()
    g = half_square(w, b) - c
    return {
        "f": f - least,
        "g": g.mean(),
        "distance": (w - optimum).norm(),
    }


def pareto(
    centres: Float[Tensor, "N m M d"] | None = None,
    curvature: Jacobian | None = None,
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
    centres : Tensor or None
        `[N, m, M, d]`, the `c_{jik}` of client j, row i and objective k; by default two clients
        with one row each, whose four centres are different unit vectors.
    curvature : Tensor or None
        `[M, d]`, the diagonals of the `A_k`, positive; by default ones.
    w0 : Tensor or None
        `[d]`, the start, by default 0.

    Raises ValueError for shapes that do not match, entries that are not finite, or curvatures that
    are not positive.
    """
    checks.arguments(pareto, locals())
    if centres is None:
        centres = torch.eye(4).view(2, 1, 2, 4)
    checks.require(centres.numel(), "pareto", "centres", "be [N, m, M, d], all at least 1", centres)
    clients, rows, objectives, dim = centres.shape
    if curvature is None:
        curvature = centres.new_ones(objectives, dim)
    shape = (objectives, dim)
    checks.require(
        curvature.shape == shape and (curvature > 0).all(),
        "pareto",
        "curvature",
        f"be positive and {list(shape)}",
        curvature,
    )
    if w0 is None:
        w0 = centres.new_zeros(dim)
    checks.vector("pareto", "w0", w0, dim)
    middle = centres.mean((0, 1))
    front = middle[:0]
    if objectives == 2:
        front = pareto_point(middle, curvature, front_weights(centres.dtype))
    total = clients * rows
    return Problem(
        name="pareto",
        data=(centres.flatten(0, 1), curvature.expand(total, *shape)),
        rows=torch.arange(total).view(clients, rows),
        sizes=(rows,) * clients,
        losses=pareto_losses,
        gradient=pareto_gradient,
        num_objectives=objectives,
        num_constraints=0,
        w0=w0,
        metrics=pareto_metrics,
        heldout=(middle, curvature, front),
        config={
            "name": "pareto",
            "clients": clients,
            "rows": rows,
            "objectives": objectives,
            "dim": dim,
        },
    )


def front_weights(dtype: torch.dtype) -> Float[Tensor, "p 2"]:
    """Weights of two objectives, from the first alone to the second alone."""
    shares = torch.linspace(0, 1, FRONT, dtype=dtype)
    return torch.stack([1 - shares, shares], -1)


def pareto_point(
    middle: Jacobian, curvature: Jacobian, lam: Float[Tensor, "*b M"]
) -> Float[Tensor, "*b d"]:
    r"""The minimizer of the weighted sum, $(\sum_k\lambda_kA_k)^{-1}\sum_k\lambda_kA_k\bar c_k$."""
    weighted_middle = lam @ (curvature * middle)
    return weighted_middle / (lam @ curvature)


def row_objectives(
    w: Vector, centres: Float[Tensor, "R M d"], curvature: Float[Tensor, "R M d"]
) -> Float[Tensor, "R M"]:
    """The objectives of every row."""
    squares = curvature * (w - centres) ** 2
    return 0.5 * squares.sum(-1)


def pareto_losses(w: Vector, batch: Batch) -> PerObjective:
    """The objectives of a client on some rows."""
    return batch.weight @ row_objectives(w, *batch.data)


def pareto_gradient(w: Vector, batch: Batch, weights: PerObjective) -> Vector:
    """The gradient of `weights @ pareto_losses` in closed form."""
    c, A = batch.data
    curvatures = weights.unsqueeze(-1) * A
    gradients = curvatures * (w - c)
    return batch.weight @ gradients.sum(-2)


def pareto_metrics(w: Vector, problem: Problem) -> dict[str, Scalar]:
    """Objectives, stationarity and distance to the front."""
    middle, curvature, front = problem.heldout
    objectives = row_objectives(w, *problem.data)
    means = objectives.mean(0)
    gradients = curvature * (w - middle)
    gram = gradients @ gradients.mT
    lam = min_norm(gram.unsqueeze(0))[0]
    values = {"f": means.mean()}
    for number, mean in enumerate(means, 1):
        values[f"f_{number}"] = mean
    shortest = lam @ gradients
    values["stationarity"] = shortest.square().sum().sqrt()
    if len(means) == 2:
        values["distance"] = polygon_distance(w, front)
    return values


def polygon_distance(w: Vector, points: Float[Tensor, "p d"]) -> Scalar:
    """The distance of `w` from the polygon through some points."""
    start = points[:-1]
    side = points[1:] - start
    tiny = torch.finfo(side.dtype).tiny
    squares = side**2
    length = squares.sum(-1).clamp_min(tiny)
    products = (w - start) * side
    along = products.sum(-1) / length
    share = along.clamp(0, 1)
    nearest = start + share.unsqueeze(-1) * side
    difference = w - nearest
    distances = difference.square().sum(-1)
    return distances.min().sqrt()
