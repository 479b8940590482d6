"""Sums over clients of products, as one product.

A round often ends in a mean over clients of `w - lr g_j`, each `g_j` a product `A_j^T X_j` that is
as large as the model. All clients' rows below each other give the sum of these products at once,
and nothing of the model's size is written for each client. So do sums that weigh the clients, with
the rows of `A_j` times client j's weight. It rounds differently.
"""

from __future__ import annotations

from collections.abc import Set
from math import prod
from typing import Any, NamedTuple

import torch
from torch.fx import Graph, Node

from fedlib.engine.portions import RESHAPES, known

aten = torch.ops.aten

LEAST = 2**16  # entries of all clients' products from which on it is worth its while
SUMS = frozenset({aten.mean.dim, aten.sum.dim_IntList})
PRODUCTS = frozenset({aten.bmm.default, aten.mm.default})  # with one row: a weighted sum
ROOTS = SUMS | PRODUCTS
#: Of two arguments, and the sign of the second.
ADDITIONS = {aten.add.Tensor: 1.0, aten.sub.Tensor: -1.0}

LINEAR = RESHAPES | {aten.bmm.default, aten.cat.default, aten.mul.Tensor, *ADDITIONS}


class _Over(NamedTuple):
    """Over which axis: values are read as `[outer, n, inner]`; `weights` has `outer n` entries."""

    outer: int
    n: int
    weights: Node | None = None


#: A linear combination: values `[outer, inner]` and their coefficients.
Terms = dict[Node, float]


def sum_products(graph: Graph, untouched: Set[Node]) -> None:
    """Take sums over one axis of linear combinations of products before the products are made.

    Values in `untouched` are left alone.
    """
    before = len(graph.nodes)
    for root in [n for n in graph.nodes if n.target in ROOTS and n not in untouched]:
        if (found := _over(root)) is None:
            continue
        source, over = found
        if _products(source) < LEAST:
            continue
        with graph.inserting_before(root):
            sums = _Sums(graph, untouched)
            terms = sums.of(source, over)
            if sums.products >= LEAST:
                scale = 1 / over.n if root.target is aten.mean.dim else 1.0
                combined = sums.combined(_add({}, terms, scale))
                root.replace_all_uses_with(sums.shaped(combined, _shape(root)))
    if len(graph.nodes) > before:
        graph.eliminate_dead_code()


def _shape(node: Node) -> tuple[int, ...]:
    return tuple(node.meta["val"].shape)


def _over(root: Node) -> tuple[Node, _Over] | None:
    """What is summed, and over what, if it is one axis and nothing else is asked for."""
    arguments: Any = root.args
    if root.target in PRODUCTS:
        weights, source = arguments
        *outer, m, n = _shape(weights)
        if m != 1 or n == 1 or len(source.users) > 1 or source.op != "call_function":
            return None
        return source, _Over(prod(outer), n, weights)
    if len(arguments) not in (2, 3) or root.kwargs or len(arguments[1] or ()) != 1:
        return None
    source, (axis,), *_ = arguments
    if (kind := _kind(source)) is None or not kind.is_floating_point:
        return None
    shape = _shape(source)
    axis %= len(shape)
    return source, _Over(prod(shape[:axis]), shape[axis])


def _products(x: Node) -> int:
    """Entries of all products that `x` may be a linear combination of."""
    if len(x.users) > 1 or x.target not in LINEAR:
        return 0
    if x.target is aten.bmm.default:
        return int(x.meta["val"].numel())
    return sum(map(_products, x.all_input_nodes))


def _kind(node: Node) -> torch.dtype | None:
    """Its type; None for what is no tensor, as the parts of one."""
    return getattr(node.meta.get("val"), "dtype", None)


def _whole(side: Any, x: Node) -> bool:
    return isinstance(side, Node) and _shape(side) == _shape(x)


def _add(terms: Terms, more: Terms, factor: float = 1.0) -> Terms:
    """A linear combination and a multiple of another."""
    for x, own in more.items():
        terms[x] = terms.get(x, 0.0) + factor * own
    return terms


class _Sums:
    """Sums over the middle of values that are read as `[outer, n, inner]`, in a row-major order."""

    def __init__(self, graph: Graph, untouched: Set[Node]) -> None:
        self.graph, self.untouched = graph, untouched
        self.products = 0  # entries that are no longer made

    def new(self, target: Any, *args: Any, **kwargs: Any) -> Node:
        """An operation, done as soon as its arguments are there: gathered rows are given up then.

        A value that is written to is read where the sum was.
        """
        made = known(self.graph.call_function(target, args, kwargs))
        if self.untouched.isdisjoint(made.all_input_nodes):
            last = max(made.all_input_nodes)
            if last.op == "call_function":
                last.append(made)
        return made

    def shaped(self, x: Node, shape: tuple[int, ...]) -> Node:
        while x.target is aten.reshape.default and _shape(x) != shape:
            (x, _) = x.args  # type: ignore[assignment]
        return x if _shape(x) == shape else self.new(aten.reshape.default, x, list(shape))

    def combined(self, terms: Terms) -> Node:
        """The value of a linear combination."""
        whole: Node | None = None
        for x, factor in sorted(terms.items(), key=lambda term: term[1] != 1):
            if whole is not None:
                whole = self.new(aten.add.Tensor, whole, x, alpha=factor)
            else:
                whole = x if factor == 1 else self.new(aten.mul.Tensor, x, factor)
        assert whole is not None
        return whole

    def of(self, x: Node, over: _Over) -> Terms:
        """The sum of `x`, as a linear combination of values `[outer, inner]`."""
        found = None
        if len(x.users) == 1 and self.untouched.isdisjoint([x, *x.all_input_nodes]):
            found = self._through(x, over)
        if found is not None:
            return found
        outer, n, weights = over
        inner = x.meta["val"].numel() // (outer * n)
        apart = self.shaped(x, (outer, n, inner))
        if weights is None:
            return {self.new(aten.sum.dim_IntList, apart, [1]): 1.0}
        row = self.shaped(weights, (outer, 1, n))
        return {self.shaped(self.multiplied(row, apart), (outer, inner)): 1.0}

    def multiplied(self, left: Node, right: Node) -> Node:
        """Products `[outer, m, k]` by `[outer, k, p]`."""
        outer, m, k = _shape(left)
        if outer > 1:
            return self.new(aten.bmm.default, left, right)
        left, right = self.shaped(left, (m, k)), self.shaped(right, (k, _shape(right)[2]))
        return self.new(aten.mm.default, left, right)

    def _through(self, x: Node, over: _Over) -> Terms | None:
        """The same by the arguments of `x`, if it is linear in them; None if not."""
        arguments: Any = x.args
        if {_kind(k) for k in x.all_input_nodes} != {_kind(x)}:
            return None
        if x.target in RESHAPES:
            return self.of(arguments[0], over)
        if x.target is aten.bmm.default:
            a, b = arguments
            return self._product(a, b, over)
        axis = next(
            (i for i, k in enumerate(_shape(x)) if (prod(_shape(x)[:i]), k) == over[:2]), None
        )
        if axis is None:
            return None
        if x.target is aten.cat.default:
            parts, dim = (*arguments, 0)[:2]
            return self._joined(parts, dim, x, axis, over)
        if x.target in ADDITIONS and not x.kwargs:
            return self._added(x, axis, over)
        if x.target is aten.mul.Tensor:
            return self._scaled(x, axis, over)
        return None

    def _product(self, a: Node, b: Node, over: _Over) -> Terms | None:
        """Products `[outer n, m, k]` by `[outer n, k, p]`: all rows of a sum below each other."""
        outer, n, weights = over
        (batch, m, k), p = _shape(a), _shape(b)[2]
        if batch != outer * n:
            return None
        self.products += batch * m * p
        if weights is not None:
            a = self.new(aten.mul.Tensor, a, self.shaped(weights, (batch, 1, 1)))
        rows = self.shaped(self.new(aten.transpose.int, a, 1, 2), (outer, n * k, m))
        left = self.new(aten.transpose.int, rows, 1, 2)
        right = self.shaped(b, (outer, n * k, p))
        both = self.multiplied(left, right)
        return {self.shaped(both, (outer, m * p)): 1.0}

    def _joined(self, parts: list[Node], dim: int, x: Node, axis: int, over: _Over) -> Terms | None:
        """Parts one after another, along the axis of the sum or a later one."""
        dim %= len(_shape(x))
        if dim == axis:
            terms, start = Terms(), 0
            for part in parts:
                end = start + _shape(part)[axis]
                _add(terms, self.of(part, self.part(over, start, end)))
                start = end
            return terms
        if dim < axis:
            return None
        sums = []
        for part in parts:
            left = _shape(part)[:axis] + _shape(part)[axis + 1 :]
            sums.append(self.shaped(self.combined(self.of(part, over)), left))
        whole = self.new(aten.cat.default, sums, dim - 1)
        return {self.shaped(whole, (over.outer, whole.meta["val"].numel() // over.outer)): 1.0}

    def part(self, over: _Over, start: int, end: int) -> _Over:
        """A part of the axis."""
        outer, n, weights = over
        if weights is not None:
            whole = self.shaped(weights, (outer, n))
            weights = self.new(aten.slice.Tensor, whole, 1, start, end)
        return _Over(outer, end - start, weights)

    def _added(self, x: Node, axis: int, over: _Over) -> Terms | None:
        """A sum or difference of two, of which one may be common to all along the axis."""
        terms = Terms()
        left = _shape(x)[:axis] + _shape(x)[axis + 1 :]
        target: Any = x.target
        sides: Any = x.args
        common = [self._common(side, x, axis) for side in sides]
        if not all(c or _whole(side, x) for c, side in zip(common, sides, strict=True)):
            return None
        for side, one, sign in zip(sides, common, (1.0, ADDITIONS[target]), strict=True):
            if one is None:
                own = self.of(side, over)
            else:
                spread = one if _shape(one) == left else self.new(aten.expand.default, one, [*left])
                own = self._times(self.shaped(spread, (over.outer, prod(left) // over.outer)), over)
            _add(terms, own, sign)
        return terms

    def _times(self, common: Node, over: _Over) -> Terms:
        """What is the same all along the axis, summed."""
        if over.weights is None:
            return {common: float(over.n)}
        weights = self.shaped(over.weights, (over.outer, over.n))
        total = self.new(aten.sum.dim_IntList, weights, [1], True)
        return {self.new(aten.mul.Tensor, common, total): 1.0}

    def _scaled(self, x: Node, axis: int, over: _Over) -> Terms | None:
        """A product with a number, or with what is common to all along the axis."""
        arguments: Any = x.args
        value, factor = arguments if _whole(arguments[0], x) else arguments[::-1]
        if not _whole(value, x):
            return None
        if isinstance(factor, (int, float)):
            return _add({}, self.of(value, over), factor)
        if (common := self._common(factor, x, axis)) is None:
            return None
        left = _shape(x)[:axis] + _shape(x)[axis + 1 :]
        total = self.shaped(self.combined(self.of(value, over)), left)
        scaled = self.new(aten.mul.Tensor, total, common)
        return {self.shaped(scaled, (over.outer, prod(left) // over.outer)): 1.0}

    def _common(self, side: Any, x: Node, axis: int) -> Node | None:
        """An argument of `x` that is the same all along an axis, without that axis."""
        if not isinstance(side, Node):
            return None
        own = axis - len(_shape(x)) + len(_shape(side))
        if own < 0:
            return side
        if _shape(side)[own] != 1:
            return None
        return self.shaped(side, _shape(side)[:own] + _shape(side)[own + 1 :])
