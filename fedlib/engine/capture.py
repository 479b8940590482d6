"""Capture: replay the operations of a pure tensor function without its Python code and `vmap`.

A round is a deterministic function of tensors and never branches on one, so every call performs the
same operations. `capture` records them once with `make_fx`, which turns `vmap` and `grad` into
plain operations. It shortens the record by passes, and calls PyTorch's ordinary kernels.
"""

import operator
import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.fx import Graph, GraphModule, Node
from torch.utils import _pytree as pytree

from fedlib.core.problem import Batch, pullback
from fedlib.engine.pooling import pool_by_rows

VIEWS = (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default)
#: One thread at a time captures or compiles: torch then patches functions that all threads share.
CAPTURING = threading.RLock()
#: A pass shortens a captured graph in place; values may change by rounding only.
Pass = Callable[[Graph], None]
Losses = Callable[[Float[Tensor, "d"], Batch], Float[Tensor, "K"]]


class Captured:
    """The recorded operations `graph` of one call, as a function of trees of tensors."""

    def __init__(
        self,
        graph: GraphModule,
        inputs: Any,
        outputs: Any,
    ) -> None:
        self.graph = graph
        self.inputs = inputs
        self.outputs = outputs

    def apply(self, passes: Sequence["Pass"]) -> None:
        """Shorten the graph by some passes, in order."""
        for shorten in passes:
            shorten(self.graph.graph)
        self.graph.recompile()

    def __call__(self, *arguments: Any) -> Any:
        """Compute the function's value by the captured operations."""
        leaves, structure = pytree.tree_flatten(arguments)
        assert structure == self.inputs
        return pytree.tree_unflatten(list(self.graph.forward(*leaves)), self.outputs)


def capture(
    function: Callable[..., Any],
    *example: Any,
    passes: Sequence[Pass] = (),
) -> Captured:
    """Record the operations that a pure function performs on arguments of the example's shapes.

    Parameters
    ----------
    function : callable
        It takes and returns nested tuples, lists and dicts of tensors. Tensors in its closure
        become constants.
    *example : object
        Arguments; the arguments of every call must have the same structure and shapes.
    passes : sequence of callable
        Functions that shorten the graph, in order; values may change by rounding only.

    Raises torch's RuntimeError if the function reads the values of a tensor.
    """
    from torch.fx.experimental.proxy_tensor import make_fx  # slow: imports torch's compiler

    example_leaves, inputs = pytree.tree_flatten(example)
    outputs: list[Any] = []

    def flat(*leaves: Tensor) -> list[Any]:
        arguments = pytree.tree_unflatten(leaves, inputs)
        results, structure = pytree.tree_flatten(function(*arguments))
        outputs.append(structure)
        return results

    with CAPTURING:
        pure = torch.func.functionalize(flat, remove="mutations")
        record = make_fx(pure, tracing_mode="fake", _allow_non_fake_inputs=True)
        graph = record(*example_leaves)
        for node in graph.graph.nodes:
            if node.target in VIEWS:  # a kernel's result may have another layout than was recorded
                node.target = torch.ops.aten.reshape.default
        captured = Captured(graph, inputs, outputs[-1])
        captured.apply(passes)
    return captured


def merge_equal_nodes(graph: Graph) -> None:
    """Compute an operation once if an earlier one has the same arguments."""
    earlier_nodes: dict[str, Node] = {}
    random = torch.Tag.nondeterministic_seeded
    for node in graph.nodes:
        tags = getattr(node.target, "tags", (random,))
        if random in tags and node.target is not operator.getitem:
            continue
        options = sorted(node.kwargs.items())
        operation = repr((node.target, node.args, options))
        earlier = earlier_nodes.setdefault(operation, node)
        if earlier is not node:
            node.replace_all_uses_with(earlier)
    graph.eliminate_dead_code()


class CapturedGradient:
    """The gradient of `weights @ losses(w, batch)`, captured once for each shape of its arguments.

    In a loop over clients, autograd would record the same operations at every local step. Losses
    that read values are differentiated without capture.
    """

    def __init__(self, losses: Losses) -> None:
        self.losses = losses
        self.captured: dict[Any, Callable[..., Any]] = {}

    def __call__(
        self,
        w: Float[Tensor, "d"],
        batch: Batch,
        weights: Float[Tensor, "K"],
    ) -> Float[Tensor, "d"]:
        """The gradient `[d]`."""
        inputs = (w, batch, weights)
        leaves = pytree.tree_leaves(inputs)
        shapes = tuple((x.shape, x.dtype, x.device) for x in leaves)
        if shapes not in self.captured:
            self.captured[shapes] = self._capture(inputs)
        gradient: Tensor = self.captured[shapes](*inputs)
        return gradient

    def _plain(
        self,
        w: Tensor,
        batch: Batch,
        weights: Tensor,
    ) -> Tensor:
        return pullback(self.losses, None, w, batch, weights)

    def _capture(self, inputs: tuple[Any, ...]) -> Callable[..., Any]:
        try:
            captured = capture(self._plain, *inputs, passes=(merge_equal_nodes, pool_by_rows))
            gradient = captured(*inputs)
        except RuntimeError:
            return self._plain
        expected = self._plain(*inputs)
        is_same = torch.allclose(gradient, expected, rtol=1e-3, atol=1e-5)
        return captured if is_same else self._plain
