"""Sets whose extreme points have one entry: the l1 ball and the simplex.

Frozen records as those of `fedlib.sets`: one vector [d] at a time, nothing branches on a tensor,
dtype and device are those of the argument, NaN in gives NaN out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Positive
from fedlib.sets.vertices import OneEntry


class Sparse(checks.Checked):
    """Base of the two sets."""

    radius: float

    def gauge(self, x: Float[Tensor, " d"]) -> Float[Tensor, ""]:
        """The sum of the absolute values over the radius."""
        return x.abs().sum() / self.radius


@dataclass(frozen=True)
class L1Ball(Sparse):
    """The cross-polytope {x : |x_1| + ... + |x_d| <= radius}.

    Raises ValueError or TypeError if `radius` is not a positive finite number.

    >>> L1Ball(1.0).project(torch.tensor([1.0, 0.5]))
    tensor([0.7500, 0.2500])
    >>> L1Ball(1.0).lmo(torch.tensor([3.0, -4.0]))
    tensor([0., 1.])
    """

    radius: Positive

    def project(self, x: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """The nearest point of the set: x itself, or its entries moved to 0 by the same length.

        At most `theta` each, such that the absolute values then sum to the radius.
        """
        checks.vector("L1Ball", "x", x)
        size = x.abs()
        return torch.where(size.sum() <= self.radius, x, x.sign() * onto_simplex(size, self.radius))

    def contains(self, x: Float[Tensor, " d"], tol: float = 1e-6) -> Bool[Tensor, ""]:
        """Whether the absolute values sum to at most (1 + tol) radius; a 0-d bool tensor."""
        checks.vector("L1Ball", "x", x)
        return x.abs().sum() <= (1 + tol) * self.radius

    def lmo(self, direction: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """A vertex that minimizes <direction, s>: at the entry of largest magnitude, the first.

        Its entry is -radius sign(direction_j); for direction 0, -radius.
        """
        checks.vector("L1Ball", "direction", direction)
        place = direction.abs().argmax()
        there = direction.gather(0, place.unsqueeze(0))
        size = torch.ones_like(there) * self.radius  # two numbers would meet in float32
        value = torch.where(there < 0, size, -size)
        return _at(place, torch.where(there.isnan(), there, value), direction)

    def diameter(self, dim: int) -> float:
        """The largest distance of two points, 2 radius in every dimension."""
        return 2 * self.radius

    def wire(self, dim: int) -> OneEntry:
        """A vertex travels as a position and a sign, `ceil(log2 dim) + 1` bits."""
        return OneEntry(self.radius)


@dataclass(frozen=True)
class Simplex(Sparse):
    """The simplex {x : x_i >= 0, x_1 + ... + x_d = radius}.

    Raises ValueError or TypeError if `radius` is not a positive finite number.

    >>> Simplex(1.0).project(torch.tensor([1.0, 0.5]))
    tensor([0.7500, 0.2500])
    >>> Simplex(1.0).lmo(torch.tensor([3.0, -4.0]))
    tensor([0., 1.])
    """

    radius: Positive = 1.0

    def project(self, x: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """The nearest point of the set: max(x - theta, 0), theta such that the sum is right."""
        checks.vector("Simplex", "x", x)
        return onto_simplex(x, self.radius)

    def contains(self, x: Float[Tensor, " d"], tol: float = 1e-6) -> Bool[Tensor, ""]:
        """Whether no entry is below -tol radius and the sum is radius up to tol; 0-d bool."""
        checks.vector("Simplex", "x", x)
        slack = tol * self.radius
        return (x >= -slack).all() & ((x.sum() - self.radius).abs() <= slack)

    def lmo(self, direction: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """The vertex that minimizes <direction, s>: radius at the smallest entry, the first."""
        checks.vector("Simplex", "direction", direction)
        place = direction.argmin()
        there = direction.gather(0, place.unsqueeze(0))
        value = torch.ones_like(there) * self.radius
        return _at(place, torch.where(there.isnan(), there, value), direction)

    def diameter(self, dim: int) -> float:
        """The largest distance of two points, sqrt(2) radius (0 in one dimension)."""
        return math.sqrt(2) * self.radius if dim > 1 else 0.0

    def wire(self, dim: int) -> OneEntry:
        """A vertex travels as a position, `ceil(log2 dim)` bits."""
        return OneEntry(self.radius, signed=False)


def onto_simplex(x: Float[Tensor, " d"], radius: float) -> Float[Tensor, " d"]:
    """The nearest point to x with entries >= 0 that sum to `radius`, by sorting.

    A common shift of all entries moves only theta, so the largest is taken to 0 first: theta then
    lies in [-radius, 0), and no digits are lost however large x is. Entries further than `radius`
    below the largest one get 0 anyway.
    """
    below = (x - x.amax()).clamp(min=-radius)
    falling = below.sort(descending=True).values
    count = torch.arange(1, len(x) + 1, dtype=x.dtype, device=x.device)
    theta = (falling.cumsum(0) - radius) / count
    used = (falling > theta).sum().clamp(min=1)
    return (below - theta.gather(0, (used - 1).unsqueeze(0))).clamp(min=0)


def _at(
    place: Tensor, value: Float[Tensor, " 1"], like: Float[Tensor, " d"]
) -> Float[Tensor, " d"]:
    """A value at a position, 0 elsewhere."""
    return torch.zeros_like(like).scatter(0, place.unsqueeze(0), value)
