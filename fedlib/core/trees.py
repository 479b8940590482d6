"""Maps over an axis of trees of tensors, beside `torch.func.vmap`: of length one, and in a loop.

And the stacking of trees that makes such an axis, with what they have in common left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor
from torch.utils import _pytree as pytree


def take(tree: Any, index: Any) -> Any:
    """The tree with every tensor replaced by its part at `index`."""
    return pytree.tree_map(lambda x: x[index], tree)


def copied(tree: Any) -> Any:
    """The tree with every tensor in memory of its own."""
    return pytree.tree_map(torch.clone, tree)


def stacked(trees: Sequence[Any]) -> Any:
    """Trees of one structure as one tree, every tensor with a leading axis."""
    return pytree.tree_map(lambda *xs: torch.stack(xs), *trees)


def partition_leaves(
    trees: Sequence[Any],
) -> tuple[
    list[Shaped[Tensor, "..."]],
    list[Shaped[Tensor, "..."]],
    Callable[[list[Shaped[Tensor, "..."]], list[Shaped[Tensor, "..."]]], Any],
]:
    """Trees of one structure as what differs, stacked, and what lies at one place in memory, once.

    The third result makes a tree of those two parts, or of one entry of the first and the second.
    """
    columns = list(zip(*(pytree.tree_leaves(tree) for tree in trees), strict=True))
    spec = pytree.tree_structure(trees[0])
    common = [all(same_memory(x, xs[0]) for x in xs) for xs in columns]

    def together(own: list[Tensor], rest: list[Tensor]) -> Any:
        parts = (iter(own), iter(rest))
        return pytree.tree_unflatten([next(parts[shared]) for shared in common], spec)

    split = list(zip(columns, common, strict=True))
    own = [torch.stack(xs) for xs, shared in split if not shared]
    return own, [xs[0] for xs, shared in split if shared], together


def same_memory(x: Shaped[Tensor, "..."], y: Shaped[Tensor, "..."]) -> bool:
    """Whether two tensors are the same numbers at the same place."""
    if x is y:
        return True
    form = (x.shape, x.stride(), x.dtype, x.device) == (y.shape, y.stride(), y.dtype, y.device)
    return form and x.numel() > 0 and x.data_ptr() == y.data_ptr()


def squeeze_map(function: Callable[..., Any], in_dims: tuple[Any, ...]) -> Callable[..., Any]:
    """`torch.func.vmap` for an axis of length one: take it off, put it back."""

    def one(*arguments: Any) -> Any:
        inner = [
            pytree.tree_map(lambda x: x[0], a) if d == 0 else a
            for a, d in zip(arguments, in_dims, strict=True)
        ]
        return pytree.tree_map(lambda x: x.unsqueeze(0), function(*inner))

    return one


def loop_map(function: Callable[..., Any], in_dims: tuple[Any, ...]) -> Callable[..., Any]:
    """`torch.func.vmap` as a plain loop."""

    def loop(*arguments: Any) -> Any:
        sizes = [
            pytree.tree_leaves(a)[0].shape[0]
            for a, d in zip(arguments, in_dims, strict=True)
            if d == 0 and pytree.tree_leaves(a)
        ]
        return stacked(
            [
                function(
                    *(take(a, i) if d == 0 else a for a, d in zip(arguments, in_dims, strict=True))
                )
                for i in range(sizes[0])
            ]
        )

    return loop


def explain_fault(error: Exception) -> str:
    """What a mapped function did that no map can follow, or the empty text for any other error."""
    text = str(error)
    if any(words in text for words in ("data-dependent", ".item()", "access data pointer")):
        return (
            "branch on a tensor's value or read it, one recording serves all seeds and clients; "
            "write torch.where(condition, a, b)"
        )
    if "random operation" in text:
        return "draw random numbers; they belong into draw(), from its generator"
    return ""
