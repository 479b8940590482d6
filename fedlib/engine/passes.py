"""Passes: each shortens a captured graph in place; values change by rounding only.

The graphs are pure: capture leaves no operation that writes to a tensor. What a pass is worth is
the time of compiled rounds without it over the time with it, by `benchmarks`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import torch
from torch.fx import Graph, Node

aten = torch.ops.aten
Pass = Callable[[Graph], None]


def merge_equal_nodes(graph: Graph) -> None:
    """Do an operation once if an earlier one has the same arguments."""
    first: dict[str, Node] = {}
    for node in graph.nodes:
        tags = getattr(node.target, "tags", (torch.Tag.nondeterministic_seeded,))
        if torch.Tag.nondeterministic_seeded not in tags or node.target is operator.getitem:
            key = repr((node.target, node.args, sorted(node.kwargs.items())))
            if first.setdefault(key, node) is not node:
                node.replace_all_uses_with(first[key])
    graph.eliminate_dead_code()


def turn_tall_products(graph: Graph) -> None:
    """Give many small products their longer side as columns, where MKL takes less time.

    For graphs that are compiled alone: there any layout is free, and so is turning back.
    """
    turned = [0, 2, 1]
    for node in [n for n in graph.nodes if n.target is aten.bmm.default]:
        _, rows, columns = node.meta["val"].shape
        if columns < rows:
            with graph.inserting_before(node):
                a, b = (graph.call_function(aten.permute.default, (x, turned)) for x in node.args)
                product = graph.call_function(aten.bmm.default, (b, a))
            node.target, node.args = aten.permute.default, (product, turned)
