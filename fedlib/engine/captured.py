"""A round as a CUDA graph: all its kernels in one launch, on tensors that stay where they are.

A GPU does the small operations of a round faster than Python can name them. A graph names them
once. What looks at values on the way (singular values, say) cannot be captured; such rounds are
replayed. So is a round whose graph does not give what the replay gives.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from fedlib.core.problem import Draw, Info
from fedlib.core.trees import clone_tree
from fedlib.engine.record import Recording

WARM = 3  # rounds before the capture, in which libraries choose and set up what they need


def graph_of(body: Callable[[], None]) -> Callable[[], None]:
    """What `body` makes a GPU do, as one launch."""
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(WARM):
            body()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        body()
    launch: Callable[[], None] = graph.replay
    return launch


class Captured:
    """The recorded round `step` as a graph, for states and draws of the shapes of an example."""

    def __init__(self, step: Recording, state: Any, draw: Draw) -> None:
        self.state, self.draw = clone_tree(state), clone_tree(draw)
        self.leaves, self.drawn = (pytree.tree_leaves(x) for x in (self.state, self.draw))
        self.step, self.info = step, Info()
        self.launch = graph_of(self._round)

    def _round(self) -> None:
        inputs = (*self.step.always, *self.leaves, *self.drawn)
        found = list(self.step.graph(*inputs))
        after, self.info = pytree.tree_unflatten(found, self.step.out)
        for x, y in zip(self.leaves, pytree.tree_leaves(after), strict=True):
            x.copy_(y)

    def __call__(self, state: Any, draw: Draw) -> tuple[Any, Info]:
        """One round; the state that it gives is overwritten by the next."""
        given = pytree.tree_leaves((state, draw))
        for x, y in zip((*self.leaves, *self.drawn), given, strict=True):
            if x is not y:
                x.copy_(y)
        self.launch()
        return self.state, {k: v.clone() for k, v in self.info.items()}


def captured(step: Callable[..., Any], state: Any, draw: Draw) -> Callable[..., tuple[Any, Info]]:
    """The round `step` as a graph, or itself where that is not possible, with a word why."""
    if not isinstance(step, Recording):
        return step
    try:
        fast = Captured(step, state, draw)
        one, other = (clone_tree(function(clone_tree(state), draw)) for function in (step, fast))
        torch.testing.assert_close(other, one, equal_nan=True)
    except (RuntimeError, AssertionError) as error:
        warnings.warn(f"run: rounds are replayed, not captured: {error!s:.200}", stacklevel=2)
        return step
    return fast
