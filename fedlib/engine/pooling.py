"""Max-pooling of 2 x 2 pixels in captured graphs, by operations on whole rows of memory.

PyTorch's kernel for pictures whose channels are innermost in memory compares one number after
another and stores where each maximum was found. The pass of this module computes the same maxima
by two elementwise operations, and the same gradients from the differences that these compare. On a
CPU both together take about half of the time.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.fx import Graph, Node

from fedlib.engine.graphs import arguments, value

MAX_POOL = torch.ops.aten.max_pool2d_with_indices.default
MAX_POOL_BACKWARD = torch.ops.aten.max_pool2d_with_indices_backward.default
#: The window, its stride, padding and dilation in the arguments of these operations.
WINDOW = ([2, 2], [2, 2], [0, 0], [1, 1])


def pool_by_rows(graph: Graph) -> None:
    """Replace max-pooling of 2 x 2 pixels with channels innermost, and its gradient."""
    for node in list(graph.nodes):
        if node.target == MAX_POOL and is_replaceable(node):
            replace_pool(graph, node)
    graph.eliminate_dead_code()


def is_replaceable(node: Node) -> bool:
    """Whether a pooling has the form that this module computes."""
    x = value(arguments(node)[0])
    window = (*arguments(node)[1:], *WINDOW[len(arguments(node)) - 1 :])
    if window != WINDOW or node.kwargs or x.dim() != 4:
        return False
    has_even_sides = x.shape[2] % 2 == 0 and x.shape[3] % 2 == 0
    is_ordered = x.is_contiguous(memory_format=torch.channels_last)
    on_cpu = x.device.type == "cpu"
    return has_even_sides and is_ordered and on_cpu and only_backward_reads_places(node)


def only_backward_reads_places(node: Node) -> bool:
    """Whether nothing but the gradient reads where a pooling's maxima were found."""
    for result in node.users:
        _, number = arguments(result)
        if number == 1 and any(user.target != MAX_POOL_BACKWARD for user in result.users):
            return False
    return True


def replace_pool(graph: Graph, node: Node) -> None:
    """Replace a pooling and its gradients."""
    x = arguments(node)[0]
    with graph.inserting_before(node):
        wide = graph.call_function(larger_of_columns, (x,))
        pooled = graph.call_function(larger_of_rows, (wide,))
    for result in list(node.users):
        _, number = arguments(result)
        if number == 0:
            pooled.meta = dict(result.meta)
            result.replace_all_uses_with(pooled)
            continue
        for backward in list(result.users):
            gradient = arguments(backward)[0]
            with graph.inserting_before(backward):
                spread = graph.call_function(pool_gradient, (gradient, x, wide))
            spread.meta = dict(backward.meta)
            backward.replace_all_uses_with(spread)
            graph.erase_node(backward)


def larger_of_columns(x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B H W/2 C"]:
    """The larger of each two neighbours in a row of pixels; channels become the last axis."""
    left, right = column_pairs(x)
    return torch.maximum(left, right)


def larger_of_rows(wide: Float[Tensor, "B H W/2 C"]) -> Float[Tensor, "B C H/2 W/2"]:
    """The larger of each two neighbours in a column of pixels; channels become the second axis."""
    upper, lower = row_pairs(wide)
    batch, height, width, channels = wide.shape
    pooled = torch.maximum(upper, lower)
    return pooled.view(batch, height // 2, width, channels).permute(0, 3, 1, 2)


def pool_gradient(
    gradient: Float[Tensor, "B C H/2 W/2"],
    x: Float[Tensor, "B C H W"],
    wide: Float[Tensor, "B H W/2 C"],
) -> Float[Tensor, "B C H W"]:
    """The gradient by `x` of pooling whose gradient by the result is `gradient`.

    `wide` is `larger_of_columns(x)`. Of equal pixels the first takes the gradient, in the order of
    reading, as in torch's kernel.
    """
    batch, height, width, channels = wide.shape
    rows = gradient.permute(0, 2, 3, 1).reshape(batch, height // 2, width * channels)
    of_wide = divide(rows, *row_pairs(wide), axis=2)
    columns = of_wide.view(wide.shape)
    of_x = divide(columns, *column_pairs(x), axis=3)
    return of_x.view(batch, height, 2 * width, channels).permute(0, 3, 1, 2)


def column_pairs(x: Float[Tensor, "B C H W"]) -> tuple[Tensor, Tensor]:
    """The left and the right one of each two pixels in a row, `[B, H, W/2, C]`."""
    batch, channels, height, width = x.shape
    pixels = x.permute(0, 2, 3, 1).contiguous()
    pairs = pixels.view(batch, height, width // 2, 2, channels)
    return pairs.select(3, 0), pairs.select(3, 1)


def row_pairs(wide: Float[Tensor, "B H W/2 C"]) -> tuple[Tensor, Tensor]:
    """The upper and the lower one of each two rows, `[B, H/2, W/2 C]`."""
    batch, height, width, channels = wide.shape
    pairs = wide.view(batch, height // 2, 2, width * channels)
    return pairs.select(2, 0), pairs.select(2, 1)


def divide(gradient: Tensor, first: Tensor, second: Tensor, axis: int) -> Tensor:
    """Give a gradient to the larger one of each pair, zero to the other; both along a new axis."""
    # `where` and products with booleans are slower than this operation
    difference = second - first
    of_second = torch.ops.aten.threshold_backward.default(gradient, difference, 0)
    of_first = gradient - of_second
    return torch.stack([of_first, of_second], axis)
