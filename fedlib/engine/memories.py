"""Memories of clients, of which a round changes the participants' rows in place.

A round that returned new memories `[N, d]` would copy the rows of all N clients to change those of
n. In runs with large states, `Federation.store_memory` therefore returns a `PostponedRows`. Within
the maps over seeds and grid, `name_changes` replaces it by the numbers and rows of the
participants. After the round, `attach_memories` joins them with the memories of all runs, and
`write_rows` writes them. A round that reads a memory which it has stored fails on a
`PostponedRows`; then all its rounds copy.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils import _pytree as pytree

from fedlib.core.federation import PostponedRows

#: Entries of a state from which rows are changed in place; copies of a smaller one cost little.
LARGE_STATE = 1_000_000


class ChangedRows(NamedTuple):
    """The rows of a memory that a round replaces."""

    numbers: Int[Tensor, "*runs n"]  # of the clients
    rows: Float[Tensor, "..."]  # [*runs, n, ...]


class UnwrittenRows(NamedTuple):
    """A memory of all runs before its rows are replaced."""

    memory: Float[Tensor, "G S N *memory"]
    changes: ChangedRows


def is_large(state: Any) -> bool:
    """Whether a state has so many entries that its memories are changed in place."""
    entries = 0
    for x in pytree.tree_leaves(state):
        entries += x.numel()
    return entries >= LARGE_STATE


def name_changes(state: Any, after: Any) -> Any:
    """The state after a round, with `ChangedRows` in the place of a memory that is postponed.

    A memory that was in another field of the state before the round is copied.
    """
    leaves, structure = pytree.tree_flatten(after)
    before = pytree.tree_leaves(state)
    if len(before) != len(leaves):
        before = [None] * len(leaves)
    named = []
    for memory, leaf in zip(before, leaves, strict=True):
        if isinstance(leaf, PostponedRows):
            in_place = leaf.memory is memory
            leaf = ChangedRows(leaf.numbers, leaf.rows) if in_place else leaf.copied()
        named.append(leaf)
    return pytree.tree_unflatten(named, structure)


def attach_memories(state: Any, after: Any) -> Any:
    """The state after a round of all runs, with `UnwrittenRows` in the place of `ChangedRows`."""
    leaves, structure = pytree.tree_flatten(after, is_leaf=is_changed)
    if not any(is_changed(leaf) for leaf in leaves):
        return after
    attached = []
    for memory, leaf in zip(pytree.tree_leaves(state), leaves, strict=True):
        attached.append(UnwrittenRows(memory, leaf) if is_changed(leaf) else leaf)
    return pytree.tree_unflatten(attached, structure)


def write_rows(state: Any) -> Any:
    """Write the rows of a round into its memories, and return the state with these memories.

    Rows that were written before may be written again. If a model is not finite, the memories stay
    as they were before the round.
    """
    leaves, structure = pytree.tree_flatten(state, is_leaf=is_unwritten)
    if not any(is_unwritten(leaf) for leaf in leaves):
        return state
    is_finite = bool(torch.isfinite(state.w).all())
    written = []
    for leaf in leaves:
        if is_unwritten(leaf):
            if is_finite:
                replace_rows(leaf.memory, leaf.changes)
            leaf = leaf.memory
        written.append(leaf)
    return pytree.tree_unflatten(written, structure)


def replace_rows(memory: Float[Tensor, "G S N *memory"], changes: ChangedRows) -> None:
    """Write rows `[G, S, n, ...]` into a memory."""
    grid, seeds = memory.shape[:2]
    at_grid = torch.arange(grid, device=memory.device).view(-1, 1, 1)
    at_seed = torch.arange(seeds, device=memory.device).view(-1, 1)
    memory[at_grid, at_seed, changes.numbers] = changes.rows


def has_changes(state: Any) -> bool:
    """Whether a round has left memories whose rows are not written yet."""
    return any(is_unwritten(x) for x in pytree.tree_leaves(state, is_leaf=is_unwritten))


def is_changed(leaf: Any) -> bool:
    """Whether a part of a state is a `ChangedRows`."""
    return isinstance(leaf, ChangedRows)


def is_unwritten(leaf: Any) -> bool:
    """Whether a part of a state is an `UnwrittenRows`."""
    return isinstance(leaf, UnwrittenRows)
