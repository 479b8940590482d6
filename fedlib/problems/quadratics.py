"""Quadratic objective and constraint with a known constrained optimum, for tests and pictures."""

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Positive
from fedlib.core.problem import Batch, ConvexSet, Problem


def quadratics(
    a: Float[Tensor, "N d"] | None = None,
    b: Float[Tensor, "N d"] | None = None,
    *,
    level: Positive = 0.5,
    set: ConvexSet | None = None,
) -> Problem:
    r"""Clients with $f_j(w) = \frac12\|w - a_j\|^2$, $g_j(w) = \frac12\|w - b_j\|^2 - c_j$.

    The levels $c_j$ are such that $g(w) = \frac12\|w - \bar b\|^2 - \text{level}$, hence the
    optimum is known: the projection of $\bar a$ onto the ball around $\bar b$ of radius
    $\sqrt{2\,\text{level}}$. By default four clients in the plane have all $a_j = (1, 1)$ and
    $b_j = 0$. `metrics` gives `f` (excess over the optimum), `g`, `distance`.

    Raises ValueError for a level that is not positive, or centres that do not match or are not
    finite.
    """
    checks.arguments(quadratics, locals())
    a = torch.ones(4, 2) if a is None else a
    b = torch.zeros_like(a) if b is None else b
    checks.require(a.numel(), "quadratics", "a", "be [N, d], each at least 1", list(a.shape))
    rule = f"be {list(a.shape)} as a is"
    checks.require(b.shape == a.shape, "quadratics", "b", rule, list(b.shape))
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
        metrics=exact_metrics,
        heldout=(optimum,),
        set=set,
        config={"name": "quadratics", "clients": len(a), "dim": a.shape[1], "level": level},
    )


def quadratic_losses(w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "2"]:
    """f_j and g_j of a client with one row."""
    a, b, c = batch.data
    f = 0.5 * ((w - a) ** 2).sum(-1)
    g = 0.5 * ((w - b) ** 2).sum(-1) - c
    return torch.stack([batch.weight @ f, batch.weight @ g])


def quadratic_gradient(
    w: Float[Tensor, "d"], batch: Batch, weights: Float[Tensor, "2"]
) -> Float[Tensor, "d"]:
    """Gradient of `weights @ quadratic_losses` in closed form."""
    a, b, _ = batch.data
    return batch.weight @ (weights[0] * (w - a) + weights[1] * (w - b))


def exact_metrics(w: Float[Tensor, "d"], problem: Problem) -> dict[str, Float[Tensor, ""]]:
    """Excess objective, constraint and distance to the optimum."""
    a, b, c = problem.data
    (optimum,) = problem.heldout
    f = 0.5 * ((w - a) ** 2).sum(-1).mean() - 0.5 * ((optimum - a) ** 2).sum(-1).mean()
    g = (0.5 * ((w - b) ** 2).sum(-1) - c).mean()
    return {"f": f, "g": g, "distance": (w - optimum).norm()}
