"""Capture: the operations of a pure tensor function, replayed without its Python and `vmap`.

A round is a deterministic function of tensors and never branches on one, so one call performs the
same operations as every other. `capture` writes them down once with `make_fx` (`vmap` and `grad`
become plain operations), shortens them by passes, and calls PyTorch's ordinary kernels.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.fx import Graph, GraphModule, Node
from torch.utils import _pytree as pytree

from fedlib.core.problem import Batch, pullback

VIEWS = (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default)
#: Shortens a captured graph in place; values change by rounding only.
Pass = Callable[[Graph], None]
Losses = Callable[[Float[Tensor, "d"], Batch], Float[Tensor, "K"]]


class Captured:
    """The operations `graph` of one call, as a function of trees of tensors."""

    def __init__(self, graph: GraphModule, inputs: Any, outputs: Any) -> None:
        self.graph, self.inputs, self.outputs = graph, inputs, outputs

    def __call__(self, *arguments: Any) -> Any:
        """The function's value, by the operations that were captured."""
        leaves, structure = pytree.tree_flatten(arguments)
        assert structure == self.inputs
        return pytree.tree_unflatten(list(self.graph(*leaves)), self.outputs)


def capture(function: Callable[..., Any], *example: Any, passes: Sequence[Pass] = ()) -> Captured:
    """The operations that a pure function performs on arguments of the example's shapes.

    Parameters
    ----------
    function : takes and returns nested tuples, lists and dicts of tensors. Tensors that it closes
        over become constants.
    example : arguments; those of every call must have their structure and shapes.
    passes : what shortens the graph, in order; values may change by rounding only.

    Raises RuntimeError of torch, if the function looks at the values of a tensor.
    """
    from torch.fx.experimental.proxy_tensor import make_fx  # imports torch's compiler: a second

    leaves, inputs = pytree.tree_flatten(example)
    outputs: list[Any] = []

    def flat(*given: Tensor) -> list[Any]:
        results, structure = pytree.tree_flatten(function(*pytree.tree_unflatten(given, inputs)))
        outputs.append(structure)
        return results

    pure = torch.func.functionalize(flat, remove="mutations")
    graph = make_fx(pure, tracing_mode="fake", _allow_non_fake_inputs=True)(*leaves)
    for node in graph.graph.nodes:
        if node.target in VIEWS:  # a kernel may lay its result out otherwise than was foreseen
            node.target = torch.ops.aten.reshape.default
    for shorten in passes:
        shorten(graph.graph)
    graph.recompile()
    return Captured(graph, inputs, outputs[-1])


def merge_equal_nodes(graph: Graph) -> None:
    """Do an operation once if an earlier one has the same arguments.

    Worth, as the time of compiled rounds without it over that with it: 1.5 on W3 of `benchmarks`
    with 33 runs at once, 1.34 on W4, 1.17 on W3.
    """
    first: dict[str, Node] = {}
    for node in graph.nodes:
        tags = getattr(node.target, "tags", (torch.Tag.nondeterministic_seeded,))
        if torch.Tag.nondeterministic_seeded not in tags or node.target is operator.getitem:
            key = repr((node.target, node.args, sorted(node.kwargs.items())))
            if first.setdefault(key, node) is not node:
                node.replace_all_uses_with(first[key])
    graph.eliminate_dead_code()


class CapturedGradient:
    """The gradient of `weights @ losses(w, batch)`, captured once for every shape of its arguments.

    Where clients are taken one after another, autograd would write the same operations down at
    every local step. Losses that look at values are differentiated as they are. Worth 1.2 on W2.
    """

    def __init__(self, losses: Losses) -> None:
        self.losses = losses
        self.captured: dict[Any, Callable[..., Any]] = {}

    def __call__(
        self, w: Float[Tensor, "d"], batch: Batch, weights: Float[Tensor, "K"]
    ) -> Float[Tensor, "d"]:
        """The gradient `[d]`."""
        inputs = (w, batch, weights)
        form = tuple((x.shape, x.dtype, x.device) for x in pytree.tree_leaves(inputs))
        if form not in self.captured:
            self.captured[form] = self._capture(inputs)
        gradient: Tensor = self.captured[form](*inputs)
        return gradient

    def _plain(self, w: Tensor, batch: Batch, weights: Tensor) -> Tensor:
        return pullback(self.losses, None, w, batch, weights)

    def _capture(self, inputs: tuple[Any, ...]) -> Callable[..., Any]:
        try:
            fast = capture(self._plain, *inputs)
            same = torch.allclose(fast(*inputs), self._plain(*inputs), rtol=1e-3, atol=1e-5)
        except RuntimeError:
            return self._plain
        return fast if same else self._plain
