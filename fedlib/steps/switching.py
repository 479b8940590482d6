"""Switching weights: how much of a round goes to the constraint.

With `z` the violation of the threshold, `sigma(z) = 0` means the round works on the objective and
`sigma(z) = 1` that it works on the constraint (both FedSGM papers, Algorithm 1).
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Positive


@runtime_checkable
class Switch(Protocol):
    """Maps a violation to a weight in [0, 1]."""

    def __call__(self, z: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        """The weight of the constraint's gradient."""


def loss_weights(
    objective: Float[Tensor, ""], constraints: Float[Tensor, "*C"]
) -> Float[Tensor, "K"]:
    """The weights `[1 + C]` of the gradients: of the objective, then of one constraint or more."""
    return torch.cat([objective.reshape(1), constraints.reshape(-1)])


@dataclass(frozen=True)
class Hard:
    """`sigma(z) = 1{z > 0}`: at the threshold itself the round goes to the objective.

    >>> import torch
    >>> Hard()(torch.tensor([-0.1, 0.0, 0.1]))
    tensor([0., 0., 1.])
    """

    def __call__(self, z: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        """One where the threshold is exceeded."""
        return (z > 0).to(z.dtype)


@dataclass(frozen=True)
class Soft(checks.Checked):
    """`sigma(z) = min(1, max(0, 1 + beta z))`: the pull starts `1 / beta` below the threshold.

    `beta` is the sharpness; the theorems ask for `2 / epsilon` or more. As `beta` grows the rule
    becomes `Hard`, except at `z = 0`, where it stays one.

    >>> import torch
    >>> Soft(beta=5.0)(torch.tensor([-0.3, -0.1, 0.1]))
    tensor([0.0000, 0.5000, 1.0000])
    """

    beta: Positive

    def __call__(self, z: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        """The weight, linear on `[-1 / beta, 0]`."""
        return (1 + self.beta * z).clamp(0, 1)
