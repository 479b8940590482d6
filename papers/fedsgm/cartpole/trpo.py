"""Policies on one flat vector, and the parts of the trust-region step that improves them.

The two outputs of a policy network make a normal distribution over one action. `fisher` is the
Fisher matrix of that distribution in the outputs, so that the Fisher matrix of the policy is
J^T fisher J with J the derivative of the outputs by the parameters. The parts of a step are those
of one client; `vmap` makes them many.

Reference: Schulman, Levine, Abbeel, Jordan, Moritz, *Trust Region Policy Optimization*, ICML 2015
(natural gradient by conjugate gradient, KL line search); Schulman, Moritz, Levine, Jordan, Abbeel,
*High-Dimensional Continuous Control Using Generalized Advantage Estimation*, ICLR 2016.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import vmap

from fedlib.shapes import Scalar, Vector

Outputs = Float[Tensor, "*b 2"]  # of the network
Values = Float[Tensor, "*b"]
LOG_STD = (-3.0, 0.7)  # the range of a Gaussian's log standard deviation


class Episodes(NamedTuple):
    """One client's simulation: T steps of e parallel environments that restart when they end."""

    states: Float[Tensor, "T+1 e s"]  # before each step, and after the last
    action: Float[Tensor, "T e"]
    reward: Float[Tensor, "T e"]
    cost: Float[Tensor, "T e"]
    ended: Float[Tensor, "T e"]  # 1 where the episode ended with this step
    first: Float[Tensor, "T e"]  # 1 while an environment is in its first episode

    def per_episode(self, amount: Float[Tensor, "T e"]) -> Scalar:
        """Mean over the environments of the sum over their first episode.

        Unbiased if every first episode ends within the T steps; the mean over all completed
        episodes is not (short ones are completed more often).
        """
        return (amount * self.first).sum(0).mean()


@dataclass(frozen=True)
class Gaussian:
    """One real action; the outputs are its mean and its log standard deviation.

    The latter is clamped to [-3, 0.7]; gradient and Fisher matrix are zero outside.

    >>> Gaussian().sample(torch.tensor([2.0, 0.0]), torch.tensor(0.5))
    tensor(2.)
    """

    def sample(self, outputs: Outputs, u: Values) -> Values:
        """Mean plus standard deviation times the normal quantile."""
        mean, log_std = self._read(outputs)
        normal: Tensor = torch.special.ndtri(u)
        return mean + log_std.exp() * normal

    def log_prob(self, outputs: Outputs, action: Values) -> Values:
        """Log density of the action before it is clipped."""
        mean, log_std = self._read(outputs)
        z = (action - mean) * torch.exp(-log_std)
        return -0.5 * z * z - log_std - 0.5 * math.log(2 * math.pi)

    def kl(self, old: Outputs, new: Outputs) -> Values:
        """Of two normal distributions."""
        mean, log_std = self._read(old)
        mean2, log_std2 = self._read(new)
        gap = mean2 - mean
        spread = torch.exp(2 * (log_std - log_std2)) + gap * gap * torch.exp(-2 * log_std2)
        return log_std2 - log_std + 0.5 * (spread - 1)

    def fisher(self, outputs: Outputs, v: Outputs) -> Outputs:
        """Diagonal: 1 / variance for the mean, 2 for the log standard deviation."""
        raw = outputs[..., 1]
        inside = ((raw >= LOG_STD[0]) & (raw <= LOG_STD[1])).to(raw.dtype)
        precision = torch.exp(-2 * self._read(outputs)[1])
        return torch.stack([precision * v[..., 0], 2 * inside * v[..., 1]], -1)

    def _read(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        return outputs[..., 0], outputs[..., 1].clamp(*LOG_STD)


def discounted(x: Float[Tensor, "T *b"], keep: Float[Tensor, "T *b"]) -> Float[Tensor, "T *b"]:
    """y_t = x_t + keep_t y_{t+1} with y_T = 0, for all t at once.

    By doubling: after k passes y_t holds the terms t .. t + 2^k - 1, so log2(T) passes are enough.
    """
    steps = x.shape[0]
    span = 1
    while span < steps:
        later, further = (torch.cat([y[span:], torch.zeros_like(y[:span])]) for y in (x, keep))
        x = x + keep * later
        keep = keep * further
        span = 2 * span
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


def conjugate_gradient(
    product: Callable[[Vector], Vector], b: Vector, steps: int
) -> tuple[Vector, Vector]:
    """An approximate solution of `A x = b` for a positive definite A, and its residual `b - A x`.

    `steps` iterations of the method of Hestenes and Stiefel; a residual of zero stays there.
    """
    x = torch.zeros_like(b)
    r = b
    p = b
    rr = r @ r
    for _ in range(steps):
        Ap = product(p)
        alpha = rr / (p @ Ap).clamp_min(1e-30)
        x = x + alpha * p
        r = r - alpha * Ap
        previous = rr
        rr = r @ r
        p = r + rr / previous.clamp_min(1e-30) * p
    return x, r


def backtrack(
    divergence: Callable[[Vector], Scalar],
    step: Vector,
    limit: Scalar | float,
    ratio: float,
    n: int,
) -> Vector:
    """The first of `step, ratio step, ratio^2 step, ...` (n of them) within the limit, or zero.

    `divergence` gives the mean KL divergence that a step `[d]` causes, at most `limit`.
    """
    scales = ratio ** torch.arange(n, dtype=step.dtype, device=step.device)
    good = vmap(lambda scale: divergence(scale * step) <= limit)(scales)  # all trials together
    first_good = good & (good.cumsum(0) == 1)
    return (first_good * scales).sum() * step


def cosine_basis(
    inputs: int, width: int, template: Float[Tensor, "..."]
) -> Float[Tensor, "{inputs}+1 {width}"]:
    """Frequencies and phases of random cosine features, the same on every machine."""
    rng = torch.Generator().manual_seed(0)
    frequency = torch.randn(inputs, width, generator=rng)
    phase = 2 * torch.pi * torch.rand(1, width, generator=rng)
    return torch.cat([frequency, phase]).to(template)


def cosine_features(
    z: Float[Tensor, "*b k"], basis: Float[Tensor, "k+1 width"]
) -> Float[Tensor, "*b F"]:
    """cos(z W + phase), and all monomials of z up to degree two: `F = width + (k+1)(k+2)/2`."""
    k = z.shape[-1]
    rows, columns = torch.triu_indices(k + 1, k + 1, device=z.device)
    extended = torch.cat([torch.ones_like(z[..., :1]), z], -1)
    squares = extended.index_select(-1, rows) * extended.index_select(-1, columns)
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
