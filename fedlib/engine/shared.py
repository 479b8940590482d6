"""Products of many runs with factors that are the same in all of them.

Methods that run side by side on the same rows give a product with those rows for each method, and
`vmap` copies the rows for each. Here the methods' own factors are laid beside each other, and one
product with the rows gives all. It may round differently.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import torch
from torch.fx import Graph, Node

from fedlib.engine.portions import RESHAPES, known

aten = torch.ops.aten

GAIN = 2  # copied entries that are saved, at least, for each entry that is put in another order


def share_factors(graph: Graph, untouched: Set[Node]) -> None:
    """Multiply once with factors that are repeated; values in `untouched` are left alone."""
    before = len(graph.nodes)
    for node in [n for n in graph.nodes if n.target is aten.bmm.default]:
        for side, other in ((0, 1), (1, 0)):
            factor: Any = node.args[side]
            source, times = _repeated(factor)
            moved = node.args[other].meta["val"].numel() + node.meta["val"].numel()
            pays = times > 1 and factor.meta["val"].numel() >= GAIN * moved
            if pays and untouched.isdisjoint([node, source, *node.all_input_nodes]):
                with graph.inserting_before(node):
                    node.replace_all_uses_with(_once(graph, node, side, source, times))
                break
    if len(graph.nodes) > before:
        graph.eliminate_dead_code()


def _repeated(factor: Node) -> tuple[Node, int]:
    """The value before it was copied and reshaped, and how often its first axis repeats it."""
    source: Any = factor
    while source.target in RESHAPES or source.target is aten.clone.default:
        source = source.args[0]
    if source.target is aten.expand.default:
        value = source.meta["val"]
        times = int(value.shape[0])
        if value.dim() > 2 and value.stride(0) == 0 and factor.meta["val"].shape[0] % times == 0:
            return source, times
    return source, 1


def _once(graph: Graph, node: Node, side: int, source: Node, times: int) -> Node:
    """The same product `[times B, m, n]`, by one of B with all other factors side by side."""

    def new(target: Any, *args: Any) -> Node:
        return known(graph.call_function(target, args))

    factor, other = (node.args[i].meta["val"] for i in (side, 1 - side))  # type: ignore[union-attr]
    _, m, n = node.meta["val"].shape
    few = len(factor) // times
    one = new(aten.select.int, source, 0, 0)
    one = new(aten.reshape.default, one, [few, *factor.shape[1:]])
    each = new(aten.reshape.default, node.args[1 - side], [times, few, *other.shape[1:]])
    if side == 1:  # [times, B, m, k] with [B, k, n]: below each other
        each = new(aten.permute.default, each, [1, 0, 2, 3])
        each = new(aten.reshape.default, each, [few, times * m, other.shape[2]])
        found = new(aten.reshape.default, new(aten.bmm.default, each, one), [few, times, m, n])
        found = new(aten.permute.default, found, [1, 0, 2, 3])
    else:  # [B, m, k] with [times, B, k, n]: beside each other, column after column
        each = new(aten.permute.default, each, [1, 0, 3, 2])
        each = new(aten.reshape.default, each, [few, times * n, other.shape[1]])
        each = new(aten.permute.default, each, [0, 2, 1])
        found = new(aten.reshape.default, new(aten.bmm.default, one, each), [few, m, times, n])
        found = new(aten.permute.default, found, [2, 0, 1, 3])
    return new(aten.reshape.default, found, [times * few, m, n])
