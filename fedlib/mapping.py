"""Maps over an axis of trees of tensors, beside `torch.func.vmap`: of length one, and in a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

__all__ = ["looped", "only", "stacked", "take"]


def take(tree: Any, index: Any) -> Any:
    """The tree with every tensor replaced by its part at `index`."""
    return pytree.tree_map(lambda x: x[index], tree)


def stacked(trees: Sequence[Any]) -> Any:
    """Trees of one structure as one tree, every tensor with a leading axis."""
    return pytree.tree_map(lambda *xs: torch.stack(xs), *trees)


def only(function: Callable[..., Any], in_dims: tuple[Any, ...]) -> Callable[..., Any]:
    """`torch.func.vmap` for an axis of length one: take it off, put it back."""

    def one(*arguments: Any) -> Any:
        inner = [
            pytree.tree_map(lambda x: x[0], a) if d == 0 else a
            for a, d in zip(arguments, in_dims, strict=True)
        ]
        return pytree.tree_map(lambda x: x.unsqueeze(0), function(*inner))

    return one


def looped(function: Callable[..., Any], in_dims: tuple[Any, ...]) -> Callable[..., Any]:
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
