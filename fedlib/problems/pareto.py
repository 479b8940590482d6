"""Quadratic objectives over clients with a known Pareto front, for tests and pictures."""

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.core.problem import Batch, Problem
from fedlib.weights.rules import min_norm

FRONT = 501  # points of the front of two objectives; distances are to the polygon through them


def pareto(
    centres: Float[Tensor, "N m M d"] | None = None,
    curvature: Float[Tensor, "M d"] | None = None,
    *,
    w0: Float[Tensor, "d"] | None = None,
) -> Problem:
    r"""Clients with objectives $f_{jk}(w) = \frac1m\sum_i \frac12 \|w - c_{jik}\|_{A_k}^2$.

    `A_k` is diagonal and common to all clients, so that $F_k(w) = \frac12\|w - \bar c_k\|_{A_k}^2$
    plus a constant, its spread, and the Pareto optimal models are those of `pareto_point`. Rows
    differ in their centres: minibatches are noisy, by the same amount at every model.

    `metrics` gives `f` (mean of the objectives), `f_1`, `f_2`, ..., `stationarity` (the least norm
    of a convex combination of the gradients, zero at Pareto optimal models alone) and, for two
    objectives, `distance` to the front.

    Parameters
    ----------
    centres : `c_{jik}`, m rows for each of N clients; by default two clients with one row each, all
        four centres unit vectors of their own.
    curvature : diagonals of `A_k`, positive; ones by default.
    w0 : where methods start, by default 0.

    Raises ValueError for shapes that do not match, entries that are not finite, curvatures that are
    not positive.
    """
    checks.arguments(pareto, locals())
    centres = torch.eye(4).view(2, 1, 2, 4) if centres is None else centres
    rule = "be [N, m, M, d], each at least 1"
    checks.require(centres.numel(), "pareto", "centres", rule, list(centres.shape))
    n, m, tasks, dim = centres.shape
    if curvature is None:
        curvature = centres.new_ones(tasks, dim)
    fits = curvature.shape == (tasks, dim) and (curvature > 0).all()
    checks.require(fits, "pareto", "curvature", f"be positive and [{tasks}, {dim}]", curvature)
    if w0 is not None:
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
        w0=torch.zeros_like(middle[0]) if w0 is None else w0,
        metrics=exact_metrics,
        heldout=(middle, curvature, front),
        config={"name": "pareto", "clients": n, "rows": m, "objectives": tasks, "dim": dim},
    )


def pareto_point(
    middle: Float[Tensor, "M d"], curvature: Float[Tensor, "M d"], lam: Float[Tensor, "*b M"]
) -> Float[Tensor, "*b d"]:
    r"""The minimizer of the weighted sum, $(\sum_k\lambda_kA_k)^{-1}\sum_k\lambda_kA_k\bar c_k$."""
    return (lam @ (curvature * middle)) / (lam @ curvature)


def pareto_losses(w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "M"]:
    """The objectives of a client on some rows."""
    c, A = batch.data
    return batch.weight @ (0.5 * (A * (w - c) ** 2).sum(-1))


def pareto_gradient(
    w: Float[Tensor, "d"], batch: Batch, weights: Float[Tensor, "M"]
) -> Float[Tensor, "d"]:
    """Gradient of `weights @ pareto_losses` in closed form."""
    c, A = batch.data
    return batch.weight @ (weights.unsqueeze(-1) * A * (w - c)).sum(-2)


def exact_metrics(w: Float[Tensor, "d"], problem: Problem) -> dict[str, Float[Tensor, ""]]:
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


def polygon_distance(w: Float[Tensor, "d"], points: Float[Tensor, "p d"]) -> Float[Tensor, ""]:
    """The distance of `w` from the polygon through some points."""
    side = points[1:] - points[:-1]
    length = (side**2).sum(-1).clamp_min(torch.finfo(side.dtype).tiny)
    share = (((w - points[:-1]) * side).sum(-1) / length).clamp(0, 1)
    nearest = points[:-1] + share.unsqueeze(-1) * side
    return (w - nearest).square().sum(-1).min().sqrt()
