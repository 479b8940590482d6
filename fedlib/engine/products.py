"""Large products of matrices in float32 on a CPU, by oneDNN.

torch hands products of float32 to MKL, which on some processors with AVX512 uses half of their
units, and far less where a matrix is narrow. oneDNN, which torch brings along for its convolutions,
does not care. It rounds differently. Below some size its call costs more than it gains, and where
there is no AVX512 it gains in long sums with a small result only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node

from fedlib.engine.operations import has_own_code

aten = torch.ops.aten

LEAST = 2**19  # multiplications from which on a call is worth its while
COPIED = 64  # and as many for each entry that has to be put in another order
NARROW = 3  # rows or columns below which there is nothing to gain
SMALL = 32  # without AVX512, rows and columns of the result above which there is none,
LONG = 20  # and terms of a sum, for each entry of the result, below which there is none

#: The ways to a product. From Python oneDNN's operation cannot be recorded: a list of optional
#: numbers has no Python type.
SOURCE = """
def product(x, w):  # x [m, k], w [n, k]: x w^T; entries of x lie row by row, or are copied so
    none = torch.jit.annotate(List[Optional[number]], [])
    return torch.ops.mkldnn._linear_pointwise(x, w, None, "none", none, "")

def plain(a, b):  # the product, the first factor by its rows
    return product(a, b.t())

def turned(a, b):  # the same by the columns of the second factor
    return product(b.t(), a).t().contiguous()

def common_right(a, b):  # [B, m, k], [B, k, n]: all b are one; the a below each other
    return plain(a.reshape(-1, a.shape[2]), b[0]).view(a.shape[0], a.shape[1], b.shape[2])

def common_left(a, b):  # all a are one
    return common_right(b.mT, a.mT).mT.contiguous()

def one_by_one(a, b):  # each product for itself
    each: List[Tensor] = []
    for i in range(a.shape[0]):
        each.append(plain(a[i], b[i]))
    return torch.stack(each)

def one_by_one_turned(a, b):  # each by the columns of its second factor
    each: List[Tensor] = []
    for i in range(a.shape[0]):
        each.append(turned(a[i], b[i]))
    return torch.stack(each)
"""


@cache
def _programs() -> Any:
    return torch.jit.CompilationUnit(SOURCE)


def _way_named(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    def way(a: Tensor, b: Tensor) -> Tensor:
        return getattr(_programs(), name)(a, b)  # type: ignore[no-any-return]

    way.__name__ = way.__qualname__ = name
    return way


NAMES = ("plain", "turned", "common_right", "common_left", "one_by_one", "one_by_one_turned")
WAYS = tuple(_way_named(name) for name in NAMES)
plain, turned, common_right, common_left, one_by_one, one_by_one_turned = WAYS


def program_of(function: object) -> Any:
    """The program of a way to a product; None for other functions."""
    return getattr(_programs(), function.__name__) if function in WAYS else None


@cache
def available() -> bool:
    """Whether this torch has oneDNN, and it gives the product."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    x = torch.arange(6.0).view(2, 3)
    try:
        return torch.equal(_programs().product(x, x), x @ x.T)
    except RuntimeError:  # another version of torch names it otherwise
        return False


def large_by_onednn(module: GraphModule) -> None:
    """Let oneDNN do the large products of a recording on a CPU; they round differently there.

    A large product knows in `meta["product"]` which operation it was, even where MKL keeps it.
    Where a simulator or other code of ours is among the operations, all stays as it is.
    """
    if has_own_code(module.graph):
        return
    for node in module.graph.nodes:
        if (way := _way(node)) is not None and available():
            node.meta["product"], node.target = node.target, way
    module.recompile()


def _way(node: Node) -> Any:
    """The function in whose hands a large product is fastest; None for others."""
    if node.target not in (aten.mm.default, aten.bmm.default):
        return None
    a, b = (x.meta["val"] for x in node.all_input_nodes * (3 - len(node.all_input_nodes)))
    if not a.dtype == b.dtype == torch.float32:
        return None
    if a.dim() != b.dim() or a.dim() not in (2, 3) or min(a.shape[-2], b.shape[-1]) < NARROW:
        return None
    work, ways = a.numel() * b.shape[-1], _copied(a, b)
    each = work // len(a) if ways.keys() & {one_by_one, one_by_one_turned} else work
    way = min(ways, key=ways.__getitem__)
    if each < LEAST or work < LEAST + COPIED * ways[way]:
        return None
    return way if has_avx512() or _sums_long(a, b) else node.target


@cache
def has_avx512() -> bool:
    """Whether torch finds a processor with AVX512."""
    return torch.backends.cpu.get_cpu_capability().startswith("AVX512")


def _sums_long(a: Tensor, b: Tensor) -> bool:
    """Whether few entries are sums of many terms each."""
    rows, terms, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    return max(rows, columns) <= SMALL and terms >= LONG * rows * columns


def _copied(a: Tensor, b: Tensor) -> dict[Any, int]:
    """The ways to a product, and how many entries each puts in another order."""
    result = a.numel() // a.shape[-1] * b.shape[-1]
    rows = 0 if a.is_contiguous() else a.numel()
    columns = 0 if b.mT.is_contiguous() else b.numel()
    if a.dim() == 2:
        return {plain: rows, turned: columns + result}
    if len(b) > 1 and b.stride(0) == 0:
        return {common_right: rows}
    if len(a) > 1 and a.stride(0) == 0:
        return {common_left: columns + result}
    return {one_by_one: rows + result, one_by_one_turned: columns + 2 * result}
