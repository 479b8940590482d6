"""Local steps of a client: plain gradient steps, or Adam whose moments start at zero."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Protocol, runtime_checkable

import torch

from fedlib import checks
from fedlib.checks import Count, Positive
from fedlib.shapes import Scalar, Vector

#: A number in [0, 1).
Beta = Annotated[float, checks.between(0, 1, open_high=True)]
Rate = float | Scalar
#: The gradient at a point in a given step; steps are counted from 0.
Gradient = Callable[[Vector, int], Vector]


@runtime_checkable
class LocalSteps(Protocol):
    """A rule that makes some steps from a point along gradients."""

    def __call__(
        self,
        u: Vector,
        gradient: Gradient,
        steps: Count,
        lr: Rate,
    ) -> Vector:
        """The point after `steps` steps of size `lr` from `u`."""


@dataclass(frozen=True)
class SGD:
    """Plain gradient steps, `u <- u - lr gradient(u, t)`, which the papers' methods use.

    >>> SGD()(torch.tensor([1.0]), lambda u, t: u, steps=2, lr=0.5)
    tensor([0.2500])
    """

    def __call__(
        self,
        u: Vector,
        gradient: Gradient,
        steps: Count,
        lr: Rate,
    ) -> Vector:
        """The point after `steps` steps."""
        for step in range(steps):
            u = u - lr * gradient(u, step)
        return u


@dataclass(frozen=True)
class Adam(checks.Checked):
    r"""Adam, which every client restarts in every round.

        1  g = gradient(u, t)
        2  m <- beta_1 m + (1 - beta_1) g;  v <- beta_2 v + (1 - beta_2) g^2
        3  u <- u - lr m / (1 - beta_1^t) / (sqrt(v / (1 - beta_2^t)) + eps)

    >>> Adam()(torch.tensor([1.0]), lambda u, t: u, steps=2, lr=0.25)
    tensor([0.5044])

    Parameters
    ----------
    betas : tuple of float
        beta_1 and beta_2, the shares of the old moments that stay, in [0, 1).
    eps : float
        A positive number that keeps the divisor from 0.

    The step size is the method's `lr`.

    Reference: Kingma, Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015, Algorithm 1.
    """

    betas: tuple[Beta, Beta] = (0.9, 0.999)
    eps: Positive = 1e-8

    def __call__(
        self,
        u: Vector,
        gradient: Gradient,
        steps: Count,
        lr: Rate,
    ) -> Vector:
        """The point after `steps` steps."""
        beta_1, beta_2 = self.betas
        m = torch.zeros_like(u)
        v = torch.zeros_like(u)
        for step in range(steps):
            g = gradient(u, step)  # 1
            m = beta_1 * m + (1 - beta_1) * g  # 2
            v = beta_2 * v + (1 - beta_2) * g * g  # 2
            mean = m / (1 - beta_1 ** (step + 1))
            square = v / (1 - beta_2 ** (step + 1))
            u = u - lr * mean / (square.sqrt() + self.eps)  # 3
        return u
