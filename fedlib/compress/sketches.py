"""Sketches: compressors of Jacobians, which fit `[M, d]` numbers into about `d` on the wire.

A sketch is a frozen dataclass that maps a Jacobian `[M, d]` to the Jacobian that the receiver will
hold. Like a `Compressor` of vectors, it draws its randomness beforehand and defines its message;
`Wire` turns it into a `Compressor` for `fed.ask` and `fed.broadcast`. Its budget counts multiples
of `d` float32 numbers. FedCMOO's own sketch is `LowRank`, in a file of its own.
"""

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import vmap

from fedlib import checks
from fedlib.checks import Count, Positive, Rng
from fedlib.compress.compressors import Compressor, Identity, RandK
from fedlib.compress.wire import (
    FLOAT_BITS,
    Field,
    Layout,
    Message,
    Noise,
    index_bits,
    total_bits,
)
from fedlib.shapes import Jacobian, Vector


@runtime_checkable
class Sketch(Protocol):
    """A compressor of Jacobians and its wire format; the bodies here are defaults to inherit."""

    def __call__(self, x: Jacobian, noise: Noise = ()) -> Jacobian:
        """The Jacobian that the receiver will hold."""
        return self.decode(self.encode(x, noise), x, noise)

    def draw(
        self,
        count: int,
        tasks: int,
        dim: int,
        rng: Rng,
    ) -> Noise:
        """The randomness of `count` messages, on a leading axis; `()` if none."""
        return ()

    def encode(self, x: Jacobian, noise: Noise = ()) -> Message:
        """Make the message for a Jacobian that is already compressed."""

    def decode(
        self,
        message: Message,
        like: Jacobian,
        noise: Noise = (),
    ) -> Jacobian:
        """Rebuild the Jacobian from a message."""

    def layout(self, tasks: int, dim: int) -> Layout:
        """The fields of one message for a Jacobian `[tasks, dim]`, in their order on the wire."""

    def bits(self, tasks: int, dim: int) -> int:
        """The number of bits in one message."""
        return total_bits(self.layout(tasks, dim))


class Flat(Sketch, Protocol):
    """Base of the sketches that compress the flattened Jacobian as one vector."""

    def rule(self, tasks: int) -> Compressor:
        """The compressor of the flattened Jacobian."""

    def __call__(self, x: Jacobian, noise: Noise = ()) -> Jacobian:
        """Return the compressed vector in the Jacobian's shape."""
        checks.matrix(type(self).__name__, "x", x)
        rule = self.rule(len(x))
        return rule(x.flatten(), noise).view(x.shape)

    def draw(
        self,
        count: int,
        tasks: int,
        dim: int,
        rng: Rng,
    ) -> Noise:
        """The compressor's randomness for `count` vectors of `tasks dim` numbers."""
        return self.rule(tasks).draw(count, tasks * dim, rng)

    def encode(self, x: Jacobian, noise: Noise = ()) -> Message:
        """Make the compressor's message."""
        compressor = self.rule(len(x))
        return compressor.encode(x.flatten(), noise)

    def decode(
        self,
        message: Message,
        like: Jacobian,
        noise: Noise = (),
    ) -> Jacobian:
        """Return the vector of a message in the Jacobian's shape."""
        rule = self.rule(len(like))
        vector = rule.decode(message, like.flatten(), noise)
        return vector.view(like.shape)

    def layout(self, tasks: int, dim: int) -> Layout:
        """The compressor's fields."""
        return self.rule(tasks).layout(tasks * dim)


@dataclass(frozen=True)
class Exact(Flat):
    """No compression of a Jacobian: the message holds all `M d` entries as float32 numbers.

    >>> Exact().bits(tasks=2, dim=100)
    6400
    """

    def rule(self, tasks: int) -> Identity:
        """No compression."""
        return Identity()


@dataclass(frozen=True)
class Masked(checks.Checked, Flat):
    """Keep `budget d` of the `M d` entries, at random positions that both sides know.

    The positions follow from the common seed and are not sent.

    Parameters
    ----------
    budget : float
        Number of entries to keep, in multiples of d.
    scaled : bool
        Whether they are multiplied by `M / budget`, which makes the sketch unbiased.

    >>> masked = Masked()
    >>> noise = masked.draw(1, 2, 4, torch.Generator().manual_seed(0))[0]
    >>> masked(torch.ones(2, 4), noise).count_nonzero()
    tensor(4)
    """

    budget: Positive = field(default=1.0, metadata={"shape": True})
    scaled: bool = True

    def rule(self, tasks: int) -> RandK:
        """Keep random entries of the flattened Jacobian, a share `budget / M` of them."""
        fraction = min(self.budget / tasks, 1.0)
        return RandK(fraction, scaled=self.scaled)


@dataclass(frozen=True)
class Largest(checks.Checked, Sketch):
    """Keep the entries of a Jacobian of largest magnitude, as many as fit the budget.

    The positions are either a list, at `ceil(log2(d M))` bits each, or a map with one bit for every
    entry of the Jacobian, whichever allows more entries.

    Parameters
    ----------
    budget : float
        Length of a message, positions included, in multiples of d numbers.
    value_bits : int
        Bits of one number, in `budget` and in the message. The authors' code counts 16; only 32 can
        be sent.

    >>> Largest(budget=0.5)(torch.tensor([[3.0, 1.0, 0.0, 2.0], [0.0, -5.0, 0.0, 0.0]]))
    tensor([[ 0.,  0.,  0.,  0.],
            [ 0., -5.,  0.,  0.]])
    """

    budget: Positive = field(default=1.0, metadata={"shape": True})
    value_bits: Count = FLOAT_BITS

    def count_entries(self, tasks: int, dim: int) -> int:
        """The number of entries that are sent: at least one, at most all."""
        room = int(self.value_bits * self.budget * dim)
        entries = tasks * dim
        listed = room // (self.value_bits + index_bits(entries))
        mapped = (room - entries) // self.value_bits
        return min(max(1, listed, mapped), entries)

    def encode(self, x: Jacobian, noise: Noise = ()) -> Message:
        """Send the k largest entries and their positions."""
        checks.matrix("Largest", "x", x)
        flat = x.flatten()
        count = self.count_entries(*x.shape)
        positions = flat.abs().topk(count).indices
        return Message(flat.gather(0, positions), positions)

    def decode(
        self,
        message: Message,
        like: Jacobian,
        noise: Noise = (),
    ) -> Jacobian:
        """Put the entries at their positions."""
        assert isinstance(message.positions, Tensor)
        zeros = torch.zeros_like(like).flatten()
        flat = zeros.scatter(0, message.positions, message.values)
        return flat.view(like.shape)

    def layout(self, tasks: int, dim: int) -> Layout:
        """The numbers, then the list of their positions or the map, whichever is shorter."""
        count = self.count_entries(tasks, dim)
        entries = tasks * dim
        places = Field("position", count, index_bits(entries))
        if places.length > entries:
            places = Field("map", count, entries)
        return Field("number", count, self.value_bits), places


@dataclass(frozen=True)
class Columns(checks.Checked, Sketch):
    """Apply a compressor to each of the M gradients separately, as the theory assumes.

    >>> from fedlib import TopK
    >>> Columns(TopK(0.5))(torch.tensor([[3.0, 1.0], [0.0, -5.0]]))
    tensor([[ 3.,  0.],
            [ 0., -5.]])

    Parameters
    ----------
    compressor : Compressor
        The compressor of one gradient.
    """

    compressor: Compressor = Identity()

    def __call__(self, x: Jacobian, noise: Noise = ()) -> Jacobian:
        """Compress every gradient."""
        checks.matrix("Columns", "x", x)
        return vmap(self.compressor)(x, noise)

    def draw(
        self,
        count: int,
        tasks: int,
        dim: int,
        rng: Rng,
    ) -> Noise:
        """Draw the compressor's randomness for `count` times `tasks` vectors."""
        noise = self.compressor.draw(count * tasks, dim, rng)
        if isinstance(noise, Tensor):
            return noise.view(count, tasks, -1)
        return ()

    def encode(self, x: Jacobian, noise: Noise = ()) -> Message:
        """Send the messages of all gradients, one after another."""
        values, positions = vmap(self.compressor.encode)(x, noise)
        if isinstance(positions, Tensor):
            positions = positions.flatten()
        return Message(values.flatten(), positions)

    def decode(
        self,
        message: Message,
        like: Jacobian,
        noise: Noise = (),
    ) -> Jacobian:
        """Rebuild all gradients."""
        tasks = len(like)
        positions = message.positions
        if isinstance(positions, Tensor):
            positions = positions.view(tasks, -1)
        rows = Message(message.values.view(tasks, -1), positions)
        return vmap(self.compressor.decode)(rows, like, noise)

    def layout(self, tasks: int, dim: int) -> Layout:
        """The compressor's fields for each gradient."""
        return self.compressor.layout(dim) * tasks


@dataclass(frozen=True)
class Wire(checks.Checked, Compressor):
    """A sketch of `[tasks, d]` as the wire format of the flattened Jacobian.

    A client sketches its Jacobian before it sends it, so `fed.ask` does not call the format. The
    server sends a sum of sketches, and `fed.broadcast` does call it.

    >>> Wire(Exact(), tasks=2).bits(200)
    6400

    Parameters
    ----------
    sketch : Sketch
        The sketch of the Jacobian.
    tasks : int
        M, the number of the Jacobian's rows.
    """

    sketch: Sketch
    tasks: Count

    def jacobian(self, x: Float[Tensor, "M_d"]) -> Jacobian:
        """A flattened Jacobian in its shape."""
        return x.view(self.tasks, -1)

    def __call__(self, x: Vector, noise: Noise = ()) -> Vector:
        """The sketch, flattened."""
        return self.sketch(self.jacobian(x), noise).flatten()

    def draw(self, count: int, dim: int, rng: Rng) -> Noise:
        """The sketch's randomness."""
        return self.sketch.draw(count, self.tasks, dim // self.tasks, rng)

    def encode(self, x: Vector, noise: Noise = ()) -> Message:
        """The sketch's message."""
        return self.sketch.encode(self.jacobian(x), noise)

    def decode(
        self,
        message: Message,
        like: Vector,
        noise: Noise = (),
    ) -> Vector:
        """The flattened Jacobian of a message."""
        template = self.jacobian(like)
        return self.sketch.decode(message, template, noise).flatten()

    def layout(self, dim: int) -> Layout:
        """The sketch's fields."""
        return self.sketch.layout(self.tasks, dim // self.tasks)
