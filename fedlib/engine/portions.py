"""Rows gathered from a large table, worked on in portions that stay in the processor's cache.

An evaluation reads all data. Done at once, every operation of it writes arrays of many megabytes,
which the next one reads back from memory. What treats row by row is therefore done portion by
portion; what goes over all rows (a mean) then sees the rows' results, one after another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, Node
from torch.fx.node import map_arg

aten = torch.ops.aten

LARGE = 2**24  # bytes from which on data is read in portions: no cache close to a core holds them
PORTION = 2**21  # bytes of one portion
MOST = 64  # portions of rows: each is one more copy of the recorded operations


def portions(size: int, most: int) -> int:
    """Into how many portions so many bytes are cut, if a CPU reads them."""
    return min(most, -(-size // PORTION)) if size >= LARGE else 1


@dataclass
class _Region:
    """What is done row by row: values with an axis of rows, a multiple of `units` long."""

    units: int
    axes: dict[Node, int]
    cuts: dict[tuple[Node, Node], int] = field(default_factory=dict)  # (user, value): its axis
    needed: list[Node] = field(default_factory=list)  # of these somebody wants all rows
    end: Node | None = None  # the first who does

    def has(self, x: Node, axis: int, size: int) -> bool:
        """Whether `x` has its rows along `axis`, or can be cut along it."""
        if x in self.axes:
            return self.axes[x] == axis
        return 0 <= axis < len(_shape(x)) and _shape(x)[axis] == size and size % self.units == 0

    def cut(self, user: Node, x: Node, axis: int) -> None:
        """Remember that this user takes `x` in portions, if it is not of the region."""
        if x not in self.axes:
            self.cuts[user, x] = axis


def in_portions(graph: Graph, untouched: set[Node]) -> bool:
    """Gather rows of large tables in portions; values in `untouched` are left alone.

    Returns whether there were any.
    """
    found, seen = False, set[Node]()
    while large := [n for n in graph.nodes if n not in seen and _gathered(n) >= LARGE]:
        seen.update(large)
        for index in large:
            ways = _units(index) if index.users else []  # none: it went with what gave it
            found = any(_cut(graph, index, units, untouched) for units in ways) or found
    return found


def _cut(graph: Graph, index: Node, units: int, untouched: set[Node]) -> bool:
    """Gather these rows in portions of so many equal parts, if that gains anything."""
    region = _grow(graph, index, units, untouched)
    needed = sum(n.meta["val"].nbytes for n in region.needed)
    gains = region.end is not None and 2 * needed < _gathered(index)
    if gains and portions(_gathered(index), most=MOST) > 1:
        _write(graph, index, region)
        return True
    return False


def _shape(node: Node) -> tuple[int, ...]:
    return tuple(node.meta["val"].shape)


def _gathered(index: Node) -> int:
    """Bytes of all that is gathered by these row numbers."""
    return sum(u.meta["val"].nbytes for u in index.users if _gathers(u, index))


def _gathers(node: Node, index: Node) -> bool:
    return node.target is aten.index_select.default and node.args[1:] == (0, index)


def _units(index: Node) -> list[int]:
    """How many equal parts the rows may have: as many as they are, or as an axis of theirs has."""
    source: Any = index.args[0] if index.target is aten.reshape.default else index
    rows = [u for u in index.users if _gathers(u, index)]
    split = [v for u in rows for v in u.users if v.target in RESHAPES]
    firsts = (next((k for k in _shape(x) if k > 1), 1) for x in (index, source, *split))
    return sorted({*firsts} - {1}, reverse=True)


def _grow(graph: Graph, index: Node, units: int, untouched: set[Node]) -> _Region:
    """All that can be done portion by portion, from the gathering on."""
    region, late = _Region(units, {index: 0}), set[Node]()
    for node in graph.nodes:
        inputs = node.all_input_nodes
        inside = [x for x in inputs if x in region.axes and x is not index]
        axis = None
        if inside or _gathers(node, index):
            if late.isdisjoint(inputs) and untouched.isdisjoint([node, *inside]):
                axis = _axis(region, node) if inside else 0
            if axis is None:
                region.needed += [x for x in inside if x not in region.needed]
                region.end = region.end or node
        if axis is not None:
            region.axes[node] = axis
        elif region.end:
            late.add(node)
    return region


def _axis(region: _Region, node: Node) -> int | None:
    """Where the result has its rows, if each of them follows from the same row of the arguments."""
    if not isinstance(node.meta.get("val"), Tensor):
        return None
    if node.target in RESHAPES:
        return _reshaped(region, node)
    if node.target in PRODUCTS:
        return _multiplied(region, node)
    if node.target in ALONG:
        return _along(region, node)
    tags = getattr(node.target, "tags", ())
    plain = torch.Tag.pointwise in tags and torch.Tag.nondeterministic_seeded not in tags
    if plain or node.target in (aten._to_copy.default, aten.expand.default):
        return _pointwise(region, node)
    if node.target in (aten.permute.default, aten.transpose.int):
        return _permuted(region, node)
    return None


def _permuted(region: _Region, node: Node) -> int:
    return order(node).index(region.axes[node.all_input_nodes[0]])


def order(node: Node) -> list[int]:
    """Which axis of its argument each axis of a value is, if only their order changes; else []."""
    arguments: Any = node.args
    if node.target is aten.permute.default:
        return [d % len(arguments[1]) for d in arguments[1]]
    if node.target is not aten.transpose.int:
        return []
    source, a, b = arguments
    axes = list(range(len(_shape(source))))
    axes[a], axes[b] = axes[b], axes[a]
    return axes


RESHAPES = frozenset(
    {*(aten.reshape.default, aten.view.default, aten._unsafe_view.default)}
    | {aten.unsqueeze.default, aten.squeeze.dim}
)


def _reshaped(region: _Region, node: Node) -> int | None:
    """The axis before which the same number of entries lies."""
    source: Any = node.args[0]
    old, new = _shape(source), _shape(node)
    before = prod(old[: region.axes[source]])
    found = (j for j in range(len(new)) if prod(new[:j]) == before and new[j] > 1)
    j = next(found, None)
    return j if j is not None and new[j] % region.units == 0 else None


#: For each product: axes of rows of its two factors (None: has none) and of the result.
PRODUCTS: dict[Any, tuple[tuple[int | None, int | None, int], ...]] = {
    aten.mm.default: ((0, None, 0), (None, 1, 1)),
    aten.addmm.default: ((0, None, 0),),
    aten.mv.default: ((0, None, 0),),
    aten.bmm.default: ((0, 0, 0), (1, None, 1), (None, 2, 2)),
}


def _multiplied(region: _Region, node: Node) -> int | None:
    factors: Any = node.args
    *bias, a, b = factors
    if any(x in region.axes or len(_shape(x)) > 1 for x in bias):
        return None
    for first, second, result in PRODUCTS[node.target]:
        pairs = [(x, axis) for x, axis in ((a, first), (b, second)) if axis is not None]
        others = {a, b} - {x for x, _ in pairs}
        size = _shape(node)[result]
        if others.isdisjoint(region.axes) and all(region.has(x, d, size) for x, d in pairs):
            for x, axis in pairs:
                region.cut(node, x, axis)
            return result
    return None


#: Operations along the axes that their second argument names, all others apart.
ALONG = frozenset(
    {
        aten.sum.dim_IntList,
        aten.mean.dim,
        aten.amax.default,
        aten.logsumexp.default,
        aten.argmax.default,
        aten._softmax.default,
        aten._log_softmax.default,
        aten.gather.default,
        aten.select.int,
    }
)


def _along(region: _Region, node: Node) -> int | None:
    arguments: Any = node.args
    source, *named = arguments
    if source not in region.axes or not named or named[0] in (None, []):
        return None
    axis, n = region.axes[source], len(_shape(source))
    dims = {d % n for d in (named[0] if isinstance(named[0], (list, tuple)) else named[:1])}
    if axis in dims:
        return None
    if node.target is aten.gather.default:
        if not region.has(named[1], axis, _shape(source)[axis]):
            return None
        region.cut(node, named[1], axis)
    lost = n - len(_shape(node))
    return axis - (sum(d < axis for d in dims) if lost else 0)


def _pointwise(region: _Region, node: Node) -> int | None:
    n = len(_shape(node))
    axes = {region.axes[x] + n - len(_shape(x)) for x in node.all_input_nodes if x in region.axes}
    if len(axes) != 1:
        return None
    (axis,) = axes
    for x in node.all_input_nodes:
        own = axis - n + len(_shape(x))
        alike = own < 0 or (x not in region.axes and _shape(x)[own] == 1)
        if not alike:
            if _shape(x)[own] != _shape(node)[axis] or not region.has(x, own, _shape(x)[own]):
                return None
            region.cut(node, x, own)
    return axis


def _write(graph: Graph, index: Node, region: _Region) -> None:
    """The region's operations, once a portion, before the first who needs all rows."""
    assert region.end is not None
    size = -(-region.units // portions(_gathered(index), most=MOST))
    parts: dict[Node, list[Node]] = {node: [] for node in region.needed}
    with graph.inserting_before(region.end):
        for start in range(0, region.units, size):
            here = _portion(graph, index, region, start, min(start + size, region.units))
            for node, own in parts.items():
                own.append(here[node])
        for node, own in parts.items():
            whole = graph.call_function(aten.cat.default, (own, region.axes[node]))
            whole.meta.update(node.meta)
            node.replace_all_uses_with(whole, delete_user_cb=lambda u: u not in region.axes)
    graph.eliminate_dead_code()


def _portion(graph: Graph, index: Node, region: _Region, start: int, end: int) -> dict[Node, Node]:
    """Copies of the region's operations for the units from `start` to `end`."""
    here: dict[Node, Node] = {}

    def cut(x: Node, axis: int) -> Node:
        each = _shape(x)[axis] // region.units
        return known(graph.call_function(aten.slice.Tensor, (x, axis, start * each, end * each)))

    here[index] = cut(index, 0)
    for node, axis in list(region.axes.items())[1:]:
        given = {
            x: here[x] if x in here else cut(x, region.cuts[node, x])
            for x in node.all_input_nodes
            if x in here or (node, x) in region.cuts
        }
        copy = graph.node_copy(node, lambda x: given.get(x, x))  # noqa: B023 - used at once
        if node.target in RESHAPES or node.target is aten.expand.default:
            shape = list(_shape(node))
            shape[axis] = shape[axis] // region.units * (end - start)
            copy.target = node.target if node.target not in RESHAPES else aten.reshape.default
            copy.args, copy.kwargs = (copy.args[0], shape), {}
        here[node] = known(copy)
    return here


def known(node: Node) -> Node:
    """The node, which knows the shape of its value."""
    target: Any = node.target
    args, kwargs = map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
    node.meta["val"] = target(*args, **kwargs)
    return node
