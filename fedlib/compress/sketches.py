"""Compressed Jacobians: what fits of `[M, d]` numbers into about `d` on the wire.

A sketch is a frozen dataclass that maps a Jacobian `[M, d]` to what the receiver will hold, in the
same shape. Like a `Compressor`, which acts on vectors, it draws its randomness beforehand and says
how its message travels (`fedlib.compress.lowrank` has the paper's own); `Wire` makes it one, for
`fed.ask` and `fed.tell`. Its budget is counted in multiples of `d` float32 numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, log2
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Positive
from fedlib.compress.compressors import FLOAT_BITS, Compressor, Identity, Message, Noise, RandK


@runtime_checkable
class Sketch(Protocol):
    """What the estimates of a Gram matrix ask of a compressed Jacobian."""

    def __call__(self, x: Float[Tensor, "M d"], noise: Noise = ()) -> Float[Tensor, "M d"]:
        """The Jacobian that the receiver will hold."""
        ...

    def draw(self, count: int, tasks: int, dim: int, rng: torch.Generator) -> Noise:
        """The randomness of `count` messages, on a leading axis; `()` if none."""
        ...

    def encode(self, x: Float[Tensor, "M d"], noise: Noise = ()) -> Message:
        """The message for a Jacobian that is already compressed."""
        ...

    def decode(
        self, message: Message, like: Float[Tensor, "M d"], noise: Noise = ()
    ) -> Float[Tensor, "M d"]:
        """The Jacobian of a message."""
        ...

    def bits(self, tasks: int, dim: int) -> int:
        """The length of one message, in bits."""
        ...


@dataclass(frozen=True)
class Exact:
    """Everything is sent: `M d` float32 numbers.

    >>> Exact().bits(tasks=2, dim=100)
    6400
    """

    def __call__(self, x: Float[Tensor, "M d"], noise: Noise = ()) -> Float[Tensor, "M d"]:
        """The Jacobian itself."""
        checks.matrix("Exact", "x", x)
        return x

    def draw(self, count: int, tasks: int, dim: int, rng: torch.Generator) -> Noise:
        """Nothing is random."""
        checks.drawing("Exact", rng, count=count, tasks=tasks, dim=dim)
        return ()

    def encode(self, x: Float[Tensor, "M d"], noise: Noise = ()) -> Message:
        """All entries."""
        checks.matrix("Exact", "x", x)
        return Message(x)

    def decode(
        self, message: Message, like: Float[Tensor, "M d"], noise: Noise = ()
    ) -> Float[Tensor, "M d"]:
        """All entries."""
        return message.values

    def bits(self, tasks: int, dim: int) -> int:
        """32 bits an entry."""
        checks.counts("Exact", tasks=tasks, dim=dim)
        return FLOAT_BITS * tasks * dim


@dataclass(frozen=True)
class Largest:
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

    def __post_init__(self) -> None:
        checks.fields(self)

    def kept(self, tasks: int, dim: int) -> int:
        """How many entries are sent: at least one, at most all."""
        room, entries = int(self.value_bits * self.budget * dim), tasks * dim
        listed = room // (self.value_bits + index_bits(entries))
        mapped = (room - entries) // self.value_bits
        return min(max(1, listed, mapped), entries)

    def __call__(self, x: Float[Tensor, "M d"], noise: Noise = ()) -> Float[Tensor, "M d"]:
        """The k largest entries, zeros elsewhere."""
        checks.matrix("Largest", "x", x)
        return self.decode(self.encode(x), x)

    def draw(self, count: int, tasks: int, dim: int, rng: torch.Generator) -> Noise:
        """Nothing is random."""
        checks.drawing("Largest", rng, count=count, tasks=tasks, dim=dim)
        return ()

    def encode(self, x: Float[Tensor, "M d"], noise: Noise = ()) -> Message:
        """The k largest entries and where they stand."""
        checks.matrix("Largest", "x", x)
        flat = x.flatten()
        positions = flat.abs().topk(self.kept(*x.shape)).indices
        return Message(flat.gather(0, positions), positions)

    def decode(
        self, message: Message, like: Float[Tensor, "M d"], noise: Noise = ()
    ) -> Float[Tensor, "M d"]:
        """The entries at their positions."""
        assert isinstance(message.positions, Tensor)
        flat = torch.zeros_like(like).flatten()
        return flat.scatter(0, message.positions, message.values).view(like.shape)

    def bits(self, tasks: int, dim: int) -> int:
        """The numbers and the cheaper of list and map."""
        checks.counts("Largest", tasks=tasks, dim=dim)
        kept, entries = self.kept(tasks, dim), tasks * dim
        return self.value_bits * kept + min(kept * index_bits(entries), entries)


@dataclass(frozen=True)
class Masked:
    """Entries at random positions that both sides know, `budget d` of the `M d`.

    With `scaled` they are multiplied by `M / budget`, which makes the sketch unbiased.

    >>> masked = Masked()
    >>> noise = masked.draw(1, 2, 4, torch.Generator().manual_seed(0))[0]
    >>> masked(torch.ones(2, 4), noise).count_nonzero()
    tensor(4)
    """

    budget: Positive = field(default=1.0, metadata={"shape": True})
    scaled: bool = True

    def __post_init__(self) -> None:
        checks.fields(self)

    def rule(self, tasks: int) -> RandK:
        """The compressor of the flattened Jacobian."""
        return RandK(min(self.budget / tasks, 1.0), scaled=self.scaled)

    def __call__(self, x: Float[Tensor, "M d"], noise: Noise = ()) -> Float[Tensor, "M d"]:
        """The entries at the drawn positions, scaled if asked, zeros elsewhere."""
        checks.matrix("Masked", "x", x)
        return self.rule(len(x))(x.flatten(), noise).view(x.shape)

    def draw(self, count: int, tasks: int, dim: int, rng: torch.Generator) -> Noise:
        """Distinct positions for each of `count` messages."""
        checks.drawing("Masked", rng, count=count, tasks=tasks, dim=dim)
        return self.rule(tasks).draw(count, tasks * dim, rng)

    def encode(self, x: Float[Tensor, "M d"], noise: Noise = ()) -> Message:
        """The entries at the drawn positions."""
        checks.matrix("Masked", "x", x)
        return self.rule(len(x)).encode(x.flatten(), noise)

    def decode(
        self, message: Message, like: Float[Tensor, "M d"], noise: Noise = ()
    ) -> Float[Tensor, "M d"]:
        """The entries at the drawn positions."""
        return self.rule(len(like)).decode(message, like.flatten(), noise).view(like.shape)

    def bits(self, tasks: int, dim: int) -> int:
        """32 bits an entry that is sent; the positions follow from the common seed."""
        checks.counts("Masked", tasks=tasks, dim=dim)
        return self.rule(tasks).bits(tasks * dim)


@dataclass(frozen=True)
class Columns:
    """A compressor applied to each of the M gradients by itself, as the theory assumes.

    >>> from fedlib import TopK
    >>> Columns(TopK(0.5))(torch.tensor([[3.0, 1.0], [0.0, -5.0]]))
    tensor([[ 3.,  0.],
            [ 0., -5.]])
    """

    compressor: Compressor = Identity()

    def __post_init__(self) -> None:
        checks.fields(self)

    def __call__(self, x: Float[Tensor, "M d"], noise: Noise = ()) -> Float[Tensor, "M d"]:
        """Every gradient compressed."""
        checks.matrix("Columns", "x", x)
        parts = zip(x, self._each(x, noise), strict=True)
        return torch.stack([self.compressor(row, own) for row, own in parts])

    def draw(self, count: int, tasks: int, dim: int, rng: torch.Generator) -> Noise:
        """What the compressor draws for `count` times `tasks` vectors."""
        checks.drawing("Columns", rng, count=count, tasks=tasks, dim=dim)
        noise = self.compressor.draw(count * tasks, dim, rng)
        return noise.view(count, tasks, -1) if isinstance(noise, Tensor) else ()

    def encode(self, x: Float[Tensor, "M d"], noise: Noise = ()) -> Message:
        """The messages of all gradients."""
        checks.matrix("Columns", "x", x)
        parts = zip(x, self._each(x, noise), strict=True)
        all_ = [self.compressor.encode(row, own) for row, own in parts]
        places = [m.positions for m in all_ if isinstance(m.positions, Tensor)]
        return Message(torch.stack([m.values for m in all_]), torch.stack(places) if places else ())

    def decode(
        self, message: Message, like: Float[Tensor, "M d"], noise: Noise = ()
    ) -> Float[Tensor, "M d"]:
        """All gradients."""
        places = self._each(like, message.positions)
        parts = zip(message.values, places, like, self._each(like, noise), strict=True)
        return torch.stack(
            [self.compressor.decode(Message(v, p), row, own) for v, p, row, own in parts]
        )

    def bits(self, tasks: int, dim: int) -> int:
        """That of `tasks` messages."""
        checks.counts("Columns", tasks=tasks, dim=dim)
        return tasks * self.compressor.bits(dim)

    def _each(self, x: Tensor, noise: Noise) -> list[Noise]:
        """The part of the noise that belongs to each gradient."""
        return list(noise) if isinstance(noise, Tensor) else [()] * len(x)


@dataclass(frozen=True)
class Wire:
    """A sketch of `[tasks, d]` as the wire format of the flattened Jacobian.

    It is not applied again: who sends through it has sketched already. The server, which sends a
    sum of sketches, calls it.

    >>> Wire(Exact(), tasks=2).bits(200)
    6400
    """

    sketch: Sketch
    tasks: Count

    def __post_init__(self) -> None:
        checks.fields(self)

    def __call__(self, x: Float[Tensor, "s"], noise: Noise = ()) -> Float[Tensor, "s"]:
        """The sketch, flattened."""
        return self.sketch(x.view(self.tasks, -1), noise).flatten()

    def draw(self, count: int, dim: int, rng: torch.Generator) -> Noise:
        """What the sketch draws."""
        return self.sketch.draw(count, self.tasks, dim // self.tasks, rng)

    def encode(self, x: Float[Tensor, "s"], noise: Noise = ()) -> Message:
        """The sketch's message."""
        return self.sketch.encode(x.view(self.tasks, -1), noise)

    def decode(
        self, message: Message, like: Float[Tensor, "s"], noise: Noise = ()
    ) -> Float[Tensor, "s"]:
        """The flattened Jacobian of a message."""
        return self.sketch.decode(message, like.view(self.tasks, -1), noise).flatten()

    def bits(self, dim: int) -> int:
        """The sketch's."""
        return self.sketch.bits(self.tasks, dim // self.tasks)

    def contraction(self, dim: int) -> float | None:
        """None is claimed."""
        return None

    def variance(self, dim: int) -> float | None:
        """None is claimed."""
        return None


def index_bits(entries: int) -> int:
    """Bits of one position among `entries`."""
    return ceil(log2(entries)) if entries > 1 else 0
