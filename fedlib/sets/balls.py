"""Convex sets: frozen records that can `project`, answer `lmo` and say what they contain.

A set acts on one vector [d]; `torch.func.vmap` gives batches. Nothing branches on a tensor, dtype
and device are those of the argument, NaN in gives NaN out. A bound may itself be a 0-d tensor,
which is what a hyperparameter becomes under the `vmap` of the run loop.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Positive
from fedlib.sets.vertices import Corner


@dataclass(frozen=True)
class Ball(checks.Checked):
    """Euclidean ball {x : ||x||_2 <= radius}.

    Raises ValueError or TypeError if `radius` is not a positive finite number.

    >>> Ball(1.0).project(torch.tensor([3.0, -4.0]))
    tensor([ 0.6000, -0.8000])
    >>> Ball(1.0).lmo(torch.tensor([3.0, -4.0]))
    tensor([-0.6000,  0.8000])
    """

    radius: Positive

    def project(self, x: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """The nearest point of the set: x itself, or radius x / ||x||."""
        checks.vector("Ball", "x", x)
        unit, norm, scale = _normalized(x)
        return torch.where(scale * norm <= self.radius, x, self.radius * unit)

    def contains(self, x: Float[Tensor, " d"], tol: float = 1e-6) -> Bool[Tensor, ""]:
        """Whether ||x|| <= (1 + tol) radius; a 0-d bool tensor."""
        checks.vector("Ball", "x", x)
        _, norm, scale = _normalized(x)
        return scale * norm <= (1 + tol) * self.radius

    def lmo(self, direction: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """A minimizer of <direction, s> over the set: -radius direction / ||direction||.

        For direction 0 every point is one; the centre is returned.
        """
        checks.vector("Ball", "direction", direction)
        unit, _, _ = _normalized(direction)
        return -self.radius * unit

    def diameter(self, dim: int) -> float:
        """The largest distance of two points, 2 radius in every dimension."""
        return 2 * self.radius

    def gauge(self, x: Float[Tensor, " d"]) -> Float[Tensor, ""]:
        """The norm over the radius."""
        length: Tensor = torch.linalg.vector_norm(x)
        return length / self.radius


@dataclass(frozen=True)
class Box:
    """Box {x : low <= x_i <= high}; `Box(radius)` is the box from -radius to radius.

    Raises ValueError or TypeError if the ends are not finite numbers with low < high, or a radius
    alone is not positive.

    >>> Box(1.0).project(torch.tensor([3.0, -0.5]))
    tensor([ 1.0000, -0.5000])
    >>> Box(0.0, 2.0).lmo(torch.tensor([3.0, -0.5]))
    tensor([0., 2.])
    """

    low: float
    high: float | None = None

    def __post_init__(self) -> None:
        if self.high is None:
            checks.positive("Box", "radius", self.low)
            object.__setattr__(self, "high", self.low)
            object.__setattr__(self, "low", -self.low)
        checks.fields(self)
        stacked = isinstance(self.low, Tensor) or isinstance(self.high, Tensor)
        fits = stacked or self.low < self._high
        checks.require(fits, "Box", "high", "be above low", (self.low, self.high))

    @property
    def _high(self) -> float:
        """The upper end, which `__post_init__` has made a number."""
        assert self.high is not None
        return self.high

    def project(self, x: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """The nearest point of the set: every coordinate clipped to [low, high]."""
        checks.vector("Box", "x", x)
        return x.clamp(min=self.low).clamp(max=self._high)

    def contains(self, x: Float[Tensor, " d"], tol: float = 1e-6) -> Bool[Tensor, ""]:
        """Whether every coordinate lies in [low, high], up to tol (high - low); 0-d bool."""
        checks.vector("Box", "x", x)
        slack = tol * (self._high - self.low)
        return ((x >= self.low - slack) & (x <= self._high + slack)).all()

    def lmo(self, direction: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """A vertex that minimizes <direction, s>: low where direction > 0, high elsewhere."""
        checks.vector("Box", "direction", direction)
        zero = torch.zeros_like(direction)
        vertex = torch.where(direction > 0, zero + self.low, zero + self._high)
        return torch.where(direction.isnan(), direction, vertex)

    def diameter(self, dim: int) -> float:
        """The largest distance of two points, sqrt(dim) (high - low)."""
        return math.sqrt(dim) * (self._high - self.low)

    def gauge(self, x: Float[Tensor, " d"]) -> Float[Tensor, ""]:
        """The largest distance of an entry from the middle, over that of the ends."""
        middle = (self.low + self._high) / 2
        return (x - middle).abs().amax() / (self._high - middle)

    def wire(self, dim: int) -> Corner:
        """A vertex travels as one bit an entry."""
        return Corner(self.low, self._high)


def _normalized(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(x / ||x||, ||x / c||, c) with c = max |x_i|, so that no square over- or underflows.

    For x = 0 the first two are 0.
    """
    top = x.abs().amax()
    scale = torch.where(top == 0, torch.ones_like(top), top)
    norm = torch.linalg.vector_norm(x / scale)
    return x / scale / norm.clamp(min=1), norm, scale  # norm >= 1 unless x = 0
