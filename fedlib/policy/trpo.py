"""Parts of trust-region policy optimization, for one client; `vmap` makes them many.

Reference: Schulman, Levine, Abbeel, Jordan, Moritz, *Trust Region Policy Optimization*, ICML 2015
(natural gradient by conjugate gradient, KL line search); Schulman, Moritz, Levine, Jordan, Abbeel,
*High-Dimensional Continuous Control Using Generalized Advantage Estimation*, ICLR 2016.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import vjp, vmap

Vector = Float[Tensor, "d"]


def discounted(x: Float[Tensor, "T *b"], keep: Float[Tensor, "T *b"]) -> Float[Tensor, "T *b"]:
    """y_t = x_t + keep_t y_{t+1} with y_T = 0, for all t at once.

    By doubling: after k passes y_t holds the terms t .. t + 2^k - 1, so log2(T) passes are enough.
    """
    steps, span = x.shape[0], 1
    while span < steps:
        later, further = (torch.cat([y[span:], torch.zeros_like(y[:span])]) for y in (x, keep))
        x, keep, span = x + keep * later, keep * further, 2 * span
    return x


def advantages(
    amount: Float[Tensor, "T *b"],
    values: Float[Tensor, "T+1 *b"],
    ended: Float[Tensor, "T *b"],
    discount: float,
    gae: float,
) -> tuple[Float[Tensor, "T *b"], Float[Tensor, "T *b"]]:
    """Generalized advantage estimates, and the returns that a critic is fitted to.

    Parameters
    ----------
    amount : reward or cost of each step.
    values : the critic's values before each step, and after the last (used where an episode was
        cut by the end of the simulation; after the end of an episode the value is 0).
    ended : 1 where the episode ended with this step.
    discount, gae : gamma and lambda.

    Returns
    -------
    `sum_k (gamma lambda)^k delta_{t+k}` with `delta = amount + gamma V' - V`, and the discounted
    return to the end of the episode (`lambda = 1`).
    """
    going = discount * (1 - ended)
    delta = amount + going * values[1:] - values[:-1]
    returns = discounted(delta, going) + values[:-1]
    return discounted(delta, gae * going), returns


def normalized(x: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """Mean 0 and variance 1 over all entries; zero where they are all equal."""
    centred = x - x.mean()
    return centred / (centred.square().mean().sqrt() + 1e-8)


def fisher_product(
    outputs: Callable[[Vector], Float[Tensor, "B 2"]],
    change: Callable[[Vector], Float[Tensor, "B 2"]],
    fisher: Callable[[Float[Tensor, "B 2"]], Float[Tensor, "B 2"]],
    w: Vector,
    v: Vector,
) -> Vector:
    """F v with F = J^T M J / B, without forming it.

    Parameters
    ----------
    outputs : w -> the network's outputs at B states, `[B, 2]`; J is their derivative at `w`.
    change : v -> J v, in closed form (forward differentiation cannot be recorded).
    fisher : u `[B, 2]` -> M u, the distributions' Fisher matrices.
    w, v : parameters, and the vector to multiply.
    """
    moved = fisher(change(v))
    pull = vjp(outputs, w)[1]
    product: Tensor = pull(moved / moved.shape[0])[0]
    return product


def conjugate_gradient(
    product: Callable[[Vector], Vector], b: Vector, steps: int
) -> tuple[Vector, Vector]:
    """An approximate solution of `A x = b` for a positive definite A, and its residual `b - A x`.

    `steps` iterations of the method of Hestenes and Stiefel; a residual of zero stays there.
    """
    x, r, p = torch.zeros_like(b), b, b
    rr = r @ r
    for _ in range(steps):
        Ap = product(p)
        alpha = rr / (p @ Ap).clamp_min(1e-30)
        x, r = x + alpha * p, r - alpha * Ap
        before, rr = rr, r @ r
        p = r + rr / before.clamp_min(1e-30) * p
    return x, r


def backtrack(
    divergence: Callable[[Vector], Float[Tensor, ""]],
    step: Vector,
    limit: Float[Tensor, ""] | float,
    ratio: float,
    n: int,
) -> Vector:
    """The first of `step, ratio step, ratio^2 step, ...` (n of them) within the limit, or zero.

    Parameters
    ----------
    divergence : step -> the mean KL divergence it causes.
    step, limit, ratio, n : full step `[d]`, limit of the divergence, factor, number of trials.
    """
    scales = ratio ** torch.arange(n, dtype=step.dtype, device=step.device)
    good = vmap(lambda scale: divergence(scale * step) <= limit)(scales)  # all trials together
    first = good & (good.cumsum(0) == 1)
    return (first * scales).sum() * step


def cosine_basis(
    inputs: int, width: int, like: Float[Tensor, "..."]
) -> Float[Tensor, "{inputs}+1 {width}"]:
    """Frequencies and phases of random cosine features, the same on every machine."""
    rng = torch.Generator().manual_seed(0)
    frequency = torch.randn(inputs, width, generator=rng)
    phase = 2 * torch.pi * torch.rand(1, width, generator=rng)
    return torch.cat([frequency, phase]).to(like)


def cosine_features(
    z: Float[Tensor, "*b k"], basis: Float[Tensor, "k+1 width"]
) -> Float[Tensor, "*b F"]:
    """cos(z W + phase), and all monomials of z up to degree two: `F = width + (k+1)(k+2)/2`."""
    k = z.shape[-1]
    rows, columns = torch.triu_indices(k + 1, k + 1, device=z.device)
    one = torch.cat([torch.ones_like(z[..., :1]), z], -1)
    squares = one.index_select(-1, rows) * one.index_select(-1, columns)
    return torch.cat([torch.cos(z @ basis[:k] + basis[k]), squares], -1)


def ridge(
    features: Float[Tensor, "B F"], targets: Float[Tensor, "B c"], strength: float
) -> Float[Tensor, "F c"]:
    """Least squares with penalty: argmin |features x - targets|^2 / B + strength |x|^2."""
    count = features.shape[0]
    gram = features.T @ features / count
    right = features.T @ targets / count
    eye = torch.eye(gram.shape[0], dtype=gram.dtype, device=gram.device)
    factor = torch.linalg.cholesky_ex(gram + strength * eye)[0]
    return torch.cholesky_solve(right, factor)
