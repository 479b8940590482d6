"""Extreme points of convex sets on the wire: what a Frank-Wolfe client sends, and how long it is.

The minimizer that `set.lmo` returns is an extreme point, which has a short name: a position and a
sign, one bit an entry, two vectors. Each format here is a `Compressor` that changes nothing: it is
called on an extreme point, `encode` gives its short name, `decode` the point. The set and its
radius are known to both sides and never travel.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Positive
from fedlib.compress.compressors import FLOAT_BITS, Compressor, Identity, Message, Noise
from fedlib.core.problem import ConvexSet
from fedlib.sets.balls import Ball, Box


@dataclass(frozen=True)
class Vertex:
    """What all formats share: nothing is lost, nothing is random."""

    def __post_init__(self) -> None:
        checks.fields(self)

    def __call__(self, x: Float[Tensor, "d"], noise: Noise = ()) -> Float[Tensor, "d"]:
        """The point itself."""
        checks.vector(type(self).__name__, "x", x)
        del noise
        return x

    def draw(self, count: int, dim: int, rng: torch.Generator) -> Noise:
        """Nothing is random."""
        checks.drawing(type(self).__name__, rng, count=count, dim=dim)
        del count, dim, rng
        return ()

    def contraction(self, dim: int) -> float | None:
        """Exact on the points it is made for: `q = 1`."""
        checks.count(type(self).__name__, "dim", dim)
        del dim
        return 1.0

    def variance(self, dim: int) -> float | None:
        """Exact on the points it is made for: `q_u = 0`."""
        checks.count(type(self).__name__, "dim", dim)
        del dim
        return 0.0


@dataclass(frozen=True)
class OneEntry(Vertex):
    """A point with one entry `radius` (or `-radius`, if `signed`) and zeros: the entry's position.

    `ceil(log2 d)` bits, and one for the sign.

    >>> one = OneEntry(radius=2.0)
    >>> one.encode(torch.tensor([0.0, -2.0, 0.0]))
    Message(values=tensor([-1.]), positions=tensor([1]))
    >>> one.bits(1000)
    11
    """

    radius: Positive
    signed: bool = True

    def encode(self, x: Float[Tensor, "d"], noise: Noise = ()) -> Message:
        """The position of the entry and its sign (0 for the point 0, which is no vertex)."""
        checks.vector("OneEntry", "x", x)
        del noise
        position = x.abs().argmax().unsqueeze(0)
        return Message(x.gather(0, position).sign(), position)

    def decode(
        self, message: Message, like: Float[Tensor, "d"], noise: Noise = ()
    ) -> Float[Tensor, "d"]:
        """The vertex."""
        del noise
        assert isinstance(message.positions, Tensor)
        return torch.zeros_like(like).scatter(0, message.positions, self.radius * message.values)

    def bits(self, dim: int) -> int:
        """A position, and a sign if there is one."""
        checks.count("OneEntry", "dim", dim)
        return ceil(log2(dim)) + self.signed

    def lengths(self, dim: int) -> tuple[int, int]:
        """Numbers and positions of a message."""
        del dim
        return 1, 1


@dataclass(frozen=True)
class Corner(Vertex):
    """A corner of the box from `low` to `high`: one bit an entry.

    >>> Corner(-1.0, 1.0).encode(torch.tensor([1.0, -1.0])).values
    tensor([1., 0.])
    >>> Corner(-1.0, 1.0).bits(1000)
    1000
    """

    low: float
    high: float

    def encode(self, x: Float[Tensor, "d"], noise: Noise = ()) -> Message:
        """Which entries are high, 1 or 0."""
        checks.vector("Corner", "x", x)
        del noise
        return Message((x > (self.low + self.high) / 2).to(x.dtype))

    def decode(
        self, message: Message, like: Float[Tensor, "d"], noise: Noise = ()
    ) -> Float[Tensor, "d"]:
        """The corner."""
        del noise
        zero = torch.zeros_like(like)
        return torch.where(message.values > 0, zero + self.high, zero + self.low)

    def bits(self, dim: int) -> int:
        """One bit an entry."""
        checks.count("Corner", "dim", dim)
        return dim

    def lengths(self, dim: int) -> tuple[int, int]:
        """Numbers and positions of a message."""
        return dim, 0


@dataclass(frozen=True)
class RankOne(Vertex):
    """A matrix of rank one, read row by row: two vectors of float32 numbers.

    >>> RankOne(rows=2, columns=2).encode(torch.tensor([4.0, 2.0, 2.0, 1.0])).values
    tensor([4.0000, 2.0000, 1.0000, 0.5000])
    """

    rows: Count
    columns: Count

    def encode(self, x: Float[Tensor, "d"], noise: Noise = ()) -> Message:
        """The matrix's column at its largest entry, and its row there over that entry."""
        checks.vector("RankOne", "x", x)
        del noise
        matrix = x.view(self.rows, self.columns)
        place = x.abs().argmax()
        row, column = place // self.columns, place % self.columns
        peak = matrix.flatten()[place]
        peak = torch.where(peak == 0, torch.ones_like(peak), peak)
        return Message(torch.cat([matrix[:, column], matrix[row] / peak]))

    def decode(
        self, message: Message, like: Float[Tensor, "d"], noise: Noise = ()
    ) -> Float[Tensor, "d"]:
        """The product of the two vectors."""
        del noise, like
        left, right = torch.split(message.values, [self.rows, self.columns])
        return torch.outer(left, right).flatten()

    def bits(self, dim: int) -> int:
        """32 bits an entry of the two vectors."""
        checks.count("RankOne", "dim", dim)
        del dim
        return FLOAT_BITS * (self.rows + self.columns)

    def lengths(self, dim: int) -> tuple[int, int]:
        """Numbers and positions of a message."""
        del dim
        return self.rows + self.columns, 0


@dataclass(frozen=True)
class Several(Vertex):
    """Consecutive parts of a vector, each in a format of its own; the messages follow one another.

    `parts` are the formats, `sizes` the lengths of the parts.

    >>> Several((OneEntry(1.0), Corner(-1.0, 1.0)), (8, 8)).bits(16)
    12
    """

    parts: tuple[Compressor, ...]
    sizes: tuple[Count, ...]

    def encode(self, x: Float[Tensor, "d"], noise: Noise = ()) -> Message:
        """All numbers, then all positions."""
        checks.vector("Several", "x", x)
        del noise
        pieces = zip(self.parts, torch.split(x, list(self.sizes)), strict=True)
        messages = [part.encode(piece) for part, piece in pieces]
        found = [m.positions for m in messages if isinstance(m.positions, Tensor)]
        positions = torch.cat(found) if found else ()
        return Message(torch.cat([m.values for m in messages]), positions)

    def decode(
        self, message: Message, like: Float[Tensor, "d"], noise: Noise = ()
    ) -> Float[Tensor, "d"]:
        """The parts, put together again."""
        del noise
        counts = [_lengths(p, size) for p, size in zip(self.parts, self.sizes, strict=True)]
        values = torch.split(message.values, [count for count, _ in counts])
        indices: list[Tensor | tuple[()]] = [()] * len(counts)
        if isinstance(message.positions, Tensor):
            cut = torch.split(message.positions, [count for _, count in counts])
            indices = [i if len(i) else () for i in cut]
        wholes = torch.split(like, list(self.sizes))
        each = zip(self.parts, values, indices, wholes, strict=True)
        return torch.cat([part.decode(Message(v, i), whole) for part, v, i, whole in each])

    def bits(self, dim: int) -> int:
        """The sum over the parts."""
        checks.count("Several", "dim", dim)
        del dim
        return sum(p.bits(size) for p, size in zip(self.parts, self.sizes, strict=True))

    def lengths(self, dim: int) -> tuple[int, int]:
        """Numbers and positions of a message."""
        del dim
        counts = [_lengths(p, size) for p, size in zip(self.parts, self.sizes, strict=True)]
        return sum(count for count, _ in counts), sum(count for _, count in counts)


def _lengths(wire: Compressor, dim: int) -> tuple[int, int]:
    return wire.lengths(dim) if hasattr(wire, "lengths") else (dim, 0)


def wire_of(convex_set: ConvexSet, dim: int) -> Compressor:
    """How an extreme point of a set in `dim` dimensions travels.

    A set says so by a method `wire(dim)`. Without one: one bit an entry for a `Box`, and all
    entries as they are otherwise (a `Ball`'s extreme points are all its boundary).
    """
    if hasattr(convex_set, "wire"):
        wire: Compressor = convex_set.wire(dim)
        return wire
    if isinstance(convex_set, Box):
        assert convex_set.high is not None
        return Corner(convex_set.low, convex_set.high)
    return Identity()


def gauge_of(convex_set: ConvexSet, x: Float[Tensor, "d"]) -> Float[Tensor, ""]:
    """How far out a point lies: at most 1 in the set, 1 on its boundary.

    The norm whose ball the set is, over the radius. For a `Box` what counts is the distance from
    its middle. NaN for a set of which it is not known.
    """
    if hasattr(convex_set, "gauge"):
        size: Tensor = convex_set.gauge(x)
        return size
    if isinstance(convex_set, Ball):
        length: Tensor = torch.linalg.vector_norm(x)
        return length / convex_set.radius
    if isinstance(convex_set, Box):
        assert convex_set.high is not None
        middle = (convex_set.low + convex_set.high) / 2
        return (x - middle).abs().amax() / (convex_set.high - middle)
    return torch.full_like(x[0], torch.nan)
