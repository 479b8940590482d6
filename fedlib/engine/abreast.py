"""Convolutions of grey pictures on a CPU, with the pictures of a batch abreast in memory.

Where pictures have one channel, or a few, convolution and pooling go from one short run of numbers
to the next. Here a pixel of all pictures comes before the next pixel, `[h, w, B, c]` in memory. To
oneDNN that is a single wide picture and a kernel whose columns lie B apart; to max-pooling it is
one picture of B c channels. Shapes stay what they were, only strides differ. Derivatives by weights
are summed in another order and round differently; the largest of a window is the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.fx import GraphModule, Node

from fedlib.engine.products import available

aten = torch.ops.aten

#: Pictures at a time. A convolution of one channel with its pooling takes 0.4 to 0.7 of the time
#: from 32 to 1200 pictures, 5 x 5 pixels to ten channels 0.9; with 16 pictures it takes more.
BATCHES = range(32, 1201)
#: Channels from which on a later convolution stays as it is: from 10 to 15 it takes 0.9 of the
#: time, with 16 about as much as before, and a third more where it is padded.
FEW = 16

CONVOLVE, UNCONVOLVE = aten.convolution.default, aten.convolution_backward.default
POOL, UNPOOL = (
    aten.max_pool2d_with_indices.default,
    aten.max_pool2d_with_indices_backward.default,
)
RELU, UNRELU = aten.relu.default, aten.threshold_backward.default
PLAIN = ([1, 1], False, [0, 0], 1)  # dilation, not transposed, no padding of the result, no groups
DENSE = {"memory_format": torch.contiguous_format}


def put_abreast(module: GraphModule) -> None:
    """Let a recording have its pictures abreast, from convolutions of one channel on."""
    if available() and not any(map(_writes, module.graph.nodes)):
        change = _Change(module)
        for node in list(module.graph.nodes):
            change(node)
        module.recompile()


class _Change:
    """Goes through a recording; `moved` are the values whose strides are no longer the recorded."""

    def __init__(self, module: GraphModule) -> None:
        self.graph = module.graph
        self.moved: set[Any] = set()
        self.wide: dict[tuple[Any, Any], Node] = {}  # of the inputs and weights of convolutions
        self.copies: dict[Node, Node] = {}
        self.ways: dict[Any, Callable[..., bool]] = {
            CONVOLVE: self._convolution,
            UNCONVOLVE: self._convolution_backward,
            POOL: self._pool,
            UNPOOL: self._pool_backward,
            RELU: self._relu,
            UNRELU: self._relu_backward,
            operator.getitem: self._part,
        }

    def __call__(self, node: Node) -> None:
        """Have the operation done otherwise, or give it what was recorded."""
        way = self.ways.get(node.target)
        if not (way and way(*node.args, node=node)) and not _orders(node):
            for x in self.moved & {*node.all_input_nodes}:
                node.replace_input_with(x, self._copy(x, node))

    def _convolution(self, x: Node, weight: Node, bias: Any, *how: Any, node: Node) -> bool:
        stride, padding, *rest = how
        few = x in self.moved and max(_channels(x), _channels(node)) < FEW
        gray = _channels(x) == 1 and _is_pooled(node)
        plain = stride == [1, 1] and (*rest,) == PLAIN and _value(x).dtype == torch.float32
        if not (plain and (few or gray) and len(_value(x)) in BATCHES):
            return False
        with self.graph.inserting_before(node):
            self.wide[x, weight] = self.graph.call_function(abreast, (x, padding))
        node.args = (self.wide[x, weight], weight, bias, len(_value(x)))
        return self._moves(node, convolved)

    def _convolution_backward(
        self, slope: Node, x: Node, weight: Node, *how: Any, node: Node
    ) -> bool:
        if (x, weight) not in self.wide:
            return False
        _, _, padding, *_, wanted = how
        recorded = _value(node)[1]
        strides = None if recorded is None else recorded.stride()
        node.args = (slope, self.wide[x, weight], weight, padding, wanted, strides)
        return self._moves(node, unconvolved)

    def _pool(self, x: Node, *_: Any, node: Node) -> bool:
        places = [user for part in node.users if part.args[1] == 1 for user in part.users]
        own = {user.target for user in places} <= {UNPOOL}  # in a wide picture they are the same
        return x in self.moved and own and self._moves(node, pooled)

    def _pool_backward(self, *given: Any, node: Node) -> bool:
        pool = given[-1].all_input_nodes  # of the positions
        return not self.moved.isdisjoint(pool) and self._moves(node, unpooled)

    def _relu(self, x: Node, node: Node) -> bool:
        return x in self.moved and self._moves(node)

    def _relu_backward(self, _: Node, y: Node, __: float, node: Node) -> bool:
        return y in self.moved and self._moves(node, shut)

    def _part(self, x: Node, i: int, node: Node) -> bool:
        return x in self.moved and (i > 0 or self._moves(node))

    def _moves(self, node: Node, function: Any = None) -> bool:
        node.target = function or node.target
        self.moved.add(node)
        return True

    def _copy(self, x: Node, before: Node) -> Node:
        """The value in the recorded order."""
        if x not in self.copies:
            with self.graph.inserting_before(before):
                self.copies[x] = self.graph.call_function(ordered, (x, _value(x).stride()))
        return self.copies[x]


def _value(node: Node) -> Any:
    return node.meta["val"]


def _channels(node: Node) -> int:
    return int(_value(node).shape[-3])


def _is_pooled(node: Node) -> bool:
    """Whether it goes to max-pooling, perhaps by way of ReLU."""
    return any(u.target is POOL or (u.target is RELU and _is_pooled(u)) for u in node.users)


def _writes(node: Node) -> bool:
    """Whether it writes to pictures."""
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable and getattr(_value(node), "ndim", 0) == 4


def _orders(node: Node) -> bool:
    """Whether it copies entries into an order of its own."""
    return node.target is aten.clone.default and node.kwargs == DENSE


def ordered(x: Float[Tensor, "..."], strides: Sequence[int]) -> Float[Tensor, "..."]:
    """The same numbers with other strides."""
    return x if x.stride() == strides else x.new_empty_strided(x.shape, strides).copy_(x)


def abreast(x: Float[Tensor, "B c h w"], padding: Sequence[int]) -> Float[Tensor, "1 c H WB"]:
    """All pictures of a batch as a single wide one, with zeros around it."""
    above, beside = padding
    rows = _rows(x)
    if not (above or beside):
        return _wide(rows.contiguous())
    h, w, B, c = rows.shape
    wide = x.new_zeros(h + 2 * above, w + 2 * beside, B, c)
    wide[above : above + h, beside : beside + w].copy_(rows)
    return _wide(wide)


def convolved(
    wide: Float[Tensor, "1 c h wB"],
    weight: Float[Tensor, "n c a b"],
    bias: Float[Tensor, "n"] | None,
    B: int,
) -> Float[Tensor, "B n H W"]:
    """The convolution."""
    return _apart(CONVOLVE(wide, weight, bias, [1, 1], [0, 0], [1, B], *PLAIN[1:]), B)


def unconvolved(
    slope: Float[Tensor, "B n H W"],
    wide: Float[Tensor, "1 c h wB"],
    weight: Float[Tensor, "n c a b"],
    padding: Sequence[int],
    wanted: Sequence[bool],
    strides: Sequence[int] | None,
) -> tuple[Float[Tensor, "..."] | None, ...]:
    """The derivatives of `convolved` by pictures, weights and bias, as far as they are wanted.

    `strides` are those of the derivative by the weights.
    """
    rows, (above, beside), B = _rows(slope).contiguous(), padding, len(slope)
    if weight.shape[1] == 1 and not wanted[0]:
        by_weight, by_bias = _by_patches(rows, wide, weight)
    else:
        by_weight, by_bias = _picture_by_picture(slope, wide, weight, wanted)
    if strides is not None:
        by_weight = ordered(by_weight, strides)
    if not wanted[0]:
        return None, by_weight, by_bias
    how = ([1, 1], [0, 0], [1, B], *PLAIN[1:], [True, False, False])
    by_wide, _, _ = UNCONVOLVE(_wide(rows), wide, weight, [len(weight)], *how)
    by_x = _apart(by_wide, B)
    _, _, h, w = by_x.shape
    return by_x[..., above : h - above, beside : w - beside], by_weight, by_bias


def _picture_by_picture(
    slope: Float[Tensor, "B n H W"],
    wide: Float[Tensor, "1 c h wB"],
    weight: Float[Tensor, "n c a b"],
    wanted: Sequence[bool],
) -> Any:
    """The derivatives by weights and bias, for which oneDNN is fastest with whole pictures."""
    x, y = (
        each.contiguous(memory_format=torch.channels_last)
        for each in (_apart(wide, len(slope)), slope)
    )
    how = ([1, 1], [0, 0], [1, 1], *PLAIN[1:], [False, *wanted[1:]])
    _, by_weight, by_bias = UNCONVOLVE(y, x, weight, [len(weight)], *how)
    return by_weight, by_bias


def _by_patches(
    rows: Float[Tensor, "H W B n"],
    wide: Float[Tensor, "1 1 h wB"],
    weight: Float[Tensor, "n 1 a b"],
) -> tuple[Float[Tensor, "n 1 a b"], Float[Tensor, "n"]]:
    """Both derivatives in one product, with what every weight is multiplied by, and ones."""
    H, W, B, n = rows.shape
    _, _, a, b = weight.shape
    width = wide.shape[-1]
    patches = wide.new_empty(a * b + 1, H, W * B)
    each = wide.as_strided((a, b, H, W * B), (width, B, width, 1))
    patches[:-1].view(each.shape).copy_(each)
    patches[-1].fill_(1)
    found = patches.flatten(1) @ rows.view(-1, n)
    return found[:-1].t().reshape(weight.shape), found[-1]


def pooled(
    x: Float[Tensor, "B c h w"], *how: Any
) -> tuple[Float[Tensor, "B c H W"], Int[Tensor, "1 Bc H W"]]:
    """Max-pooling, and the positions in a picture of B c channels."""
    largest, places = POOL(_deep(x), *how)
    return _shallow(largest, len(x)), places


def unpooled(
    slope: Float[Tensor, "B c H W"],
    x: Float[Tensor, "B c h w"],
    *how: Any,
) -> Float[Tensor, "B c h w"]:
    """The derivative of `pooled` by `x`."""
    return _shallow(UNPOOL(_deep(slope), _deep(x), *how), len(x))


def shut(
    slope: Float[Tensor, "B c h w"], y: Float[Tensor, "B c h w"], bound: float
) -> Float[Tensor, "B c h w"]:
    """The derivative of a ReLU whose values were `y`, in the order of `y`."""
    found: Tensor = UNRELU(ordered(slope, y.stride()), y, bound)
    return found


def _rows(x: Float[Tensor, "B c h w"]) -> Float[Tensor, "h w B c"]:
    return x.permute(2, 3, 0, 1)


def _wide(rows: Float[Tensor, "h w B c"]) -> Float[Tensor, "1 c h wB"]:
    return rows.flatten(1, 2)[None].permute(0, 3, 1, 2)


def _apart(wide: Float[Tensor, "1 c h wB"], B: int) -> Float[Tensor, "B c h w"]:
    _, c, h, width = wide.shape
    return wide.view(c, h, width // B, B).permute(3, 0, 1, 2)


def _deep(x: Float[Tensor, "B c h w"]) -> Float[Tensor, "1 Bc h w"]:
    return _rows(x).flatten(2)[None].permute(0, 3, 1, 2)


def _shallow(deep: Float[Tensor, "1 Bc h w"], B: int) -> Float[Tensor, "B c h w"]:
    _, _, h, w = deep.shape
    return deep.view(B, -1, h, w)
