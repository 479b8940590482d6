"""Switching weights: how much of a round works on the constraint.

Let `z` be the violation of the threshold. If `sigma(z) = 0`, the round works on the objective; if
`sigma(z) = 1`, it works on the constraint (both FedSGM papers, Algorithm 1).
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Positive
from fedlib.shapes import PerLoss


@runtime_checkable
class Switch(Protocol):
    """A rule that maps the constraint's violation to the constraint's weight in [0, 1]."""

    def __call__(self, z: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        """The weight of the constraint's gradient."""


def loss_weights(
    objectives: Float[Tensor, "*M"],
    constraints: Float[Tensor, "*C"],
) -> PerLoss:
    """The weights `[M + C]` of the gradients: the objectives', then those of the constraints."""
    weights = [objectives.reshape(-1), constraints.reshape(-1)]
    return torch.cat(weights)


@dataclass(frozen=True)
class Hard:
    """The constraint's share of a round, `sigma(z) = 1{z > 0}` for z = g - level - tolerance.

    >>> import torch
    >>> Hard()(torch.tensor([-0.1, 0.0, 0.1]))
    tensor([0., 0., 1.])
    """

    def __call__(self, z: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        """1 where the threshold is exceeded, else 0."""
        return (z > 0).to(z.dtype)


@dataclass(frozen=True)
class Soft(checks.Checked):
    """The constraint's share `sigma(z) = min(1, max(0, 1 + beta z))`, z = g - level - tolerance.

    Parameters
    ----------
    beta : float
        The sharpness; the theorems require at least `2 / tolerance`. As `beta` grows, the rule
        approaches `Hard`, except at `z = 0`, where sigma stays 1.

    >>> import torch
    >>> Soft(beta=5.0)(torch.tensor([-0.3, -0.1, 0.1]))
    tensor([0.0000, 0.5000, 1.0000])
    """

    beta: Positive

    def __call__(self, z: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        """The weight, which is linear on `[-1 / beta, 0]`."""
        return (1 + self.beta * z).clamp(0, 1)
