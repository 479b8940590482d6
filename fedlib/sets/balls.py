"""Convex sets: frozen records with the methods `project`, `lmo` and `contains`.

A set acts on one vector [d]; use `torch.func.vmap` for batches. The methods never branch on a
tensor, keep the argument's dtype and device, and return NaN for NaN. A bound may be a 0-d tensor,
as hyperparameters are under the `vmap` of the run loop. A bound out of range raises ValueError, a
bound that is not a number TypeError.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Positive
from fedlib.sets.vertices import Corner, OneEntry, RankOne

GOLDEN = (5**0.5 - 1) / 2
STALLED = 1000  # units of rounding; a direction whose new part is shorter is noise


class NormBall(checks.Checked):
    """Base of the balls {x : ||x|| <= radius}; each defines its norm in `size`."""

    radius: float

    @abstractmethod
    def size(self, x: Float[Tensor, " d"]) -> Float[Tensor, ""]:
        """The norm ||x||."""

    def contains(self, x: Float[Tensor, " d"], tol: float = 1e-6) -> Bool[Tensor, ""]:
        """Whether ||x|| <= (1 + tol) radius, as a 0-d bool tensor."""
        checks.vector(type(self).__name__, "x", x)
        return self.size(x) <= (1 + tol) * self.radius

    def diameter(self, dim: int) -> float:
        """The largest distance between two points, 2 radius in every dimension."""
        return 2 * self.radius

    def gauge(self, x: Float[Tensor, " d"]) -> Float[Tensor, ""]:
        """The norm divided by the radius."""
        return self.size(x) / self.radius


@dataclass(frozen=True)
class Ball(NormBall):
    """The Euclidean ball {x : ||x||_2 <= radius}.

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

    def lmo(self, direction: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """A minimizer of <direction, s> over the set: -radius direction / ||direction||.

        For direction 0, every point is a minimizer; the centre is returned.
        """
        checks.vector("Ball", "direction", direction)
        unit, _, _ = _normalized(direction)
        return -self.radius * unit

    def size(self, x: Float[Tensor, " d"]) -> Float[Tensor, ""]:
        """The Euclidean norm."""
        _, norm, scale = _normalized(x)
        return scale * norm


@dataclass(frozen=True)
class Box:
    """The box {x : low <= x_i <= high}; `Box(radius)` is the box from -radius to radius.

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
        assert self.high is not None
        return self.high

    def project(self, x: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """The nearest point of the set: every coordinate clipped to [low, high]."""
        checks.vector("Box", "x", x)
        return x.clamp(min=self.low).clamp(max=self._high)

    def contains(self, x: Float[Tensor, " d"], tol: float = 1e-6) -> Bool[Tensor, ""]:
        """Whether every coordinate lies in [low, high] up to tol (high - low), as a 0-d bool."""
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
        """The largest distance between two points, sqrt(dim) (high - low)."""
        return math.sqrt(dim) * (self._high - self.low)

    def gauge(self, x: Float[Tensor, " d"]) -> Float[Tensor, ""]:
        """The largest distance of an entry from the middle, divided by (high - low) / 2."""
        middle = (self.low + self._high) / 2
        return (x - middle).abs().amax() / (self._high - middle)

    def wire(self, dim: int) -> Corner:
        """The message of a vertex has one bit for each entry."""
        return Corner(self.low, self._high)


class Sparse(NormBall):
    """Base of the two sets whose extreme points have one nonzero entry."""

    def size(self, x: Float[Tensor, " d"]) -> Float[Tensor, ""]:
        """The sum of the absolute values."""
        return x.abs().sum()


@dataclass(frozen=True)
class L1Ball(Sparse):
    """The cross-polytope {x : |x_1| + ... + |x_d| <= radius}.

    >>> L1Ball(1.0).project(torch.tensor([1.0, 0.5]))
    tensor([0.7500, 0.2500])
    >>> L1Ball(1.0).lmo(torch.tensor([3.0, -4.0]))
    tensor([0., 1.])
    """

    radius: Positive

    def project(self, x: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """The nearest point of the set: x itself, or its entries moved towards 0.

        Each moves by at most `theta`, such that the absolute values then sum to the radius.
        """
        checks.vector("L1Ball", "x", x)
        size = x.abs()
        return torch.where(size.sum() <= self.radius, x, x.sign() * onto_simplex(size, self.radius))

    def lmo(self, direction: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """A vertex that minimizes <direction, s>, at the first entry of largest magnitude.

        This entry is -radius sign(direction_j); for direction 0 it is -radius.
        """
        checks.vector("L1Ball", "direction", direction)
        place = direction.abs().argmax()
        there = direction.gather(0, place.unsqueeze(0))
        size = torch.ones_like(there) * self.radius  # keeps the dtype; two numbers give float32
        value = torch.where(there < 0, size, -size)
        return _at(place, torch.where(there.isnan(), there, value), direction)

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
    """

    radius: Positive = 1.0

    def project(self, x: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """The nearest point of the set: max(x - theta, 0), whose entries sum to the radius."""
        checks.vector("Simplex", "x", x)
        return onto_simplex(x, self.radius)

    def contains(self, x: Float[Tensor, " d"], tol: float = 1e-6) -> Bool[Tensor, ""]:
        """Whether no entry is below -tol radius and the sum is radius up to tol, as a 0-d bool."""
        checks.vector("Simplex", "x", x)
        slack = tol * self.radius
        return (x >= -slack).all() & ((x.sum() - self.radius).abs() <= slack)

    def lmo(self, direction: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """The vertex that minimizes <direction, s>: radius at the first smallest entry."""
        checks.vector("Simplex", "direction", direction)
        place = direction.argmin()
        there = direction.gather(0, place.unsqueeze(0))
        value = torch.ones_like(there) * self.radius
        return _at(place, torch.where(there.isnan(), there, value), direction)

    def diameter(self, dim: int) -> float:
        """The largest distance between two points, sqrt(2) radius (0 in one dimension)."""
        return math.sqrt(2) * self.radius if dim > 1 else 0.0

    def wire(self, dim: int) -> OneEntry:
        """The message of a vertex is a position, `ceil(log2 dim)` bits."""
        return OneEntry(self.radius, signed=False)


@dataclass(frozen=True)
class NuclearBall(NormBall):
    """The matrices whose singular values sum to at most `radius`, as vectors of their rows.

    >>> ball = NuclearBall(1.0, rows=2, columns=2)
    >>> ball.project(torch.tensor([3.0, 0.0, 0.0, 0.0]))
    tensor([1., 0., 0., 0.])
    >>> ball.contains(torch.tensor([0.5, 0.0, 0.0, 0.4]))
    tensor(True)

    Parameters
    ----------
    rows, columns : the shape of the matrix; d = rows * columns.
    steps : the number of Lanczos steps in `lmo`, each with two products of the matrix and a vector.
        `lmo` is exact up to rounding if `steps` is at least min(rows, columns).
    """

    radius: Positive
    rows: Count
    columns: Count
    steps: Count = 40

    def project(self, x: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """The nearest point of the set: x itself, or its singular values projected to the simplex.

        It needs a full singular value decomposition.
        """
        A, finite = self._matrix(x)
        U, S, Vh = torch.linalg.svd(A, full_matrices=False)
        nearest: Tensor = ((U * onto_simplex(S, self.radius)) @ Vh).flatten()
        point = torch.where(S.sum() <= self.radius, x, nearest)
        return torch.where(finite, point, torch.full_like(x, torch.nan))

    def size(self, x: Float[Tensor, " d"]) -> Float[Tensor, ""]:
        """The nuclear norm, the sum of the singular values."""
        A, finite = self._matrix(x)
        norm = torch.linalg.svdvals(A).sum()
        return torch.where(finite, norm, torch.full_like(norm, torch.nan))

    def lmo(self, direction: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
        """A minimizer of <direction, s>: -radius u v' with the leading singular vectors u and v.

        For direction 0 the centre is returned.
        """
        A, finite = self._matrix(direction, "direction")
        u, v = leading_pair(A, self.steps)
        vertex: Tensor = -self.radius * torch.outer(u, v).flatten()
        return torch.where(finite, vertex, torch.full_like(vertex, torch.nan))

    def wire(self, dim: int) -> RankOne:
        """The message of a vertex is two vectors, `32 (rows + columns)` bits."""
        return RankOne(self.rows, self.columns)

    def _matrix(self, x: Tensor, name: str = "x") -> tuple[Tensor, Tensor]:
        """The matrix, with 0 for NaN and infinity (LAPACK fails on them); whether it had none."""
        checks.vector("NuclearBall", name, x, self.rows * self.columns)
        finite = torch.isfinite(x).all()
        clean = torch.where(finite, x, torch.zeros_like(x))
        return clean.view(self.rows, self.columns), finite


def _normalized(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(x / ||x||, ||x / c||, c) with c = max |x_i|, so that no square over- or underflows.

    For x = 0 the first two results are 0.
    """
    top = x.abs().amax()
    scale = torch.where(top == 0, torch.ones_like(top), top)
    norm = torch.linalg.vector_norm(x / scale)
    return x / scale / norm.clamp(min=1), norm, scale  # norm >= 1 unless x = 0


def onto_simplex(x: Float[Tensor, " d"], radius: float) -> Float[Tensor, " d"]:
    """The nearest point to x with entries >= 0 that sum to `radius`, by sorting.

    A common shift of all entries changes only theta, so the largest entry is shifted to 0 first.
    Then theta lies in [-radius, 0), and no digits are lost however large x is. Entries that are
    more than `radius` below the largest entry become 0 in any case.
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
    """A vector with a value at one position and 0 elsewhere."""
    return torch.zeros_like(like).scatter(0, place.unsqueeze(0), value)


def leading_pair(
    A: Float[Tensor, "m n"], steps: int = 40
) -> tuple[Float[Tensor, " m"], Float[Tensor, " n"]]:
    """Unit vectors u, v with u'Av close to the largest singular value of A; zeros for A = 0.

    The method is Lanczos on A'A with full reorthogonalization. `steps` products with A (finite, of
    any scale) build an orthonormal basis Q of a Krylov space. The best v in it comes from the SVD
    of the small triangular factor of AQ. The start is A'h with a fixed irregular h, so the result
    is a function of A. It is exact up to rounding if rows or columns do not exceed `steps`.
    """
    top = A.abs().amax()
    A = A / torch.where(top == 0, torch.ones_like(top), top)
    if A.shape[0] < A.shape[1]:
        v, u = _tall_pair(A.mT, steps)
        return u, v
    return _tall_pair(A, steps)


def _tall_pair(A: Float[Tensor, "m n"], steps: int) -> tuple[Tensor, Tensor]:
    m, n = A.shape
    if n <= steps:
        W, Q = A, torch.eye(n, dtype=A.dtype, device=A.device)
    else:
        irregular = (torch.arange(1, m + 1, dtype=A.dtype, device=A.device) * GOLDEN).frac() - 0.5
        q = _unit(irregular @ A)
        basis, images = [q], [A @ q]
        for _ in range(steps - 1):
            q, Q = _unit(images[-1] @ A), torch.stack(basis)  # Q: [k, n]
            rest = q - (Q @ q) @ Q
            new = torch.linalg.vector_norm(rest) > STALLED * torch.finfo(A.dtype).eps
            q = torch.where(new, _unit(rest), torch.zeros_like(q))  # 0 if the space is complete
            q = _unit(q - (Q @ q) @ Q)  # two orthogonalizations are enough
            basis.append(q)
            images.append(A @ q)
        W, Q = torch.stack(images, 1), torch.stack(basis, 1)
    z = torch.linalg.svd(torch.linalg.qr(W).R).Vh[0]
    v = _unit(Q @ z)
    u = _unit(A @ v)
    return u, torch.where((u == 0).all(), torch.zeros_like(v), v)


def _unit(x: Float[Tensor, " d"]) -> Float[Tensor, " d"]:
    """The vector divided by its norm, or 0."""
    norm = torch.linalg.vector_norm(x)
    return x / torch.where(norm == 0, torch.ones_like(norm), norm)
