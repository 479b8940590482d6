"""Max-pooling by 2, a half of the pixels at a time.

PyTorch's own takes one number after another where pictures have few channels, and keeps a position
of 64 bits for each. Here every other column is compared with the one beside it, then every other
row; the derivative goes the same way back. Finite numbers are the same, bit for bit.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.fx import GraphModule, Node

aten = torch.ops.aten

FEW = 32  # channels; from there on PyTorch's own is as fast


def halve(module: GraphModule) -> None:
    """Do so in a recording, for pictures whose channels are innermost in memory."""
    for node in module.graph.nodes:
        if node.target is aten.max_pool2d_with_indices.default and _can_be_halved(node):
            x, *_ = node.args
            node.target, node.args = halved, (x,)
            for back in _askers(node):
                slope, *_, columns = back.args
                back.target, back.args = unhalved, (slope, x, columns)
    module.recompile()


def _can_be_halved(node: Node) -> bool:
    """Whether it pools by 2, and nothing but its derivative asks for positions."""
    picture, *how = node.args
    x: Tensor = picture.meta["val"]  # type: ignore[union-attr]
    if how not in ([[2, 2]], [[2, 2]] * 2) or x.dim() != 4 or x.shape[1] >= FEW:
        return False
    even = x.shape[2] % 2 == x.shape[3] % 2 == 0
    own = {user.target for user in _askers(node)} <= {aten.max_pool2d_with_indices_backward.default}
    return even and own and x.is_contiguous(memory_format=torch.channels_last)


def _askers(node: Node) -> list[Node]:
    """What asks for the positions, its second result."""
    return [user for part in node.users if part.args[1] == 1 for user in part.users]


def halved(
    x: Float[Tensor, "B c h w"],
) -> tuple[Float[Tensor, "B c h/2 w/2"], Float[Tensor, "B h/2 2 w/2 c"]]:
    """The largest of every 2 x 2 pixels, and the larger of every two side by side."""
    columns = torch.maximum(*_columns(x))
    return torch.maximum(*columns.unbind(2)).permute(0, 3, 1, 2), columns


def unhalved(
    slope: Float[Tensor, "B c h/2 w/2"],
    x: Float[Tensor, "B c h w"],
    columns: Float[Tensor, "B h/2 2 w/2 c"],
) -> Float[Tensor, "B c h w"]:
    """The derivative by `x`: among equals the first has it, row by row."""
    by_columns, by_x = torch.empty_like(columns), torch.empty_like(x)
    _share(slope.permute(0, 2, 3, 1), columns.unbind(2), by_columns.unbind(2))
    _share(by_columns, _columns(x), _columns(by_x))
    return by_x


def _columns(x: Tensor) -> tuple[Tensor, ...]:
    """Even and odd columns, `[B, h/2, 2, w/2, c]` each."""
    B, c, h, w = x.shape
    return x.permute(0, 2, 3, 1).view(B, h // 2, 2, w // 2, 2, c).unbind(4)


def _share(slope: Tensor, values: tuple[Tensor, ...], into: tuple[Tensor, ...]) -> None:
    """The slope to the larger of two, zero to the other."""
    (first, second), (to_first, to_second) = values, into
    torch.gt(second, first, out=to_second).mul_(slope)
    torch.sub(slope, to_second, out=to_first)
