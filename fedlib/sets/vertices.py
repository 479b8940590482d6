"""Wire formats for extreme points of convex sets, which a Frank-Wolfe client sends.

The minimizer that `set.lmo` returns is an extreme point with a short description: a position and a
sign, one bit for each entry, or two vectors. Each format is a `Compressor` without loss. Called on
an extreme point, it returns the point; `encode` makes the short description, and `decode` restores
the point. Both sides know the set and its radius, which are never sent.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Positive
from fedlib.compress.compressors import Compressor, Identity
from fedlib.compress.wire import FLOAT_BITS, Field, Layout, Message, Noise, index_bits
from fedlib.core.problem import ConvexSet
from fedlib.shapes import Scalar, Vector


class Vertex(checks.Checked, Compressor):
    """Base of the formats, which lose nothing and use no randomness."""

    def __call__(self, x: Vector, noise: Noise = ()) -> Vector:
        """The point itself."""
        checks.vector(type(self).__name__, "x", x)
        return x

    def contraction(self, dim: int) -> float | None:
        """The format is exact on its points: `q = 1`."""
        return 1.0

    def variance(self, dim: int) -> float | None:
        """The format is exact on its points: `q_u = 0`."""
        return 0.0


@dataclass(frozen=True)
class OneEntry(Vertex):
    """A point with one nonzero entry, `radius` (or `-radius`, if `signed`): its position is sent.

    The message has `ceil(log2 d)` bits, and one more bit for a sign.

    >>> wire = OneEntry(radius=2.0)
    >>> wire.encode(torch.tensor([0.0, -2.0, 0.0]))
    Message(values=tensor([-1.]), positions=tensor([1]))
    >>> wire.bits(1000)
    11
    """

    radius: Positive
    signed: bool = True

    def encode(self, x: Vector, noise: Noise = ()) -> Message:
        """Send the position of the entry and its sign (0 for the point 0, which is no vertex)."""
        position = x.abs().argmax().unsqueeze(0)
        return Message(x.gather(0, position).sign(), position)

    def decode(
        self,
        message: Message,
        like: Vector,
        noise: Noise = (),
    ) -> Vector:
        """Return the vertex."""
        assert isinstance(message.positions, Tensor)
        entry = self.radius * message.values
        zero = torch.zeros_like(like)
        return zero.scatter(0, message.positions, entry)

    def layout(self, dim: int) -> Layout:
        """A sign, if there are two, and a position of `ceil(log2 d)` bits."""
        return (
            Field("sign", 1, 1 if self.signed else 0),
            Field("position", 1, index_bits(dim)),
        )


@dataclass(frozen=True)
class Corner(Vertex):
    """A corner of the box from `low` to `high`, which is sent as one bit for each entry.

    >>> Corner(-1.0, 1.0).encode(torch.tensor([1.0, -1.0])).values
    tensor([1., 0.])
    >>> Corner(-1.0, 1.0).bits(1000)
    1000
    """

    low: float
    high: float

    def encode(self, x: Vector, noise: Noise = ()) -> Message:
        """Send 1 for high entries, 0 for low entries."""
        is_high = x > self.low
        return Message(is_high.to(x.dtype))

    def decode(
        self,
        message: Message,
        like: Vector,
        noise: Noise = (),
    ) -> Vector:
        """Return the corner."""
        zero = torch.zeros_like(like)
        low = zero + self.low
        high = zero + self.high
        return torch.where(message.values > 0, high, low)

    def layout(self, dim: int) -> Layout:
        """One bit for each entry."""
        return (Field("flag", dim, 1),)


@dataclass(frozen=True)
class RankOne(Vertex):
    """A matrix of rank one, read row by row, which is sent as two vectors of float32 numbers.

    >>> RankOne(rows=2, columns=2).encode(torch.tensor([4.0, 2.0, 2.0, 1.0])).values
    tensor([4.0000, 2.0000, 1.0000, 0.5000])
    """

    rows: Count
    columns: Count

    def encode(self, x: Vector, noise: Noise = ()) -> Message:
        """Send the column and the row of the largest entry; the row is divided by the entry."""
        matrix = x.view(self.rows, self.columns)
        position = x.abs().argmax()
        column = matrix[:, position % self.columns]
        row = matrix[position // self.columns]
        peak = x[position]
        peak = torch.where(peak == 0, 1, peak)
        return Message(torch.cat([column, row / peak]))

    def decode(
        self,
        message: Message,
        like: Vector,
        noise: Noise = (),
    ) -> Vector:
        """Return the product of the two vectors."""
        sizes = [self.rows, self.columns]
        left, right = torch.split(message.values, sizes)
        return torch.outer(left, right).flatten()

    def layout(self, dim: int) -> Layout:
        """The numbers of the two vectors."""
        return (Field("number", self.rows + self.columns, FLOAT_BITS),)


@dataclass(frozen=True)
class Several(Vertex):
    """Consecutive parts of a vector, each in a format of its own; the messages are concatenated.

    `parts` holds the formats, `sizes` the lengths of the parts.

    >>> Several((OneEntry(1.0), Corner(-1.0, 1.0)), (8, 8)).bits(16)
    12
    """

    parts: tuple[Compressor, ...]
    sizes: tuple[Count, ...]

    def messages(self, x: Vector) -> list[Message]:
        """Make the message of every part."""
        pieces = torch.split(x, list(self.sizes))
        pairs = zip(self.parts, pieces, strict=True)
        return [wire.encode(piece) for wire, piece in pairs]

    def encode(self, x: Vector, noise: Noise = ()) -> Message:
        """Send all numbers, then all positions."""
        values = []
        positions = []
        for message in self.messages(x):
            values.append(message.values)
            if isinstance(message.positions, Tensor):
                positions.append(message.positions)
        message = Message(torch.cat(values))
        if positions:
            message = message._replace(positions=torch.cat(positions))
        return message

    def decode(
        self,
        message: Message,
        like: Vector,
        noise: Noise = (),
    ) -> Vector:
        """Decode the parts and concatenate them."""
        values = message.values
        positions: Any = message.positions
        decoded = []
        pieces = torch.split(like, list(self.sizes))
        examples = self.messages(like)  # as long as the messages of the parts
        triples = zip(self.parts, pieces, examples, strict=True)
        for wire, piece, example in triples:
            count = len(example.values)
            position_count = len(example.positions)
            piece_message = Message(values[:count], positions[:position_count])
            values = values[count:]
            positions = positions[position_count:]
            decoded.append(wire.decode(piece_message, piece))
        return torch.cat(decoded)

    def layout(self, dim: int) -> Layout:
        """The fields of all parts, one part after another."""
        fields: Layout = ()
        for wire, size in zip(self.parts, self.sizes, strict=True):
            fields += wire.layout(size)
        return fields


def wire_of(convex_set: ConvexSet, dim: int) -> Compressor:
    """The wire format of a set's extreme points in `dim` dimensions.

    A set defines it in a method `wire(dim)`; without that method, as in `Ball`, all entries are
    sent.
    """
    if not hasattr(convex_set, "wire"):
        return Identity()
    wire: Compressor = convex_set.wire(dim)
    return wire


def gauge_of(convex_set: ConvexSet, x: Vector) -> Scalar:
    """The gauge of a point: at most 1 in the set, 1 on its boundary.

    A ball defines it in a method `gauge(x)`, as its norm over the radius. It is NaN without such a
    method.
    """
    if hasattr(convex_set, "gauge"):
        size: Tensor = convex_set.gauge(x)
        return size
    return torch.full_like(x[0], torch.nan)
