"""Balls and the simplex: frozen records with the methods `project`, `lmo` and `contains`.

A set acts on one vector [d]; use `torch.func.vmap` for batches. The methods never branch on a
tensor, keep the argument's dtype and device, and return NaN for NaN. A bound may be a 0-d tensor,
as hyperparameters are under the `vmap` of the run loop. A bound out of range, or one that the
argument's dtype cannot hold, raises ValueError, a bound that is not a number TypeError.

`contains` accepts every point that `project` and `lmo` return: it allows for their rounding, a few
units for each entry.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from fedlib import checks
from fedlib.checks import Positive
from fedlib.sets.rounding import absolute_slack, check_bound, relative_slack, widened
from fedlib.sets.vertices import OneEntry
from fedlib.shapes import Flag, Scalar, Vector


class NormBall(checks.Checked):
    """Base of the balls {x : ||x|| <= radius}; each defines its norm in `size`."""

    radius: float

    @property
    def rank(self) -> int:
        """How many entries' errors of rounding add up in the norm, see `relative_slack`."""
        return 1

    @abstractmethod
    def size(self, x: Vector) -> Scalar:
        """The norm ||x||."""

    def contains(self, x: Vector, tol: float = 1e-6) -> Flag:
        """Whether ||x|| <= (1 + tol) radius up to rounding, as a 0-d bool tensor."""
        self._check("x", x)
        slack = relative_slack(x, tol, self.rank)
        relative = (1 + slack) * self.radius
        most = relative + absolute_slack(x)
        wide = widened(x)
        return self.size(wide) <= most

    def diameter(self, dim: int) -> float:
        """The largest distance between two points, 2 radius in every dimension."""
        return 2 * self.radius

    def gauge(self, x: Vector) -> Scalar:
        """The norm divided by the radius."""
        return self.size(x) / self.radius

    def _check(self, name: str, x: Vector) -> None:
        """Raise ValueError unless x is a vector whose dtype can hold the radius."""
        caller = type(self).__name__
        checks.vector(caller, name, x)
        check_bound(caller, "radius", self.radius, x)


@dataclass(frozen=True)
class Ball(NormBall):
    """The Euclidean ball {x : ||x||_2 <= radius}.

    >>> Ball(1.0).project(torch.tensor([3.0, -4.0]))
    tensor([ 0.6000, -0.8000])
    >>> Ball(1.0).lmo(torch.tensor([3.0, -4.0]))
    tensor([-0.6000,  0.8000])

    Parameters
    ----------
    radius : float
        The largest norm, positive.
    """

    radius: Positive

    def project(self, x: Vector) -> Vector:
        """The nearest point of the set: x itself, or radius x / ||x||."""
        self._check("x", x)
        wide = widened(x)
        unit, norm, scale = _normalized(wide)
        nearest = self.radius * unit
        inside = scale * norm <= self.radius
        return torch.where(inside, x, nearest.to(x.dtype))

    def lmo(self, direction: Vector) -> Vector:
        """A minimizer of <direction, s> over the set: -radius direction / ||direction||.

        For direction 0, every point is a minimizer; the centre is returned.
        """
        self._check("direction", direction)
        wide = widened(direction)
        unit, _, _ = _normalized(wide)
        vertex = -self.radius * unit
        return vertex.to(direction.dtype)

    def size(self, x: Vector) -> Scalar:
        """The Euclidean norm."""
        _, norm, scale = _normalized(x)
        return scale * norm


class Sparse(NormBall):
    """Base of the two sets whose extreme points have one nonzero entry."""

    def size(self, x: Vector) -> Scalar:
        """The sum of the absolute values."""
        return x.abs().sum()


@dataclass(frozen=True)
class L1Ball(Sparse):
    """The cross-polytope {x : |x_1| + ... + |x_d| <= radius}.

    >>> L1Ball(1.0).project(torch.tensor([1.0, 0.5]))
    tensor([0.7500, 0.2500])
    >>> L1Ball(1.0).lmo(torch.tensor([3.0, -4.0]))
    tensor([0., 1.])

    Parameters
    ----------
    radius : float
        The largest sum of the absolute values, positive.
    """

    radius: Positive

    def project(self, x: Vector) -> Vector:
        """The nearest point of the set: x itself, or its entries moved towards 0.

        Each moves by at most `theta`, such that the absolute values then sum to the radius.
        """
        self._check("x", x)
        wide = widened(x)
        size = wide.abs()
        projected = onto_simplex(size, self.radius)
        nearest = wide.sign() * projected
        inside = size.sum() <= self.radius
        return torch.where(inside, x, nearest.to(x.dtype))

    def lmo(self, direction: Vector) -> Vector:
        """A vertex that minimizes <direction, s>, at the first entry of largest magnitude.

        This entry is -radius sign(direction_j); for direction 0 it is -radius.
        """
        self._check("direction", direction)
        magnitudes = direction.abs()
        position = magnitudes.argmax().unsqueeze(0)
        entry = direction.gather(0, position)
        size = torch.ones_like(entry) * self.radius  # keeps the dtype; two numbers give float32
        value = torch.where(entry < 0, size, -size)
        return one_entry(position, value, direction)

    def wire(self, dim: int) -> OneEntry:
        """The message of a vertex is a position and a sign, `ceil(log2 dim) + 1` bits."""
        return OneEntry(self.radius)


@dataclass(frozen=True)
class Simplex(Sparse):
    """The simplex {x : x_i >= 0, x_1 + ... + x_d = radius}.

    >>> Simplex(1.0).project(torch.tensor([1.0, 0.5]))
    tensor([0.7500, 0.2500])
    >>> Simplex(1.0).lmo(torch.tensor([3.0, -4.0]))
    tensor([0., 1.])

    Parameters
    ----------
    radius : float
        The sum of the entries, positive.
    """

    radius: Positive = 1.0

    def project(self, x: Vector) -> Vector:
        """The nearest point of the set: max(x - theta, 0), whose entries sum to the radius."""
        self._check("x", x)
        wide = widened(x)
        nearest = onto_simplex(wide, self.radius)
        return nearest.to(x.dtype)

    def contains(self, x: Vector, tol: float = 1e-6) -> Flag:
        """Whether no entry is below -tol radius and the sum is radius up to tol, as a 0-d bool.

        The sum may also differ by rounding.
        """
        self._check("x", x)
        relative = relative_slack(x, tol) * self.radius
        slack = relative + absolute_slack(x)
        total = widened(x).sum()
        excess = total - self.radius
        lowest = -tol * self.radius
        nonnegative = (x >= lowest).all()
        return nonnegative & (excess.abs() <= slack)

    def lmo(self, direction: Vector) -> Vector:
        """The vertex that minimizes <direction, s>: radius at the first smallest entry."""
        self._check("direction", direction)
        position = direction.argmin().unsqueeze(0)
        entry = direction.gather(0, position)
        value = torch.ones_like(entry) * self.radius
        return one_entry(position, value, direction)

    def diameter(self, dim: int) -> float:
        """The largest distance between two points, sqrt(2) radius (0 in one dimension)."""
        if dim <= 1:
            return 0.0
        return math.sqrt(2) * self.radius

    def wire(self, dim: int) -> OneEntry:
        """The message of a vertex is a position, `ceil(log2 dim)` bits."""
        return OneEntry(self.radius, signed=False)


def _normalized(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(x / ||x||, ||x / c||, c) with c = max |x_i|, so that no square over- or underflows.

    For x = 0 the first two results are 0.
    """
    top = x.abs().amax()
    scale = torch.where(top == 0, 1, top)
    scaled = x / scale
    norm = torch.linalg.vector_norm(scaled)
    unit = scaled / norm.clamp(min=1)  # norm >= 1 unless x = 0
    return unit, norm, scale


def onto_simplex(x: Vector, radius: float) -> Vector:
    """The nearest point to x with entries >= 0 that sum to `radius`, by sorting.

    A common shift of all entries changes only theta, so the largest entry is shifted to 0 first.
    Then theta lies in [-radius, 0), and no digits are lost however large x is. Entries that are
    more than `radius` below the largest entry become 0 in any case.
    """
    shifted = x - x.amax()
    below = shifted.clamp(min=-radius)
    falling = below.sort(descending=True).values
    rank = torch.arange(1, len(x) + 1, dtype=x.dtype, device=x.device)
    excess = falling.cumsum(0) - radius
    theta = excess / rank
    exceeding = falling > theta
    used = exceeding.sum().clamp(min=1)
    position = (used - 1).unsqueeze(0)
    difference = below - theta.gather(0, position)
    nearest = difference.clamp(min=0)
    # many entries add up the rounding of theta: what their sum lacks is shared by those not 0
    positive = nearest > 0
    lacking = (radius - nearest.sum()) / positive.sum()
    filled = nearest + lacking * positive
    return filled.clamp(min=0)


def one_entry(
    position: Int[Tensor, "1"],
    value: Float[Tensor, "1"],
    direction: Vector,
) -> Vector:
    """A vector with a value at one position and 0 elsewhere; NaN if the direction has it there."""
    entry = direction.gather(0, position)
    value = torch.where(entry.isnan(), entry, value)
    zero = torch.zeros_like(direction)
    return zero.scatter(0, position, value)
