"""Messages on the wire: what a message holds, and how many bits each part of it has."""

from math import ceil, log2
from typing import Literal, NamedTuple

from jaxtyping import Int
from torch import Tensor

from fedlib.shapes import AnyTensor

FLOAT_BITS = 32  # a number is sent as a float32, whatever the dtype of the simulation
EXPONENT_BITS = 8  # bits of a float32's exponent

Noise = Tensor | tuple[()]
#: float32; sign, exponent and leading digits; -1 or 1; 0 or 1; an index; indices as a bit map.
Content = Literal["number", "digits", "sign", "flag", "position", "map"]


class Message(NamedTuple):
    """A message on the wire: its numbers, and their positions if these are sent."""

    values: AnyTensor
    positions: Int[Tensor, "..."] | tuple[()] = ()


class Field(NamedTuple):
    """Consecutive numbers or positions on the wire: how many `entries`, of how many `bits` each."""

    content: Content
    entries: int
    bits: int

    @property
    def length(self) -> int:
        """The number of bits of the field; a map has one bit for each possible position."""
        if self.content == "map":
            return self.bits
        return self.entries * self.bits


#: The fields of a message, in their order on the wire.
Layout = tuple[Field, ...]


def total_bits(layout: Layout) -> int:
    """The number of bits of a message."""
    return sum(field.length for field in layout)


def index_bits(entries: int) -> int:
    """The number of bits for one position among `entries`."""
    return ceil(log2(entries))
