"""Shortening a recorded list of tensor operations; results change by rounding at most."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node

from fedlib.engine.portions import LARGE, RESHAPES, in_portions, known, order
from fedlib.engine.shared import share_factors
from fedlib.engine.sums import sum_products

aten = torch.ops.aten

#: Operations that give some of the entries along one axis, all others whole.
PARTS = frozenset({aten.slice.Tensor, aten.select.int})
#: Operations that change nothing if the shape stays what it was.
RESHAPING = frozenset({"view", "_unsafe_view", "reshape", "expand", "squeeze", "unsqueeze"})
#: Operations that only relabel entries if a dense tensor stays dense and loses none of them.
RELABELING = RESHAPING | {"select", "slice", "permute", "transpose", "t", "alias", "detach"}
#: The in-place forms that vmap uses on values which nobody else sees.
OUT_OF_PLACE = {
    aten.squeeze_.default: aten.squeeze.default,
    aten.squeeze_.dim: aten.squeeze.dim,
    aten.squeeze_.dims: aten.squeeze.dims,
}
WIDE = 16  # entries of a row from which on rows are copied whole

#: Operations that can write into their first argument what they would write into a copy of it.
IN_PLACE = {aten.scatter.src: aten.scatter_.src}


def simplify(module: GraphModule, *, on_cpu: bool = True) -> None:
    """Drop what `vmap` leaves behind, and on a CPU read large tables in portions.

    Chains of views become one, rows are gathered by `index_select` (which copies whole rows), equal
    operations are done once a call, and what a ReLU shuts out becomes 0, whatever its sign was.
    Sums over clients of products become one product, and large tables are read in portions; both
    may round differently. Values in memory that some operation writes to are left alone.
    """
    graph = module.graph
    for node in graph.nodes:
        if node.target in OUT_OF_PLACE and len(node.args[0].users) == 1:
            node.target = OUT_OF_PLACE[node.target]
    graph.eliminate_dead_code()
    written = _written(graph)
    for node in [n for n in graph.nodes if n.target is aten.index.Tensor and n not in written]:
        _one_table(graph, node)
    tensors = [n for n in graph.nodes if n not in written and isinstance(_value(n), Tensor)]
    cut = [_gather_part(graph, node) for node in tensors]
    for node in tensors:
        if node.target is aten.index.Tensor:
            _select_rows(graph, node)
        else:
            _shorten_view(node)
            _turn_back(node)
            _at_once(node, written)
    graph.eliminate_dead_code()
    _merge_equals(graph, written)
    graph.eliminate_dead_code()
    portions = (on_cpu and in_portions(graph, written)) or any(cut)
    sum_products(graph, written)
    share_factors(graph, written)
    if portions:
        module.meta["in portions"] = True
    module.recompile()


def overwrite(module: GraphModule, places: Mapping[int, int]) -> set[int]:
    """Scatter into an input itself where nobody can tell the difference, in place of into a copy.

    An input may be written to if the output that takes its place is the result, no other output
    shares memory with either, and all that reads the input is done by then.

    Parameters
    ----------
    module : a recording; what it returns stays the same, bit for bit.
    places : inputs that the caller gives up, and the number of the output that replaces each.

    Returns
    -------
    The inputs that are now written to.
    """
    nodes = list(module.graph.nodes)
    inputs = [n for n in nodes if n.op == "placeholder"]
    outputs: Any = nodes[-1].args[0]
    order, family = {n: i for i, n in enumerate(nodes)}, _families(nodes)
    done: set[int] = set()
    for node in [n for n in nodes if n.target in IN_PLACE]:
        kin = family[node.args[0]]
        given = [i for i, source in enumerate(inputs) if source in kin]
        readers = {user for member in kin for user in member.users} - kin - {node}
        shown = [i for i, out in enumerate(outputs) if out in family[node]]
        if (
            len(given) == 1
            and shown == [places.get(given[0])]
            and kin.isdisjoint(node.args[1:])
            and all(order[reader] < order[node] for reader in readers)
            and _value(node).shape.numel() == _value(inputs[given[0]]).shape.numel()
        ):
            node.target = IN_PLACE[node.target]
            done.update(given)
    module.recompile()
    return done


def _value(node: Any) -> Any:
    """What the recording knows of a value: a tensor without data, or None."""
    return node.meta.get("val")


def _name(node: Node) -> str:
    return str(getattr(node.target, "__name__", "")).partition(".")[0]


def _pure(node: Node) -> bool:
    """Whether equal arguments give equal values, and nothing else happens."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    random = torch.Tag.nondeterministic_seeded in node.target.tags
    return not (random or node.target._schema.is_mutable)


def _written(graph: Graph) -> set[Node]:
    """All values that share memory with something that an operation writes to, or reshapes."""
    family, targets = _families(graph.nodes), list[Node]()
    for node in graph.nodes:
        if node.op == "call_function" and not _pure(node) and _name(node) != "getitem":
            targets += [node, *node.all_input_nodes]
    return set().union(*(family[t] for t in targets))


def _families(nodes: Iterable[Node]) -> dict[Node, set[Node]]:
    """For every value all that may share memory with it."""
    family: dict[Node, set[Node]] = {}
    for node in nodes:
        kin = node.all_input_nodes if _may_share(node) else []
        family[node] = {node}.union(*(family[k] for k in kin))
        for member in family[node]:
            family[member] = family[node]
    return family


def _may_share(node: Node) -> bool:
    """Whether the result may share memory with an argument."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return node.op == "call_function"
    declared = any(r.alias_info is not None for r in node.target._schema.returns)
    return declared or _name(node) == "_unsafe_view"


def _shorten_view(node: Node) -> None:
    """Take a view from the first of its chain, and drop it if it changes nothing."""
    source: Any = node.args[0] if node.args else None
    if _name(node) not in RELABELING or not isinstance(source, Node):
        return
    now, before = _value(node), _value(source)
    if not isinstance(before, Tensor) or now.dtype != before.dtype:
        return
    if _name(node) in RESHAPING and now.shape == before.shape:
        node.replace_all_uses_with(source)
    elif _dense(now) and _dense(before) and now.numel() == before.numel():
        if source.meta.get("relabels"):
            source = source.args[0]
        node.target, node.args, node.kwargs = aten.reshape.default, (source, list(now.shape)), {}
        node.meta["relabels"] = True
        if now.shape == _value(source).shape:
            node.replace_all_uses_with(source)


def _turn_back(node: Node) -> None:
    """Drop a change of the order of axes that is undone at once."""
    if not (axes := order(node)):
        return
    (source,) = node.all_input_nodes
    if [order(source)[axis] for axis in axes if order(source)] == sorted(axes):
        node.replace_all_uses_with(source.all_input_nodes[0])


def _at_once(node: Node, written: set[Node]) -> None:
    """`x (y > 0)`, as the derivative of a ReLU is written, in one operation."""
    if node.target is not aten.mul.Tensor or node.kwargs:
        return
    sides: Any = node.args
    for x, positive in (sides, sides[::-1]):
        if getattr(positive, "target", None) is not aten.gt.Scalar or positive.args[1] != 0:
            continue
        y = positive.args[0]
        alike = isinstance(x, Node) and _value(x).shape == _value(y).shape
        if alike and _value(x).dtype == _value(y).dtype and y not in written:
            node.target, node.args = aten.threshold_backward.default, (x, y, 0)
            return


def _dense(value: Tensor) -> bool:
    return value.is_contiguous() and value.numel() > 0


def _one_table(graph: Graph, node: Node) -> None:
    """`x[i, j]`, which maps over runs make of `x[j]`, by one table of row numbers.

    Copying whole rows is several times faster. Numbers from the end are counted from the start, so
    that those of one run never mean another's rows.
    """
    arguments: Any = node.args
    source, tables = arguments
    whole = all(t is not None and _value(t).dtype is torch.int64 for t in tables)
    sizes, rest = _value(source).shape[: len(tables)], _value(source).shape[len(tables) :]
    if len(tables) < 2 or rest.numel() < WIDE or not (whole and _value(source).is_contiguous()):
        return
    rows: Node | None = None
    with graph.inserting_before(node):
        for table, size in zip(tables, sizes, strict=True):
            own = table
            if not _counts(table):
                own = known(graph.call_function(aten.remainder.Scalar, (table, size)))
            if rows is not None:
                before = known(graph.call_function(aten.mul.Tensor, (rows, size)))
                own = known(graph.call_function(aten.add.Tensor, (before, own)))
            rows = own
        flat = [sizes.numel(), *rest]
        table = known(graph.call_function(aten.reshape.default, (source, flat)))
    node.args = (table, [rows])


def _counts(node: Node) -> bool:
    """Whether it is 0, 1, 2, ... in some shape."""
    while node.target in RESHAPES:
        (node,) = node.all_input_nodes
    return node.target is aten.arange.default and len(node.args) == 1


def _gather_part(graph: Graph, node: Node) -> bool:
    """A part of many rows that were gathered becomes the gathering of that part alone."""
    source: Any = node.args[0] if node.args else None
    if node.target not in PARTS or not _gathers_rows(source):
        return False
    table, (rows,) = source.args
    large = _value(source).nbytes >= LARGE or source.meta.get("part")
    axes = range(_value(rows).dim())
    if not (large and all(u.target in PARTS and u.args[1] in axes for u in source.users)):
        return False
    with graph.inserting_before(node):
        part = graph.call_function(node.target, (rows, *node.args[1:]))
        part.meta["val"] = node.target(_value(rows), *node.args[1:])
    node.target, node.args = aten.index.Tensor, (table, [part])
    node.meta["part"] = True
    return True


def _gathers_rows(node: Any) -> bool:
    """Whether it is `x[rows]` for one table of row numbers."""
    if not isinstance(node, Node) or node.target is not aten.index.Tensor:
        return False
    arguments: Any = node.args[1]
    rows, *more = arguments
    return not more and rows is not None and _value(rows).dtype in (torch.int64, torch.int32)


def _select_rows(graph: Graph, node: Node) -> None:
    """`x[rows]` for one table of row numbers, none of them negative."""
    if not _gathers_rows(node):
        return
    arguments: Any = node.args
    table, (rows,) = arguments
    shape = list(_value(node).shape)
    with graph.inserting_before(node):
        flat = graph.call_function(aten.reshape.default, (rows, [-1]))
        flat.meta["val"] = _value(rows).reshape(-1)
        picked = graph.call_function(aten.index_select.default, (table, 0, flat))
        picked.meta["val"] = _value(node).flatten(0, _value(rows).dim() - 1)
    node.target, node.args = aten.reshape.default, (picked, shape)


def _merge_equals(graph: Graph, written: set[Node]) -> None:
    """Do an operation once if an earlier one has the same arguments, and take a part of it once."""
    seen: dict[str, Node] = {}
    for node in graph.nodes:
        part = node.target is operator.getitem
        if (part or _pure(node)) and written.isdisjoint([node, *node.all_input_nodes]):
            key = repr((node.target, node.args, sorted(node.kwargs.items())))
            if seen.setdefault(key, node) is not node:
                node.replace_all_uses_with(seen[key])
