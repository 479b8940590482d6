"""Recording a pure tensor function once, to replay it without its Python and `vmap` overhead.

A round is a deterministic function of tensors and never branches on one, so the list of tensor
operations that one call performs is the same for every call. `record` writes that list down
(`make_fx` unfolds `vmap` and `grad` into plain operations) and replays it through TorchScript's
interpreter. The operations are PyTorch's ordinary eager kernels: nothing is compiled or fused.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

__all__ = ["record", "simplify"]

aten = torch.ops.aten

#: Operations that change nothing if the shape stays what it was.
RESHAPING = frozenset({"view", "_unsafe_view", "reshape", "expand", "squeeze", "unsqueeze"})
#: Operations that only relabel entries if a dense tensor stays dense and loses none of them.
RELABELING = RESHAPING | {"select", "slice", "permute", "transpose", "t", "alias", "detach"}
#: Operations whose arguments TorchScript's tracer refuses (a dtype, a list of booleans).
UNTRACED = frozenset({aten.view.dtype, aten.convolution_backward.default})
#: The in-place forms that vmap uses on values which nobody else sees.
OUT_OF_PLACE = {
    aten.squeeze_.default: aten.squeeze.default,
    aten.squeeze_.dim: aten.squeeze.dim,
    aten.squeeze_.dims: aten.squeeze.dims,
}


def record(
    function: Callable[..., Any], *example: Any, fixed: tuple[Any, ...] = ()
) -> Callable[..., Any]:
    """A fast replay of `function(*fixed, *arguments)` as a function of `arguments`.

    `function` takes and returns nested tuples, lists and dicts of tensors and must not branch on
    their values nor write to them. What it closes over becomes a constant of the recording.

    Parameters
    ----------
    function : the pure function.
    example : arguments; those of every replay must have their structure and shapes.
    fixed : first arguments, the same in every replay.

    Raises
    ------
    ValueError
        at a replay, for arguments of another structure.
    """
    always, fixed_tree = pytree.tree_flatten(fixed)
    leaves, tree = pytree.tree_flatten(example)
    out_tree: list[Any] = []

    def flat(*inputs: Tensor) -> tuple[Tensor, ...]:
        first = pytree.tree_unflatten(list(inputs[: len(always)]), fixed_tree)
        out = function(*first, *pytree.tree_unflatten(list(inputs[len(always) :]), tree))
        out_leaves, spec = pytree.tree_flatten(out)
        out_tree[:] = [spec]
        return tuple(out_leaves)

    graph = make_fx(flat, tracing_mode="fake", _allow_non_fake_inputs=True)(*always, *leaves)
    simplify(graph)
    replay = _replay(graph, (*always, *leaves))

    def call(*arguments: Any) -> Any:
        inputs, given = pytree.tree_flatten(arguments)
        if given != tree:
            raise ValueError(
                "record: the arguments must have the structure of the recorded example, "
                f"got {given} in place of {tree}."
            )
        return pytree.tree_unflatten(list(replay(*always, *inputs)), out_tree[0])

    return call


def _replay(graph: GraphModule, example: tuple[Tensor, ...]) -> Callable[..., Any]:
    """The recorded operations, run by TorchScript's interpreter if it knows them all."""
    if any(node.target in UNTRACED for node in graph.graph.nodes):
        return graph  # the same operations, called from Python
    with warnings.catch_warnings():
        # TorchScript is in maintenance; only its interpreter is used, and a failure would be loud.
        warnings.simplefilter("ignore")
        trace: Any = torch.jit.trace
        replay: Callable[..., Any] = trace(graph, example, check_trace=False)
    return replay


def simplify(module: GraphModule) -> None:
    """Drop what `vmap` leaves behind; no result changes by a bit.

    Chains of views become one, rows are gathered by `index_select` (which copies whole rows),
    operations on constants are done once and for all, equal operations once a call. Values in
    memory that some operation writes to are left alone.
    """
    graph = module.graph
    for node in graph.nodes:
        if node.target in OUT_OF_PLACE and len(node.args[0].users) == 1:
            node.target = OUT_OF_PLACE[node.target]
    graph.eliminate_dead_code()
    written = _written(graph)
    for node in [n for n in graph.nodes if n not in written and isinstance(_value(n), Tensor)]:
        if node.target is aten.index.Tensor:
            _select_rows(graph, node)
        else:
            _shorten_view(node)
    graph.eliminate_dead_code()
    _merge_equals(graph, written)  # before what is equal becomes constants of different names
    _compute_constants(module, written)
    graph.eliminate_dead_code()
    module.recompile()


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
    family: dict[Node, set[Node]] = {}
    targets: list[Node] = []
    for node in graph.nodes:
        kin = node.all_input_nodes if _may_share(node) else []
        family[node] = {node}.union(*(family[k] for k in kin))
        for member in family[node]:
            family[member] = family[node]
        if node.op == "call_function" and not _pure(node) and _name(node) != "getitem":
            targets += [node, *node.all_input_nodes]
    return set().union(*(family[t] for t in targets))


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


def _dense(value: Tensor) -> bool:
    return value.is_contiguous() and value.numel() > 0


def _select_rows(graph: Graph, node: Node) -> None:
    """`x[rows]` for one table of row numbers, none of them negative."""
    arguments: Any = node.args
    table, (rows, *more) = arguments
    if more or rows is None or _value(rows).dtype not in (torch.int64, torch.int32):
        return
    shape = list(_value(node).shape)
    with graph.inserting_before(node):
        flat = graph.call_function(aten.reshape.default, (rows, [-1]))
        flat.meta["val"] = _value(rows).reshape(-1)
        picked = graph.call_function(aten.index_select.default, (table, 0, flat))
        picked.meta["val"] = _value(node).flatten(0, _value(rows).dim() - 1)
    node.target, node.args = aten.reshape.default, (picked, shape)


def _compute_constants(module: GraphModule, written: set[Node]) -> None:
    """Replace what depends on no argument by its value."""
    known: dict[Node, Any] = {}
    for node in module.graph.nodes:
        if node in written:
            continue
        if node.op == "get_attr":
            known[node] = getattr(module, node.target)
        elif _pure(node) and all(a in known for a in node.all_input_nodes):
            args, kwargs = torch.fx.map_arg((node.args, node.kwargs), known.__getitem__)
            known[node] = node.target(*args, **kwargs)
    for node, value in known.items():
        needed = any(user not in known for user in node.users)
        if node.op != "get_attr" and isinstance(value, Tensor) and needed:
            module.register_buffer(f"constant_{node.name}", value)
            with module.graph.inserting_before(node):
                constant = module.graph.get_attr(f"constant_{node.name}")
            constant.meta = dict(node.meta)
            node.replace_all_uses_with(constant)


def _merge_equals(graph: Graph, written: set[Node]) -> None:
    """Do an operation once if an earlier one has the same arguments."""
    seen: dict[str, Node] = {}
    for node in graph.nodes:
        if _pure(node) and written.isdisjoint([node, *node.all_input_nodes]):
            key = repr((node.target, node.args, sorted(node.kwargs.items())))
            if seen.setdefault(key, node) is not node:
                node.replace_all_uses_with(seen[key])
