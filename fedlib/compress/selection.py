"""The positions of a vector's largest entries, in less time than sorting takes."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

#: Length of a vector from which a threshold is sought; in a shorter one `torch.topk` takes less
#: time than the call of an operator of ours.
LONG = 10_000
#: The integer types that order the bits of numbers above zero as the numbers themselves.
BITS = {torch.float32: np.int32, torch.float64: np.int64}


def largest_positions(x: Float[Tensor, "*n d"], count: int) -> Int[Tensor, "*n K"]:
    """The positions of the `count` largest magnitudes, in no particular order.

    Among equal magnitudes they are those of `torch.topk`.
    """
    magnitudes = x.abs()
    is_ordered = x.device.type == "cpu" and x.dtype in BITS
    if x.shape[-1] < LONG or not is_ordered:
        return magnitudes.topk(count).indices
    positions: Tensor = select_largest(magnitudes, count)
    return positions


@torch.library.custom_op("fedlib_kernels::select_largest", mutates_args=())
def select_largest(x: Tensor, count: int) -> Tensor:
    """The positions `[..., K]` of the `count` largest entries of `x [..., d]`, all at least 0."""
    axes = x.shape[:-1]
    positions = torch.empty(*axes, count, dtype=torch.int64)
    lines = positions.view(-1, count)
    length = x.shape[-1]
    rows = x.reshape(-1, length)
    bits = BITS[x.dtype]
    for row, line in zip(rows, lines, strict=True):
        above = positions_above_threshold(row.numpy(), bits, count)
        selected = torch.from_numpy(above)
        if len(selected) != count:
            selected = row.topk(count, sorted=False).indices
        line.copy_(selected)
    return positions


@select_largest.register_fake
def _(x: Tensor, count: int) -> Tensor:
    return x.new_empty((*x.shape[:-1], count), dtype=torch.int64)


@select_largest.register_vmap
def _(info: Any, in_dims: tuple[int | None, None], x: Tensor, count: int) -> tuple[Tensor, int]:
    del info
    axis = in_dims[0]
    assert axis is not None
    stacked = x.movedim(axis, 0)
    return select_largest(stacked, count), 0


def positions_above_threshold(x: NDArray[Any], bits: type, count: int) -> NDArray[np.int64]:
    """The positions of all entries at least as large as the one of rank `count`.

    They are more than `count` if entries of this size are equal.
    """
    codes: NDArray[Any] = x.view(bits)
    rank = len(x) - count
    partitioned = np.partition(codes, rank)
    threshold = partitioned[rank]
    return np.flatnonzero(codes >= threshold)
