"""Compressed Jacobians: what fits of `[M, d]` numbers into about `d` on the wire.

A sketch is a frozen dataclass that maps a Jacobian `[M, d]` to what the receiver will hold, in the
same shape. Like a `Compressor`, which acts on vectors, it draws its randomness beforehand and says
how its message travels (`fedlib.compress.lowrank` has the paper's own); `Wire` makes it one, for
`fed.ask` and `fed.broadcast`. Its budget is counted in multiples of `d` float32 numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import vmap

from fedlib import checks
from fedlib.checks import Count, Positive
from fedlib.compress.compressors import (
    FLOAT_BITS,
    Compressor,
    Identity,
    Message,
    Noise,
    RandK,
    Vector,
    index_bits,
)

Jacobian = Float[Tensor, "M d"]


@runtime_checkable
class Sketch(Protocol):
    """Compressor of Jacobians and its wire format; bodies here are defaults to inherit."""

    def __call__(self, x: Jacobian, noise: Noise = ()) -> Jacobian:
        """The Jacobian that the receiver will hold."""
        return self.decode(self.encode(x, noise), x, noise)

    def draw(self, count: int, tasks: int, dim: int, rng: torch.Generator) -> Noise:
        """The randomness of `count` messages, on a leading axis; `()` if none."""
        return ()

    def encode(self, x: Jacobian, noise: Noise = ()) -> Message:
        """The message for a Jacobian that is already compressed."""

    def decode(self, message: Message, like: Jacobian, noise: Noise = ()) -> Jacobian:
        """The Jacobian of a message."""

    def bits(self, tasks: int, dim: int) -> int:
        """The length of one message, in bits."""


class Flat(Sketch, Protocol):
    """Base of the sketches that compress the flattened Jacobian as one vector."""

    def rule(self, tasks: int) -> Compressor:
        """The compressor of the flattened Jacobian."""

    def __call__(self, x: Jacobian, noise: Noise = ()) -> Jacobian:
        """The compressed vector in the Jacobian's shape."""
        checks.matrix(type(self).__name__, "x", x)
        return self.rule(len(x))(x.flatten(), noise).view(x.shape)

    def draw(self, count: int, tasks: int, dim: int, rng: torch.Generator) -> Noise:
        """What the compressor draws for `count` vectors of `tasks dim` numbers."""
        return self.rule(tasks).draw(count, tasks * dim, rng)

    def encode(self, x: Jacobian, noise: Noise = ()) -> Message:
        """The compressor's message."""
        return self.rule(len(x)).encode(x.flatten(), noise)

    def decode(self, message: Message, like: Jacobian, noise: Noise = ()) -> Jacobian:
        """The vector of a message in the Jacobian's shape."""
        return self.rule(len(like)).decode(message, like.flatten(), noise).view(like.shape)

    def bits(self, tasks: int, dim: int) -> int:
        """The length of the compressor's message."""
        return self.rule(tasks).bits(tasks * dim)


@dataclass(frozen=True)
class Exact(Flat):
    """Everything is sent: `M d` float32 numbers.

    >>> Exact().bits(tasks=2, dim=100)
    6400
    """

    def rule(self, tasks: int) -> Identity:
        """No compression."""
        return Identity()


@dataclass(frozen=True)
class Masked(checks.Checked, Flat):
    """Entries at random positions that both sides know, `budget d` of the `M d`.

    With `scaled` they are multiplied by `M / budget`, which makes the sketch unbiased. The
    positions follow from the common seed and are not sent.

    >>> masked = Masked()
    >>> noise = masked.draw(1, 2, 4, torch.Generator().manual_seed(0))[0]
    >>> masked(torch.ones(2, 4), noise).count_nonzero()
    tensor(4)
    """

    budget: Positive = field(default=1.0, metadata={"shape": True})
    scaled: bool = True

    def rule(self, tasks: int) -> RandK:
        """Random entries of the flattened Jacobian, a share `budget / M` of them."""
        return RandK(min(self.budget / tasks, 1.0), scaled=self.scaled)


@dataclass(frozen=True)
class Largest(checks.Checked, Sketch):
    """The k entries of largest magnitude, with k such that numbers and positions fit the budget.

    A number costs `value_bits`; the positions cost `ceil(log2(d M))` bits each as a list, or one
    bit for every entry of the Jacobian as a map, whichever allows more. The authors' code counts
    numbers of 16 bits (and a budget of d such numbers).

    >>> Largest(budget=0.5)(torch.tensor([[3.0, 1.0, 0.0, 2.0], [0.0, -5.0, 0.0, 0.0]]))
    tensor([[ 0.,  0.,  0.,  0.],
            [ 0., -5.,  0.,  0.]])
    """

    budget: Positive = field(default=1.0, metadata={"shape": True})
    value_bits: Count = FLOAT_BITS

    def count_entries(self, tasks: int, dim: int) -> int:
        """How many entries are sent: at least one, at most all."""
        room, entries = int(self.value_bits * self.budget * dim), tasks * dim
        listed = room // (self.value_bits + index_bits(entries))
        mapped = (room - entries) // self.value_bits
        return min(max(1, listed, mapped), entries)

    def encode(self, x: Jacobian, noise: Noise = ()) -> Message:
        """The k largest entries and where they stand."""
        checks.matrix("Largest", "x", x)
        flat = x.flatten()
        positions = flat.abs().topk(self.count_entries(*x.shape)).indices
        return Message(flat.gather(0, positions), positions)

    def decode(self, message: Message, like: Jacobian, noise: Noise = ()) -> Jacobian:
        """The entries at their positions."""
        assert isinstance(message.positions, Tensor)
        flat = torch.zeros_like(like).flatten()
        return flat.scatter(0, message.positions, message.values).view(like.shape)

    def bits(self, tasks: int, dim: int) -> int:
        """The numbers and the cheaper of list and map."""
        count, entries = self.count_entries(tasks, dim), tasks * dim
        return self.value_bits * count + min(count * index_bits(entries), entries)


@dataclass(frozen=True)
class Columns(checks.Checked, Sketch):
    """A compressor applied to each of the M gradients by itself, as the theory assumes.

    >>> from fedlib import TopK
    >>> Columns(TopK(0.5))(torch.tensor([[3.0, 1.0], [0.0, -5.0]]))
    tensor([[ 3.,  0.],
            [ 0., -5.]])
    """

    compressor: Compressor = Identity()

    def __call__(self, x: Jacobian, noise: Noise = ()) -> Jacobian:
        """Every gradient compressed."""
        checks.matrix("Columns", "x", x)
        return vmap(self.compressor)(x, noise)

    def draw(self, count: int, tasks: int, dim: int, rng: torch.Generator) -> Noise:
        """What the compressor draws for `count` times `tasks` vectors."""
        noise = self.compressor.draw(count * tasks, dim, rng)
        return noise.view(count, tasks, -1) if isinstance(noise, Tensor) else ()

    def encode(self, x: Jacobian, noise: Noise = ()) -> Message:
        """The messages of all gradients."""
        return vmap(self.compressor.encode)(x, noise)

    def decode(self, message: Message, like: Jacobian, noise: Noise = ()) -> Jacobian:
        """All gradients."""
        return vmap(self.compressor.decode)(message, like, noise)

    def bits(self, tasks: int, dim: int) -> int:
        """That of `tasks` messages."""
        return tasks * self.compressor.bits(dim)


@dataclass(frozen=True)
class Wire(checks.Checked, Compressor):
    """A sketch of `[tasks, d]` as the wire format of the flattened Jacobian.

    It is not applied again: who sends through it has sketched already. The server, which sends a
    sum of sketches, calls it.

    >>> Wire(Exact(), tasks=2).bits(200)
    6400
    """

    sketch: Sketch
    tasks: Count

    def __call__(self, x: Vector, noise: Noise = ()) -> Vector:
        """The sketch, flattened."""
        return self.sketch(x.view(self.tasks, -1), noise).flatten()

    def draw(self, count: int, dim: int, rng: torch.Generator) -> Noise:
        """What the sketch draws."""
        return self.sketch.draw(count, self.tasks, dim // self.tasks, rng)

    def encode(self, x: Vector, noise: Noise = ()) -> Message:
        """The sketch's message."""
        return self.sketch.encode(x.view(self.tasks, -1), noise)

    def decode(self, message: Message, like: Vector, noise: Noise = ()) -> Vector:
        """The flattened Jacobian of a message."""
        return self.sketch.decode(message, like.view(self.tasks, -1), noise).flatten()

    def bits(self, dim: int) -> int:
        """The sketch's."""
        return self.sketch.bits(self.tasks, dim // self.tasks)
