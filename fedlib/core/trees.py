"""Stack, index and map trees of tensors, beside `torch.func.vmap`."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor
from torch.utils import _pytree as pytree

Leaves = list[Shaped[Tensor, "..."]]


def index_tree(tree: Any, index: Any) -> Any:
    """The tree with every tensor replaced by its part at `index`."""
    return pytree.tree_map(lambda x: x[index], tree)


def clone_tree(tree: Any) -> Any:
    """The tree with every tensor in memory of its own."""
    return pytree.tree_map(torch.clone, tree)


def stack_trees(trees: Sequence[Any]) -> Any:
    """Trees of one structure as one tree, every tensor with a leading axis."""
    return pytree.tree_map(lambda *xs: torch.stack(xs), *trees)


def partition_leaves(trees: Sequence[Any]) -> tuple[Leaves, Leaves, Callable[..., Any]]:
    """Split trees of one structure into leaves that differ, stacked, and leaves that all share.

    A leaf is shared if it lies at one place in memory. The third result, `merge(own, shared)`,
    makes a tree of those two parts, or of one entry of the first and the second.
    """
    columns = list(zip(*(pytree.tree_leaves(tree) for tree in trees), strict=True))
    spec = pytree.tree_structure(trees[0])
    is_shared = [all(same_memory(x, xs[0]) for x in xs) for xs in columns]

    def merge(own: Leaves, shared: Leaves) -> Any:
        parts = (iter(own), iter(shared))
        return pytree.tree_unflatten([next(parts[which]) for which in is_shared], spec)

    split = list(zip(columns, is_shared, strict=True))
    own = [torch.stack(xs) for xs, shared in split if not shared]
    return own, [xs[0] for xs, shared in split if shared], merge


def same_memory(x: Shaped[Tensor, "..."], y: Shaped[Tensor, "..."]) -> bool:
    """Whether two tensors are the same numbers at the same place."""
    if x is y:
        return True
    form = (x.shape, x.stride(), x.dtype, x.device) == (y.shape, y.stride(), y.dtype, y.device)
    return form and x.numel() > 0 and x.data_ptr() == y.data_ptr()


def squeeze_map(function: Callable[..., Any], in_dims: tuple[Any, ...]) -> Callable[..., Any]:
    """`torch.func.vmap` over an axis of length one: drop it, and put it back."""

    def one(*arguments: Any) -> Any:
        pairs = zip(arguments, in_dims, strict=True)
        inner = function(*(index_tree(a, 0) if d == 0 else a for a, d in pairs))
        return pytree.tree_map(lambda x: x.unsqueeze(0), inner)

    return one


def loop_map(function: Callable[..., Any], in_dims: tuple[Any, ...]) -> Callable[..., Any]:
    """`torch.func.vmap` as a plain loop."""

    def loop(*arguments: Any) -> Any:
        pairs = list(zip(arguments, in_dims, strict=True))
        count = len(pytree.tree_leaves([a for a, d in pairs if d == 0])[0])
        return stack_trees(
            [function(*(index_tree(a, i) if d == 0 else a for a, d in pairs)) for i in range(count)]
        )

    return loop


def explain_map_error(error: Exception) -> str:
    """What a mapped function did that no map can follow; the empty text for any other error."""
    text = str(error)
    if any(words in text for words in ("data-dependent", ".item()", "access data pointer")):
        return (
            "branch on a tensor's value or read it, one recording serves all seeds and clients; "
            "write torch.where(condition, a, b)"
        )
    if "random operation" in text:
        return "draw random numbers; they belong into draw(), from its generator"
    return ""
