"""The box, whose sides may be infinite."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from fedlib import checks
from fedlib.checks import Bound
from fedlib.sets.rounding import check_bound
from fedlib.sets.vertices import Corner
from fedlib.shapes import Flag, Scalar, Vector


@dataclass(frozen=True)
class Box:
    """The box {x : low <= x_i <= high}; `Box(radius)` is the box from -radius to radius.

    A side may be infinite: `Box(0.0, math.inf)` holds the vectors without negative entries. Such a
    box has no `lmo`, so it is for methods that project.

    >>> Box(1.0).project(torch.tensor([3.0, -0.5]))
    tensor([ 1.0000, -0.5000])
    >>> Box(0.0, 2.0).lmo(torch.tensor([3.0, -0.5]))
    tensor([0., 2.])

    Parameters
    ----------
    low : float
        The least entry; if `high` is left out, the radius of a box around 0.
    high : float
        The largest entry.
    """

    low: Bound
    high: Bound | None = None

    def __post_init__(self) -> None:
        if self.high is None:
            checks.positive("Box", "radius", self.low)
            object.__setattr__(self, "high", self.low)
            object.__setattr__(self, "low", -self.low)
        checks.fields(self)
        sides = (self.low, self._high)
        stacked = any(isinstance(side, Tensor) for side in sides)
        fits = stacked or self.low < self._high
        checks.require(fits, "Box", "high", "be above low", sides)

    @property
    def _high(self) -> float:
        assert self.high is not None
        return self.high

    def project(self, x: Vector) -> Vector:
        """The nearest point of the set: every coordinate clipped to [low, high].

        A side beyond the range of the dtype counts as infinite.
        """
        checks.vector("Box", "x", x)
        low = side_in(x, self.low)
        high = side_in(x, self._high)
        rule = f"hold numbers of {x.dtype}"
        for side, outside in ((low, math.inf), (high, -math.inf)):
            fits = not isinstance(side, float) or side != outside
            checks.require(fits, "Box", "the box", rule, self)
        above = x.clamp(min=low)
        return above.clamp(max=high)

    def contains(self, x: Vector, tol: float = 1e-6) -> Flag:
        """Whether every coordinate is finite and lies in [low, high], as a 0-d bool.

        It may miss the box by tol (high - low), or by tol |bound| if the other side is infinite.
        """
        checks.vector("Box", "x", x)
        low = side_in(x, self.low)
        high = side_in(x, self._high)
        width = high - low
        slack_low = tol * width
        slack_high = slack_low
        if not isinstance(width, Tensor) and math.isinf(width):
            slack_low = slack_beside_infinity(low, tol)
            slack_high = slack_beside_infinity(high, tol)
        not_below = x >= low - slack_low
        not_above = x <= high + slack_high
        inside = not_below & not_above & x.isfinite()
        return inside.all()

    def lmo(self, direction: Vector) -> Vector:
        """A vertex that minimizes <direction, s>: low where direction > 0, high elsewhere.

        Raises ValueError if a side is infinite.
        """
        checks.vector("Box", "direction", direction)
        self._check_bounded(direction)
        zero = torch.zeros_like(direction)
        low = zero + self.low
        high = zero + self._high
        vertex = torch.where(direction > 0, low, high)
        return torch.where(direction.isnan(), direction, vertex)

    def diameter(self, dim: int) -> float:
        """The largest distance between two points, sqrt(dim) (high - low)."""
        width = self._high - self.low
        return math.sqrt(dim) * width

    def gauge(self, x: Vector) -> Scalar:
        """The largest distance of an entry from the middle, divided by (high - low) / 2.

        It is NaN if a side is infinite.
        """
        middle = (self.low + self._high) / 2
        distances = (x - middle).abs()
        return distances.amax() / (self._high - middle)

    def wire(self, dim: int) -> Corner:
        """The message of a vertex has one bit for each entry; ValueError if a side is infinite."""
        self._check_bounded(torch.empty(1, dtype=torch.float64))
        return Corner(self.low, self._high)

    def _check_bounded(self, x: Vector) -> None:
        """Raise ValueError unless both sides are finite in the dtype of x."""
        remedy = "such a box is for methods that project, and has no minimizers of directions"
        check_bound("Box", "low", self.low, x, remedy)
        check_bound("Box", "high", self._high, x, remedy)


def slack_beside_infinity(bound: float, tol: float) -> float:
    """The distance by which a point may miss a side of an unbounded box."""
    if math.isinf(bound):
        return 0.0
    return tol * abs(bound)


def side_in(x: Vector, bound: float) -> float:
    """A side of a box, infinite if it lies beyond the range of the dtype of x."""
    largest = torch.finfo(x.dtype).max
    if isinstance(bound, Tensor) or abs(bound) <= largest:
        return bound
    return math.copysign(math.inf, bound)
