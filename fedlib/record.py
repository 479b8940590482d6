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
from torch.fx import Graph, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

__all__ = ["record"]

#: Operations that give their input back if shape and strides stay what they were.
VIEWS = frozenset({"view", "_unsafe_view", "expand", "permute", "squeeze", "squeeze_", "reshape"})


def record(function: Callable[..., Any], *example: Any) -> Callable[..., Any]:
    """A fast replay of `function` for arguments with the structure and shapes of `example`.

    `function` takes and returns nested tuples, lists and dicts of tensors and must not branch on
    their values. What it closes over becomes a constant of the recording.
    """
    leaves, tree = pytree.tree_flatten(example)
    out_tree: list[Any] = []

    def flat(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        out = function(*pytree.tree_unflatten(list(inputs), tree))
        out_leaves, spec = pytree.tree_flatten(out)
        out_tree[:] = [spec]
        return tuple(out_leaves)

    graph = make_fx(flat, tracing_mode="fake", _allow_non_fake_inputs=True)(*leaves)
    simplify(graph.graph)
    graph.recompile()
    with warnings.catch_warnings():
        # TorchScript is in maintenance; only its interpreter is used, and a failure would be loud.
        warnings.simplefilter("ignore")
        replay = torch.jit.trace(graph, tuple(leaves), check_trace=False)

    def call(*arguments: Any) -> Any:
        inputs, given = pytree.tree_flatten(arguments)
        if given != tree:
            raise ValueError(
                "record: the arguments must have the structure of the recorded example, "
                f"got {given} in place of {tree}."
            )
        return pytree.tree_unflatten(list(replay(*inputs)), out_tree[0])

    return call


def simplify(graph: Graph) -> None:
    """Drop what `vmap` leaves behind: views that change nothing, equal operations done twice."""
    seen: dict[Any, Node] = {}
    graph.eliminate_dead_code()
    for node in graph.nodes:
        if node.op != "call_function" or "val" not in node.meta:
            continue
        name = node.target.__name__.partition(".")[0]
        source = node.args[0] if node.args else None
        if name in VIEWS and isinstance(source, Node) and _layout(source) == _layout(node):
            node.replace_all_uses_with(source)
        elif not name.endswith("_") and not _written_to(node):
            key = repr((node.target, node.args, sorted(node.kwargs.items())))
            node.replace_all_uses_with(seen[key]) if key in seen else seen.setdefault(key, node)
    graph.eliminate_dead_code()


def _layout(node: Node) -> Any:
    value = node.meta.get("val")
    return (value.shape, value.stride()) if isinstance(value, torch.Tensor) else node


def _written_to(node: Node) -> bool:
    """Whether an in-place operation other than a view changes this value later."""
    names = [u.target.__name__.partition(".")[0] for u in node.users if u.op == "call_function"]
    return any(n.endswith("_") and n not in VIEWS for n in names)
