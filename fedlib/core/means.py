"""The mean over clients of what is linear in products of their rows, as one product.

A client's step is `w - lr E^T X` with its own rows X. Where the server uses nothing but the mean of
n large ones, these need not be written down one by one: all clients' rows make one product.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node
from torch.fx.node import map_arg

aten = torch.ops.aten

LARGE = 4_000_000  # bytes of all clients' values, from which on writing them takes noticeable time


def merge_means(graph: Graph, untouched: set[Node]) -> None:
    """Take means over the first axis of large matrices of the factors in place of the products."""
    for node in graph.nodes:
        arguments: Any = node.args
        if node.target is not aten.mean.dim or arguments[1:] != ([0],) or node.kwargs:
            continue
        each = arguments[0].meta["val"]
        if each.dim() == 2 and each.nbytes >= LARGE and each.device.type == "cpu":
            with graph.inserting_before(node):
                merged = _Means(graph, untouched)
                mean = merged.of(arguments[0])
            if merged.products:
                node.replace_all_uses_with(mean)
            graph.eliminate_dead_code()


class _Means:
    """Means over the first axis, of values that nobody else uses."""

    def __init__(self, graph: Graph, untouched: set[Node]) -> None:
        self.graph, self.untouched, self.products = graph, untouched, 0

    def of(self, x: Node) -> Node:
        """The mean of `x` over its first axis, taken as early as that can be."""
        rule = RULES.get(x.target) if len(x.users) == 1 and x not in self.untouched else None
        mean = None if rule is None else rule(self, x)
        return self.add(aten.mean.dim, x, [0]) if mean is None else mean

    def add(self, target: Any, *args: Any, **kwargs: Any) -> Node:
        """One more operation."""
        node = self.graph.call_function(target, args, kwargs)
        values, named = map_arg((args, kwargs), lambda n: n.meta["val"])
        node.meta["val"] = target(*values, **named)
        return node


def _shape(x: Any) -> tuple[int, ...]:
    value = x.meta["val"] if isinstance(x, Node) else None
    return tuple(value.shape) if isinstance(value, Tensor) else ()


def _sum(means: _Means, x: Node) -> Node | None:
    """Of a sum or difference, whose terms may be the same for all."""
    arguments: Any = x.args
    if any(len(_shape(t)) == len(_shape(x)) and _shape(t)[0] == 1 for t in arguments):
        return None
    terms = [means.of(t) if len(_shape(t)) == len(_shape(x)) else t for t in arguments]
    return means.add(x.target, *terms, **x.kwargs)


def _scaled(means: _Means, x: Node) -> Node | None:
    """Of multiples by one number."""
    arguments: Any = x.args
    matrix, number = arguments
    if _shape(number) or len(_shape(matrix)) != len(_shape(x)):
        return None
    return means.add(x.target, means.of(matrix), number)


def _reshaped(means: _Means, x: Node) -> Node | None:
    source: Any = x.args[0]
    if _shape(source)[:1] != _shape(x)[:1]:
        return None
    return means.add(aten.reshape.default, means.of(source), list(_shape(x)[1:]))


def _permuted(means: _Means, x: Node) -> Node | None:
    arguments: Any = x.args
    source, *named = arguments
    order = list(range(len(_shape(x))))
    if x.target is aten.permute.default:
        order = [order[d] for d in named[0]]
    else:
        a, b = named
        order[a], order[b] = order[b], order[a]
    if order[0] != 0:
        return None
    return means.add(aten.permute.default, means.of(source), [d - 1 for d in order[1:]])


def _joined(means: _Means, x: Node) -> Node | None:
    """Of parts side by side."""
    arguments: Any = x.args
    parts, axis = arguments if len(arguments) == 2 else (*arguments, 0)
    if axis % len(_shape(x)) == 0:
        return None
    return means.add(aten.cat.default, [means.of(p) for p in parts], axis % len(_shape(x)) - 1)


def _multiplied(means: _Means, x: Node) -> Node:
    """Of products `[n, p, k] @ [n, k, q]`: the product `[p, n k] @ [n k, q]`, divided by n."""
    factors: Any = x.args
    a, b = factors
    (n, p, k), q = _shape(a), _shape(x)[2]
    means.products += 1
    with means.graph.inserting_before(x):  # where its factors are still at hand
        wide = means.add(aten.permute.default, a, [1, 0, 2])
        wide = means.add(aten.reshape.default, wide, [p, n * k])
        tall = means.add(aten.reshape.default, b, [n * k, q])
        return means.add(aten.div.Tensor, means.add(aten.mm.default, wide, tall), n)


RULES: dict[Any, Any] = {
    aten.add.Tensor: _sum,
    aten.sub.Tensor: _sum,
    aten.mul.Tensor: _scaled,
    aten.div.Tensor: _scaled,
    aten.reshape.default: _reshaped,
    aten.view.default: _reshaped,
    aten.permute.default: _permuted,
    aten.transpose.int: _permuted,
    aten.cat.default: _joined,
    aten.bmm.default: _multiplied,
}
