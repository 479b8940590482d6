"""Functions that stack, index and map trees of tensors."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree


def index_tree(tree: Any, index: Any) -> Any:
    """The tree with every tensor replaced by its part at `index`."""
    return pytree.tree_map(lambda x: x[index], tree)


def same_numbers(x: Tensor, y: Tensor) -> bool:
    """Whether two tensors hold the same numbers in one shape; NaN counts as equal to NaN."""
    if x.shape != y.shape:
        return False
    both_nan = x.isnan() & y.isnan()
    return bool(((x == y) | both_nan).all())


def clone_tree(tree: Any) -> Any:
    """A copy of the tree with every tensor in memory of its own."""
    return pytree.tree_map(torch.clone, tree)


def stack_trees(trees: Sequence[Any]) -> Any:
    """Stack trees of one structure: every tensor of the result has a leading axis."""
    return pytree.tree_map(lambda *xs: torch.stack(xs), *trees)


def squeeze_map(
    function: Callable[..., Any],
    in_dims: tuple[Any, ...],
) -> Callable[..., Any]:
    """`torch.func.vmap` for an axis of length one, which it removes and adds again."""

    def squeezed(*arguments: Any) -> Any:
        result = function(*_slices(arguments, in_dims, 0))
        return pytree.tree_map(lambda x: x.unsqueeze(0), result)

    return squeezed


def loop_map(
    function: Callable[..., Any],
    in_dims: tuple[Any, ...],
) -> Callable[..., Any]:
    """`torch.func.vmap` as a plain loop."""

    def loop(*arguments: Any) -> Any:
        pairs = zip(arguments, in_dims, strict=True)
        mapped = [argument for argument, dim in pairs if dim == 0]
        count = len(pytree.tree_leaves(mapped)[0])
        results = [function(*_slices(arguments, in_dims, index)) for index in range(count)]
        return stack_trees(results)

    return loop


def _slices(
    arguments: tuple[Any, ...],
    in_dims: tuple[Any, ...],
    index: int,
) -> list[Any]:
    """The arguments of a map at one index: parts of those that are mapped, others as they are."""
    slices = []
    for argument, dim in zip(arguments, in_dims, strict=True):
        if dim == 0:
            argument = index_tree(argument, index)
        slices.append(argument)
    return slices


def explain_map_error(error: Exception) -> str:
    """The reason why a map cannot follow a function, or "" for any other error."""
    text = str(error)
    if any(words in text for words in ("data-dependent", ".item()", "access data pointer")):
        return (
            "branch on a tensor's value or read it: one recording serves all seeds and clients; "
            "write torch.where(condition, a, b)"
        )
    if "random operation" in text:
        return "draw random numbers; draw them in draw(), from its generator"
    return ""
