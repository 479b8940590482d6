"""Passes: each shortens a captured graph in place; values change by rounding only.

The graphs are pure: capture leaves no operation that writes to a tensor. What a pass is worth is
the time of compiled rounds without it over the time with it, by `benchmarks`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Graph, Node

aten = torch.ops.aten
Pass = Callable[[Graph], None]

#: Operations that relabel the entries of a tensor, or drop axes of length one.
VIEWS = frozenset(
    {
        *(aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten.alias.default),
        *(aten.expand.default, aten.select.int, aten.slice.Tensor, aten.detach.default),
        *(aten.squeeze.dim, aten.squeeze.dims, aten.unsqueeze.default, aten.permute.default),
        *(aten.transpose.int, aten.t.default),
    }
)
RESHAPES = frozenset({aten.view.default, aten._unsafe_view.default, aten.reshape.default})
#: Where a convolution and its derivative have their pictures.
CONVOLUTIONS: dict[Any, int] = {aten.convolution.default: 0, aten.convolution_backward.default: 1}
GAIN = 2  # copied entries that are saved, at least, for each entry that is put in another order


def drop_dead_code(graph: Graph) -> None:
    """Drop operations whose results nobody reads."""
    graph.eliminate_dead_code()


def collapse_views(graph: Graph) -> None:
    """Take a view of contiguous entries from the first of its chain, as one reshape.

    Worth: see `merge_equal_nodes`, which finds more equal operations behind one view than behind
    several.
    """
    for node in graph.nodes:
        if node.target in RESHAPES:
            node.target = aten.reshape.default  # of what may have another layout after a pass
        source: Any = node.args[0] if node.target in VIEWS else None
        if not isinstance(source, Node):
            continue
        now, before = node.meta["val"], source.meta["val"]
        if now.numel() != before.numel() or not (now.is_contiguous() and before.is_contiguous()):
            continue
        if source.target is aten.reshape.default:
            source = source.args[0]
        if source.meta["val"].shape == now.shape:
            node.replace_all_uses_with(source)
        else:
            node.target, node.args, node.kwargs = (
                aten.reshape.default,
                (source, list(now.shape)),
                {},
            )
    graph.eliminate_dead_code()


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


def share_factors(graph: Graph) -> None:
    """Multiply once with a factor that is the same in all runs.

    Methods that run side by side on the same rows give a product with those rows for each method,
    and `vmap` copies the rows for each. Here the methods' own factors are laid beside each other.
    """
    for node in [n for n in graph.nodes if n.target is aten.bmm.default]:
        for side in (0, 1):
            factor: Any = node.args[side]
            source, times = _repeated(factor)
            moved = node.args[1 - side].meta["val"].numel() + node.meta["val"].numel()
            if times > 1 and factor.meta["val"].numel() >= GAIN * moved:
                with graph.inserting_before(node):
                    node.replace_all_uses_with(_multiply_once(graph, node, side, source, times))
                break
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


def _multiply_once(graph: Graph, node: Node, side: int, source: Node, times: int) -> Node:
    """The same product `[times B, m, n]`, by one of B with all other factors side by side."""

    def new(target: Any, *args: Any) -> Node:
        made = graph.call_function(target, args)
        values = torch.fx.node.map_arg(args, lambda n: n.meta["val"])
        made.meta["val"] = target(*values)
        return made

    factors: Any = node.args
    factor, other = (factors[i].meta["val"] for i in (side, 1 - side))
    _, m, n = node.meta["val"].shape
    few = len(factor) // times
    one = new(aten.reshape.default, new(aten.select.int, source, 0, 0), [few, *factor.shape[1:]])
    each = new(aten.reshape.default, node.args[1 - side], [times, few, *other.shape[1:]])
    if side == 1:  # [times, B, m, k] with [B, k, n]: below each other
        each = new(aten.permute.default, each, [1, 0, 2, 3])
        each = new(aten.reshape.default, each, [few, times * m, other.shape[2]])
        product = new(aten.reshape.default, new(aten.bmm.default, each, one), [few, times, m, n])
        product = new(aten.permute.default, product, [1, 0, 2, 3])
    else:  # [B, m, k] with [times, B, k, n]: beside each other, column after column
        each = new(aten.permute.default, each, [1, 0, 3, 2])
        each = new(aten.reshape.default, each, [few, times * n, other.shape[1]])
        each = new(aten.permute.default, each, [0, 2, 1])
        product = new(aten.reshape.default, new(aten.bmm.default, one, each), [few, m, times, n])
        product = new(aten.permute.default, product, [2, 0, 1, 3])
    return new(aten.reshape.default, product, [times * few, m, n])


def turn_tall_products(graph: Graph) -> None:
    """Give many small products their longer side as columns, where MKL takes half of the time.

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


def channels_last(graph: Graph) -> None:
    """Give pictures that are convolved their channels innermost, as the CPU's kernels read them."""
    pictures: dict[Any, Node] = {}
    for node in [n for n in graph.nodes if n.target in CONVOLUTIONS]:
        place = CONVOLUTIONS[node.target]
        source: Any = node.args[place]
        if source.meta["val"].dim() == 4:
            if source not in pictures:
                with graph.inserting_before(node):
                    order: dict[str, Any] = {"memory_format": torch.channels_last}
                    pictures[source] = graph.call_function(aten.clone.default, (source,), order)
            node.update_arg(place, pictures[source])


DEFAULT: tuple[Pass, ...] = (drop_dead_code, collapse_views, merge_equal_nodes, share_factors)
