"""Matrix products by the kernels that are fast on this processor.

PyTorch's wheels for x86 hold two libraries of matrix products. `torch.mm` and `torch.bmm` call MKL,
which uses only part of the instructions of processors that Intel did not make. oneDNN, which
convolutions and `torch.ops.mkldnn` call, uses all of them. On such a processor the passes of this
module replace large products of a captured graph; elsewhere they change nothing. The choice
depends on the processor's maker and on shapes alone, so a run takes the same kernels every time.
"""

import math
import platform
from functools import cache
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.fx import Graph, Node

from fedlib.engine.graphs import arguments, insert, value

MM = torch.ops.aten.mm.default
BMM = torch.ops.aten.bmm.default
ADDMM = torch.ops.aten.addmm.default
RESHAPE = torch.ops.aten.reshape.default
INDEX_SELECT = torch.ops.aten.index_select.default
EXPAND = torch.ops.aten.expand.default
PERMUTE = torch.ops.aten.permute.default
#: Multiplications in one matrix product from which oneDNN is faster than MKL in spite of its
#: overhead of some ten microseconds a call.
LARGE = 2_000_000
#: Entries in the rows that a round takes from the data from which copying whole rows is faster.
MANY = 500_000


@cache
def processor_maker(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The maker of the processor, as Linux names it (such as GenuineIntel), or "" if unknown."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return ""
    try:
        lines = cpuinfo.read_text(encoding="utf8").splitlines()
    except OSError:
        return ""
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == "vendor_id":
            return value.strip()
    return ""


def product_library() -> str:
    """The library that computes large float32 products of captured rounds: `onednn` or `torch`.

    `torch` stands for whatever `torch.mm` calls.
    """
    known = processor_maker() not in ("", "GenuineIntel")
    has_mkl = torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
    has_onednn = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    has_operator = hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return "onednn" if known and has_mkl and has_onednn and has_operator else "torch"


def multiply(a: Float[Tensor, "n k"], b: Float[Tensor, "k m"]) -> Float[Tensor, "n m"]:
    """The product of float32 matrices by oneDNN, maybe as a transposed view."""
    # The operator computes x @ weight.T and copies the weight into another order first.
    if b.numel() > a.numel() and b.T.is_contiguous():
        return linear(b.T, a).T
    return linear(a, b.T)


def linear(x: Float[Tensor, "n k"], weight: Float[Tensor, "m k"]) -> Float[Tensor, "n m"]:
    """The product `x @ weight.T` of float32 matrices by oneDNN."""
    result: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")
    return result


@torch.library.custom_op("fedlib_kernels::mm", mutates_args=())
def product(a: Tensor, b: Tensor) -> Tensor:
    """The product `[n, m]` of float32 matrices `a [n, k]` and `b [k, m]` by oneDNN."""
    return multiply(a, b).contiguous()


@product.register_fake
def _(a: Tensor, b: Tensor) -> Tensor:
    return a.new_empty(a.shape[0], b.shape[1])


@torch.library.custom_op("fedlib_kernels::bmm", mutates_args=())
def products(a: Tensor, b: Tensor) -> Tensor:
    """The products `[N, n, m]` of float32 matrices `a [N, n, k]` and `b [N, k, m]` by oneDNN."""
    result = a.new_empty(a.shape[0], a.shape[1], b.shape[2])
    for client, left in enumerate(a):
        result[client] = multiply(left, b[client])
    return result


@products.register_fake
def _(a: Tensor, b: Tensor) -> Tensor:
    return a.new_empty(a.shape[0], a.shape[1], b.shape[2])


@torch.library.custom_op("fedlib_kernels::rows", mutates_args=())
def take_rows(data: Tensor, places: Tensor) -> Tensor:
    """The rows `[n, ...]` of `data [R, ...]` at some places, each copied as a block of memory."""
    return torch.index_select(data, 0, places)


@take_rows.register_fake
def _(data: Tensor, places: Tensor) -> Tensor:
    return data.new_empty(places.shape[0], *data.shape[1:])


TAKE_ROWS = torch.ops.fedlib_kernels.rows.default
ONEDNN_MM = torch.ops.fedlib_kernels.mm.default
ONEDNN_BMM = torch.ops.fedlib_kernels.bmm.default


def choose_kernels(graph: Graph) -> None:
    """Replace the large products of a captured graph by oneDNN's, where they are faster."""
    if product_library() != "onednn":
        return
    for node in list(graph.nodes):
        if node.target == BMM:
            join_clients(graph, node)
    for node in list(graph.nodes):
        if node.target == MM and is_large(node):
            node.target = ONEDNN_MM
        elif node.target == BMM and is_large(node):
            node.target = ONEDNN_BMM
        elif node.target == ADDMM and is_large(node):
            split_sum(graph, node)
        elif node.target == INDEX_SELECT:
            table, axis, places = arguments(node)
            if axis == 0 and value(node).numel() >= MANY:
                node.target = TAKE_ROWS
                node.args = (table, places)
    graph.eliminate_dead_code()


def is_large(node: Node) -> bool:
    """Whether a product is of float32 on the CPU, and each of its matrix products is large."""
    *_, left, right = arguments(node)
    rows, depth = value(left).shape[-2:]
    columns = value(right).shape[-1]
    return is_single(node) and rows * depth * columns >= LARGE


def is_single(node: Node) -> bool:
    """Whether the result of a node is float32 on the CPU."""
    result = value(node)
    return result.dtype == torch.float32 and result.device.type == "cpu"


def split_sum(graph: Graph, node: Node) -> None:
    """Replace `addmm(bias, a, b)` by `bias + a @ b`."""
    if node.kwargs:  # a factor of the bias or of the product
        return
    bias, left, right = arguments(node)
    with graph.inserting_before(node):
        multiplied = insert(graph, ONEDNN_MM, left, right)
        added = insert(graph, torch.ops.aten.add.Tensor, multiplied, bias)
    node.replace_all_uses_with(added)


def join_clients(graph: Graph, node: Node) -> None:
    """Compute the products of all clients with one matrix as one tall product, if that is large.

    For a matrix W `[n, k]` that all N clients share and X `[N, k, m]`, the products `W @ X[j]` are
    the rows of `X.transpose(1, 2).reshape(N m, k) @ W.T`; `X[j] @ W` are those of
    `X.reshape(N n, k) @ W`.
    """
    left, right = arguments(node)
    on_the_left = shared_matrix(left)
    on_the_right = shared_matrix(right)
    clients, rows, columns = value(node).shape
    if not is_single(node) or clients * rows * columns * value(left).shape[-1] < LARGE:
        return
    with graph.inserting_before(node):
        if on_the_left is not None:
            stacked = insert(graph, PERMUTE, right, [0, 2, 1])
            matrix = insert(graph, PERMUTE, flat_matrix(graph, on_the_left), [1, 0])
            tall = insert_tall(graph, stacked, matrix)
            joined = insert(graph, PERMUTE, tall, [0, 2, 1])
        elif on_the_right is not None:
            joined = insert_tall(graph, left, flat_matrix(graph, on_the_right))
        else:
            return
    node.replace_all_uses_with(joined)


def shared_matrix(node: Any) -> Node | None:
    """The node of the matrix that another node repeats for every client, or None."""
    while node.target == RESHAPE:
        node = arguments(node)[0]
    if node.target != EXPAND:
        return None
    source: Node = arguments(node)[0]
    *repeats, rows, columns = value(node).shape
    *before, rows_before, columns_before = value(source).shape
    is_matrix = (rows_before, columns_before) == (rows, columns)
    if is_matrix and math.prod(before) == 1 < math.prod(repeats):
        return source
    return None


def flat_matrix(graph: Graph, node: Node) -> Node:
    """A node of shape `[1, ..., n, k]` as `[n, k]`."""
    return insert(graph, RESHAPE, node, list(value(node).shape[-2:]))


def insert_tall(graph: Graph, stacked: Any, matrix: Node) -> Node:
    """The products `[N, n, m]` of all `stacked [N, n, k]` with one `matrix [k, m]`."""
    clients, rows, depth = value(stacked).shape
    tall = insert(graph, RESHAPE, stacked, [clients * rows, depth])
    multiplied = insert(graph, ONEDNN_MM, tall, matrix)
    return insert(graph, RESHAPE, multiplied, [clients, rows, value(matrix).shape[1]])
