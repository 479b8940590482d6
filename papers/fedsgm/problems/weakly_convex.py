r"""Clipped distances: a weakly convex objective, a convex constraint, and all constants known.

Client j has f_j(w) = phi(|w - a_j|), where phi(r) = r - r^2 / (2 clip) up to r = clip and clip / 2
from there on (the minimax concave penalty), and g_j(w) = |w - b_j| - c, on the ball X of a given
radius. Every loss is 1-Lipschitz on the whole space (G = 1). f_j is rho-weakly convex with
rho = 1 / clip and with no smaller number, since -phi'' = 1 / clip, and has a kink at a_j. The
diameter of X is D = 2 radius, and the mean of the b_j is a Slater point.

It is the problem on which the weakly convex theory of FedSGM is checked, with `problems.prox`.
"""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.core import Problem
from fedlib.core.problem import Batch
from fedlib.sets import Ball
from fedlib.shapes import Vector
from papers.fedsgm.problems.norms import one_row_each, units

CLIENTS = 10  # of the random instances


def clipped_distances(
    a: Float[Tensor, "N d"],
    b: Float[Tensor, "N d"],
    c: float,
    clip: float,
    radius: float,
    w0: Vector,
) -> Problem:
    """The problem with one row (a_j, b_j) a client, on the ball of a given radius.

    Metrics are `f`, `g` and the coordinates `w1` .. `wd`.
    """
    count = len(a)
    problem = one_row_each(
        "clipped_distances",
        (a, b, a.new_full((count,), c), a.new_full((count,), clip)),
        w0=w0,
        losses=_losses,
        gradient=_gradient,
        metrics=_metrics,
        set=Ball(radius),
    )
    return replace(problem, config={**problem.config, "radius": radius, "clip": clip})


def random_clipped(
    seed: int,
    dim: int = 2,
    clip: float = 2.0,
    spread: float = 0.0,
) -> Problem:
    """A random instance on the unit ball (D = 2, rho = 1 / clip) with an active constraint.

    The a_j are uniform in the half of the shell 0.6 <= |a| <= 1 that lies on one side; the b_j are
    normal around a point at 0.3 on the other side; c is 0.5 more than what the clients' spread
    makes necessary. The start is aside, on the boundary of X, where g > 0. All float64.

    `spread` is the standard deviation of the b_j; 0 makes the g_j equal, so that any participants
    tell g exactly.
    """
    rng = torch.Generator().manual_seed(seed)
    axis = units(torch.randn(dim, generator=rng, dtype=torch.float64))
    a = units(torch.randn(CLIENTS, dim, generator=rng, dtype=torch.float64))
    a = torch.where((a @ axis < 0).unsqueeze(1), -a, a)
    a = a * (0.6 + 0.4 * torch.rand(CLIENTS, 1, generator=rng, dtype=torch.float64))
    b = spread * torch.randn(CLIENTS, dim, generator=rng, dtype=torch.float64) - 0.3 * axis
    c = 0.5 + (b - b.mean(0)).norm(dim=-1).mean().item()
    side = torch.randn(dim, generator=rng, dtype=torch.float64)
    side = units(units(side - (side @ axis) * axis) + 0.2 * axis)
    return clipped_distances(a, b, c, clip, 1.0, side)


def value_spread(problem: Problem) -> float:
    """Half the largest distance of two b_j: a sigma of F-A4 for n sampled clients (and of F-A5).

    Two g_j differ by at most that distance at every point, so by Hoeffding's inequality (sampling
    without replacement included) the mean over n of them is sigma^2 / n sub-Gaussian.
    """
    b = problem.data[1]
    return float(torch.cdist(b, b).max()) / 2


def slater_slack(problem: Problem) -> float:
    """-g at the mean of the b_j, the Slater point of F-A9; positive for the random instances."""
    return -float(problem.mean_losses(problem.data[1].mean(0))[1])


def multiplier_bound(
    D: float,
    G: float,
    rho_hat: float,
    slack: float,
    share: float = 1.0,
) -> float:
    """F Lemma 10: Lambda = (G D + rho_hat D^2) / slack bounds the multiplier of the prox problem.

    `slack` is -g at a Slater point, `share` a factor of D^2: 1 is the paper's, 1/4 is enough,
    because <u, v> <= |u + v|^2 / 4.
    """
    return (G * D + share * rho_hat * D**2) / slack


def _losses(w: Tensor, batch: Batch) -> Tensor:
    a, b, c, clip = batch.data
    near = torch.minimum((w - a).norm(dim=-1), clip)
    values = torch.stack([near - near.square() / (2 * clip), (w - b).norm(dim=-1) - c])  # [2, B]
    return values @ batch.weight


def _gradient(w: Tensor, batch: Batch, weights: Tensor) -> Tensor:
    a, b, _, clip = batch.data
    slope = 1 - torch.minimum((w - a).norm(dim=-1), clip) / clip
    slopes = torch.stack([slope.unsqueeze(-1) * units(w - a), units(w - b)])  # [2, B, d]
    return weights @ (batch.weight @ slopes)


def _metrics(w: Tensor, problem: Problem) -> dict[str, Tensor]:
    f, g = problem.mean_losses(w)
    return {"f": f, "g": g} | {f"w{i + 1}": w[i] for i in range(problem.dim)}
