"""Recording a pure tensor function once, to replay it without its Python and `vmap` overhead.

A round is a deterministic function of tensors and never branches on one, so the list of tensor
operations that one call performs is the same for every call. `record` writes that list down
(`vmap` and `grad` are unfolded into plain operations) and replays it through TorchScript's
interpreter. The operations are PyTorch's ordinary eager kernels, nothing is compiled or fused; only
large products of float32 may go to oneDNN (`fedlib.engine.products`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from torch import Tensor
from torch.fx import GraphModule
from torch.utils import _pytree as pytree

from fedlib.engine.operations import Dependent, operations
from fedlib.engine.products import large_by_onednn
from fedlib.engine.script import replay
from fedlib.engine.simplify import overwrite, simplify

#: Bytes of arguments from which on a recording follows tensors without data, which takes longer.
HEAVY = 2**28


class Recording:
    """The operations `graph` that one call of a function performs, on leaves of its arguments."""

    def __init__(self, function: Callable[..., Any], example: Any, fixed: tuple[Any, ...]) -> None:
        self.always, fixed_tree = pytree.tree_flatten(fixed)
        leaves, self.tree = pytree.tree_flatten(example)
        self.out: Any = None

        def flat(*inputs: Tensor) -> tuple[Tensor, ...]:
            first = pytree.tree_unflatten(list(inputs[: len(self.always)]), fixed_tree)
            rest = pytree.tree_unflatten(list(inputs[len(self.always) :]), self.tree)
            leaves, self.out = pytree.tree_flatten(function(*first, *rest))
            return tuple(leaves)

        inputs = (*self.always, *leaves)
        self.graph = _graph(flat, inputs)
        self.on_cpu = all(x.device.type == "cpu" for x in inputs)
        simplify(self.graph, on_cpu=self.on_cpu)


def _graph(flat: Callable[..., Any], inputs: tuple[Any, ...]) -> GraphModule:
    """The operations of a function of tensors; they are done meanwhile, unless that is heavy."""
    if sum(x.nbytes for x in inputs) < HEAVY:
        with suppress(Dependent):  # `make_fx` follows more, and says what cannot be followed
            return operations(flat, inputs)
    from torch.fx.experimental.proxy_tensor import make_fx

    tracer = make_fx(flat, tracing_mode="fake", _allow_non_fake_inputs=True)
    graph: GraphModule = tracer(*inputs)
    return graph


class Replay(Recording):
    """A recording that a call performs again, one operation after the other."""

    def __init__(
        self,
        function: Callable[..., Any],
        example: Any,
        fixed: tuple[Any, ...],
        spent: Collection[int],
    ) -> None:
        super().__init__(function, example, fixed)
        overwrite(self.graph, {len(self.always) + i: i for i in spent})
        if self.on_cpu:
            large_by_onednn(self.graph)
        self.again = replay(self.graph)

    def __call__(self, *arguments: Any) -> Any:
        """The function's value, by the operations that were recorded."""
        inputs, given = pytree.tree_flatten(arguments)
        if given != self.tree:
            raise ValueError(
                "record: the arguments must have the structure of the recorded example, "
                f"got {given} in place of {self.tree}."
            )
        return pytree.tree_unflatten(list(self.again(*self.always, *inputs)), self.out)


def record(
    function: Callable[..., Any],
    *example: Any,
    fixed: tuple[Any, ...] = (),
    spent: Collection[int] = (),
) -> Replay:
    """A fast replay of `function(*fixed, *arguments)` as a function of `arguments`.

    `function` takes and returns nested tuples, lists and dicts of tensors and must not branch on
    their values nor write to them. What it closes over becomes a constant of the recording.

    Parameters
    ----------
    function : the pure function.
    example : arguments; those of every replay must have their structure and shapes.
    fixed : first arguments, the same in every replay.
    spent : tensors of the arguments, by number, that a replay may write to. Tensor i of the result
        takes the place of tensor i of the arguments, which the caller must not look at again.

    Raises
    ------
    ValueError
        at a replay, for arguments of another structure.
    """
    return Replay(function, example, fixed, spent)
