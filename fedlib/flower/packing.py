"""Messages as bytes: a wire format's encoded message, in as many bits as the format counts.

A message consists of numbers and positions; `layout` defines their order on the wire and the bits
of each. The last byte is padded with zeros, so `8 * len(pack(...))` is `bits(dim)` rounded up to
whole bytes. A format from outside the library defines its layout in a method `layout`.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from fedlib import checks
from fedlib.compress import Identity, LowRank, RandK, Rounding, TopK
from fedlib.compress.compressors import (
    EXPONENT_BITS,
    FLOAT_BITS,
    SIGNIFICAND,
    Compressor,
    Message,
    Noise,
    count_entries,
    index_bits,
)
from fedlib.compress.sketches import Columns, Flat, Largest, Wire
from fedlib.sets.vertices import Corner, OneEntry, RankOne, Several

#: float32; sign, exponent and leading digits; -1 or 1; 0 or 1; an index; indices as a bit map.
Kind = Literal["number", "digits", "sign", "flag", "position", "map"]
PLACES = ("position", "map")


class Field(NamedTuple):
    """`many` consecutive numbers or positions on the wire, each of `bits` bits."""

    kind: Kind
    many: int
    bits: int

    @property
    def length(self) -> int:
        """The number of bits of the field; a map has one bit for each possible position."""
        return self.bits if self.kind == "map" else self.many * self.bits


class Garbled(ValueError):
    """Bytes that are not a valid message."""


def layout(wire: Any, dim: int) -> tuple[Field, ...]:
    """The fields on the wire for a vector of `dim` numbers.

    >>> layout(TopK(0.5), 8)
    (Field(kind='number', many=4, bits=32), Field(kind='position', many=4, bits=3))
    """
    match wire:
        case Identity() | RandK() | RankOne() | Wire(sketch=LowRank()):
            return (Field("number", wire.bits(dim) // FLOAT_BITS, FLOAT_BITS),)
        case TopK():
            count = count_entries(wire.fraction, dim)
            return Field("number", count, FLOAT_BITS), Field("position", count, index_bits(dim))
        case Rounding():
            return (Field("digits", dim, 1 + EXPONENT_BITS + wire.mantissa_bits),)
        case OneEntry():
            return Field("sign", 1, int(wire.signed)), Field("position", 1, index_bits(dim))
        case Corner():
            return (Field("flag", dim, 1),)
        case Several():
            pieces = zip(wire.parts, wire.sizes, strict=True)
            return tuple(field for piece, size in pieces for field in layout(piece, size))
        case Wire(Flat() as sketch, tasks):
            return layout(sketch.rule(tasks), dim)
        case Wire(Columns() as sketch, tasks):
            return layout(sketch.compressor, dim // tasks) * tasks
        case Wire(Largest() as sketch, tasks):  # other value_bits only imitate the authors' count
            rule, bits = f"be {FLOAT_BITS} to be sent", sketch.value_bits
            checks.require(bits == FLOAT_BITS, "Largest", "value_bits", rule, bits)
            count = sketch.count_entries(tasks, dim // tasks)
            places = Field("position", count, index_bits(dim))
            if places.length > dim:
                places = Field("map", count, dim)
            return Field("number", count, FLOAT_BITS), places
        case Wire():
            return layout(wire.sketch, dim)
    rule = "be a format of the library or have a method layout(dim) that gives its fields"
    checks.require(hasattr(wire, "layout"), "pack", "wire", rule, type(wire).__name__)
    fields: tuple[Field, ...] = wire.layout(dim)
    return fields


def pack(wire: Compressor, message: Message, dim: int) -> bytes:
    """The message of a vector of `dim` numbers as bytes.

    >>> top = TopK(0.5)
    >>> len(pack(top, top.encode(torch.tensor([3.0, -5.0, 1.0, 0.5])), 4)), top.bits(4)
    (9, 68)
    """
    values, positions = entries_of(message.values), entries_of(message.positions)
    fields, bits = layout(wire, dim), []
    if any(field.kind == "map" for field in fields):
        order = np.argsort(positions)
        values, positions = values[order], positions[order]
    for field in fields:
        if field.kind in PLACES:
            some, positions = np.split(positions, [field.many])
        else:
            some, values = np.split(values, [field.many])
        bits.append(to_bits(some, field))
    return np.packbits(np.concatenate(bits)).tobytes()


def unpack(wire: Compressor, data: bytes, like: Float[Tensor, "d"]) -> Message:
    """The message in some bytes, for `decode`; `like` has the vector's length, dtype and device.

    Raises Garbled if such a message has another number of bytes.
    """
    fields = layout(wire, like.numel())
    length = -(-sum(field.length for field in fields) // 8)
    if len(data) != length:
        raise Garbled(f"a message of {type(wire).__name__} has {length} bytes, got {len(data)}")
    bits = np.unpackbits(np.frombuffer(data, np.uint8))
    values, positions = list[Tensor](), list[Tensor]()
    for field in fields:
        some, bits = np.split(bits, [field.length])
        entries = from_bits(some, field, like.dtype).to(like.device)
        (positions if field.kind in PLACES else values).append(entries)
    # the format of a matrix of gradients needs a matrix, since it reads one gradient at a time
    rows = isinstance(wire, Wire) and isinstance(wire.sketch, Columns)
    shape = (wire.tasks, -1) if rows else (-1,)  # type: ignore[attr-defined]
    where = torch.cat(positions).view(shape) if positions else ()
    return Message(torch.cat(values).view(shape), where)


def send(wire: Compressor, x: Float[Tensor, "*s"], noise: Noise = ()) -> bytes:
    """Convert a compressed vector, a number, or a matrix (read row by row) to bytes."""
    flat = x.detach().flatten()
    return pack(wire, wire.encode(flat, noise), flat.numel())


def receive(
    wire: Compressor, data: bytes, like: Float[Tensor, "*s"], noise: Noise = ()
) -> Float[Tensor, "*s"]:
    """The inverse of `send`, in the shape, dtype and device of `like`; raises Garbled."""
    flat = like.flatten()
    try:
        return wire.decode(unpack(wire, data, flat), flat, noise).view(like.shape)
    except (RuntimeError, IndexError) as error:  # a position outside the vector
        raise Garbled(f"a message of {type(wire).__name__} cannot be decoded") from error


def entries_of(x: Noise) -> Any:
    """The entries as a numpy vector, which is empty if there is no tensor."""
    return x.cpu().flatten().numpy() if isinstance(x, Tensor) else np.zeros(0)


def to_bits(some: Any, field: Field) -> Any:
    """The bits of some numbers or positions, most significant bit first."""
    if field.kind == "map":
        return np.bincount(some, minlength=field.bits).astype(np.uint8)
    codes = some < 0 if field.kind == "sign" else some
    if field.kind == "digits":
        dtype = torch.float32 if some.dtype == np.int32 else torch.float64
        some = (torch.from_numpy(some) << dropped(field, dtype)).view(dtype).numpy()
    if field.kind in ("number", "digits"):
        with np.errstate(over="ignore"):  # numbers beyond float32's range become infinite
            codes = some.astype(np.float32).view(np.uint32) >> dropped(field, torch.float32)
    words = np.ascontiguousarray(codes.astype(">u8")).view(np.uint8).reshape(-1, 8)
    return np.unpackbits(words, axis=1)[:, 64 - field.bits :].flatten()


def from_bits(some: Any, field: Field, dtype: torch.dtype) -> Shaped[Tensor, "n"]:
    """The inverse of `to_bits`, with numbers in `dtype`."""
    if field.kind == "map":
        return torch.from_numpy(some.nonzero()[0])
    words = np.zeros((field.many, 64), np.uint8)
    words[:, 64 - field.bits :] = some.reshape(field.many, field.bits)
    codes = np.packbits(words, axis=1).view(">u8").flatten()
    if field.kind == "position":
        return torch.from_numpy(codes.astype(np.int64))
    if field.kind in ("number", "digits"):
        single = codes.astype(np.uint32) << np.uint32(dropped(field, torch.float32))
        real = torch.from_numpy(single.view(np.float32)).to(dtype)
        if field.kind == "number":
            return real
        return real.view(SIGNIFICAND[dtype][0]) >> dropped(field, dtype)
    numbers = torch.from_numpy(codes.astype(np.float64)).to(dtype)
    return 1 - 2 * numbers if field.kind == "sign" else numbers


def dropped(field: Field, dtype: torch.dtype) -> int:
    """The number of binary digits that are not sent."""
    return SIGNIFICAND[dtype][1] - (field.bits - 1 - EXPONENT_BITS)
