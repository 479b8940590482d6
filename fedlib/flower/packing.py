"""Messages as bytes: a wire format's encoded message, in as many bits as the format counts.

A message consists of numbers and positions; the format's `layout(dim)` defines their order on the
wire and the bits of each. The last byte is padded with zeros, so `8 * len(pack(...))` is
`bits(dim)` rounded up to whole bytes.
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from fedlib import checks
from fedlib.compress.compressors import SIGNIFICAND, Compressor
from fedlib.compress.wire import (
    EXPONENT_BITS,
    FLOAT_BITS,
    Field,
    Layout,
    Message,
    Noise,
    total_bits,
)
from fedlib.shapes import Vector

PLACES = ("position", "map")
WORD = 64  # bits of the integers in which an entry's bits are shifted


class Garbled(ValueError):
    """Bytes that are not a valid message."""


def layout_of(wire: Compressor, dim: int) -> Layout:
    """The fields of a message; raises ValueError for numbers that cannot be sent."""
    layout = wire.layout(dim)
    for field in layout:
        if field.content == "number":
            rule = f"have numbers of {FLOAT_BITS} bits to be sent"
            checks.require(field.bits == FLOAT_BITS, "pack", "wire", rule, field.bits)
    return layout


def pack(
    wire: Compressor,
    message: Message,
    dim: int,
) -> bytes:
    """The message of a vector of `dim` numbers as bytes.

    >>> from fedlib import TopK
    >>> top = TopK(0.5)
    >>> len(pack(top, top.encode(torch.tensor([3.0, -5.0, 1.0, 0.5])), 4)), top.bits(4)
    (9, 68)
    """
    layout = layout_of(wire, dim)
    values = entries_of(message.values)
    positions = entries_of(message.positions)
    if any(field.content == "map" for field in layout):
        order = np.argsort(positions)
        values = values[order]
        positions = positions[order]
    bits = []
    for field in layout:
        if field.content in PLACES:
            entries, positions = np.split(positions, [field.entries])
        else:
            entries, values = np.split(values, [field.entries])
        bits.append(to_bits(entries, field))
    return np.packbits(np.concatenate(bits)).tobytes()


def unpack(
    wire: Compressor,
    data: bytes,
    template: Vector,
) -> Message:
    """The message in some bytes, for `decode`; `template` has its length, dtype and device.

    Raises Garbled if such a message has another number of bytes.
    """
    layout = layout_of(wire, template.numel())
    length = bytes_of(total_bits(layout))
    if len(data) != length:
        raise Garbled(f"a message of {type(wire).__name__} has {length} bytes, got {len(data)}")
    bits = np.unpackbits(np.frombuffer(data, np.uint8))
    values: list[Tensor] = []
    positions: list[Tensor] = []
    for field in layout:
        field_bits, bits = np.split(bits, [field.length])
        entries = from_bits(field_bits, field, template.dtype).to(template.device)
        if field.content in PLACES:
            positions.append(entries)
        else:
            values.append(entries)
    return Message(torch.cat(values), torch.cat(positions) if positions else ())


def bytes_of(bits: int) -> int:
    """The number of bytes that hold so many bits."""
    return (bits + 7) // 8


def send(
    wire: Compressor,
    x: Float[Tensor, "*s"],
    noise: Noise = (),
) -> bytes:
    """Convert a compressed vector, a number, or a matrix (read row by row) to bytes."""
    flat = x.detach().flatten()
    return pack(wire, wire.encode(flat, noise), flat.numel())


def receive(
    wire: Compressor,
    data: bytes,
    template: Float[Tensor, "*s"],
    noise: Noise = (),
) -> Float[Tensor, "*s"]:
    """The inverse of `send`, in the shape, dtype and device of `template`; raises Garbled."""
    flat = template.flatten()
    try:
        message = unpack(wire, data, flat)
        return wire.decode(message, flat, noise).view(template.shape)
    except (RuntimeError, IndexError) as error:  # a position outside the vector
        raise Garbled(f"a message of {type(wire).__name__} cannot be decoded") from error


def entries_of(x: Noise) -> Any:
    """The entries as a numpy vector, which is empty if there is no tensor."""
    if isinstance(x, Tensor):
        return x.cpu().flatten().numpy()
    return np.zeros(0)


def to_bits(entries: Any, field: Field) -> Any:
    """The bits of a field's numbers or positions, most significant bit first."""
    if field.content == "map":
        return np.bincount(entries, minlength=field.bits).astype(np.uint8)
    codes = np.ascontiguousarray(codes_of(entries, field).astype(">u8"))
    words = codes.view(np.uint8).reshape(-1, 8)
    bits = np.unpackbits(words, axis=1)
    return bits[:, WORD - field.bits :].flatten()


def codes_of(entries: Any, field: Field) -> Any:
    """The nonnegative integers that stand for numbers or positions on the wire."""
    if field.content == "sign":
        return entries < 0
    if field.content == "digits":
        dtype = torch.float64
        if entries.dtype == np.int32:
            dtype = torch.float32
        shifted = torch.from_numpy(entries) << dropped_digits(field, dtype)
        entries = shifted.view(dtype).numpy()
    if field.content in ("number", "digits"):
        with np.errstate(over="ignore"):  # numbers beyond float32's range become infinite
            single = entries.astype(np.float32)
        return single.view(np.uint32) >> dropped_digits(field, torch.float32)
    return entries


def from_bits(
    bits: Any,
    field: Field,
    dtype: torch.dtype,
) -> Shaped[Tensor, "n"]:
    """The inverse of `to_bits`, with numbers in `dtype`."""
    if field.content == "map":
        return torch.from_numpy(bits.nonzero()[0])
    words = np.zeros((field.entries, WORD), np.uint8)
    words[:, WORD - field.bits :] = bits.reshape(field.entries, field.bits)
    packed = np.packbits(words, axis=1)
    codes = packed.view(">u8").flatten()
    return entries_from(codes, field, dtype)


def entries_from(
    codes: Any,
    field: Field,
    dtype: torch.dtype,
) -> Shaped[Tensor, "n"]:
    """The inverse of `codes_of`, with numbers in `dtype`."""
    if field.content == "position":
        return torch.from_numpy(codes.astype(np.int64))
    if field.content in ("number", "digits"):
        shift = np.uint32(dropped_digits(field, torch.float32))
        single = codes.astype(np.uint32) << shift
        numbers = torch.from_numpy(single.view(np.float32)).to(dtype)
        if field.content == "number":
            return numbers
        integer, _ = SIGNIFICAND[dtype]
        return numbers.view(integer) >> dropped_digits(field, dtype)
    numbers = torch.from_numpy(codes.astype(np.float64)).to(dtype)
    if field.content == "sign":
        return 1 - 2 * numbers
    return numbers


def dropped_digits(field: Field, dtype: torch.dtype) -> int:
    """The number of binary digits that are not sent."""
    _, digits = SIGNIFICAND[dtype]
    return digits - (field.bits - 1 - EXPONENT_BITS)
