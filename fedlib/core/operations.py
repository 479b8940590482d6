"""The list of tensor operations that one call of a function performs.

What `make_fx` of PyTorch does, for functions of which less is asked: it first imports PyTorch's
compiler, which takes longer than most recordings, and follows tensors without data through every
operation. Here the operations are noted while they are done.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Node
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten

NODE = "_fedlib_node"  # the attribute of a tensor that says where it comes from
#: Ways to see a tensor's values outside of tensor operations, which a replay would not repeat.
LOOKS = frozenset(
    {Tensor.numpy, Tensor.tolist, Tensor.__array__, Tensor.data_ptr, Tensor.__dlpack__}
)
DEPENDENT = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)

MASKS = (torch.bool, torch.uint8)


def operations(function: Callable[..., Sequence[Tensor]], inputs: Sequence[Tensor]) -> GraphModule:
    """The operations of `function(*inputs)`, as a function of the inputs.

    Of every value `meta["val"]` of its node has shape, strides and type, without data. Tensors that
    the function closes over are constants.

    Raises
    ------
    RuntimeError
        if the function looks at the values of a tensor, or a shape depends on them.
    """
    noting = _Noting()
    own = [x.detach() for x in inputs]  # so that no caller's tensor is marked
    for i, x in enumerate(own):
        noting.mark(x, noting.graph.placeholder(f"x{i}"))
    with _NoLooks(), noting:
        found = function(*own)
    noting.graph.output(tuple(noting.node(x) for x in found))
    return GraphModule(noting.root, noting.graph)


class _NoLooks(TorchFunctionMode):
    """Refuses looks at values."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function in LOOKS:
            raise RuntimeError(f"data-dependent: {function.__name__} of a tensor")
        return function(*args, **(kwargs or {}))


class _Noting(TorchDispatchMode):
    """Notes every operation that reaches the tensors, below `vmap` and `grad`."""

    def __init__(self) -> None:
        super().__init__()
        self.graph = Graph()
        self.root = torch.nn.Module()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # what PyTorch would wrap the next method in imports its compiler

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if _depends_on_values(function, args):
            raise RuntimeError(f"data-dependent: {function}")
        if function._can_decompose() and function is not aten.detach.default:
            with self:
                found = function.decompose(*args, **kwargs)
            if found is not NotImplemented:
                return found
        if function is aten.lift_fresh.default:  # a number that became a tensor, maybe written to
            function = aten.lift_fresh_copy.default
        given = pytree.tree_map_only(Tensor, self.node, (args, kwargs))
        with torch._C.DisableTorchFunction():
            value = function(*args, **kwargs)
        noted = self.graph.call_function(function, *given)
        if isinstance(value, Tensor):
            self.mark(value, noted)
        elif isinstance(value, (tuple, list)):
            noted.meta["val"] = pytree.tree_map_only(Tensor, _without_data, value)
            for i, part in enumerate(value):
                if isinstance(part, Tensor):
                    self.mark(part, self.graph.call_function(operator.getitem, (noted, i)))
        return value

    def mark(self, value: Tensor, node: Node) -> None:
        """Note where a value comes from."""
        node.meta["val"] = _without_data(value)
        setattr(value, NODE, (self.graph, node))

    def node(self, value: Tensor) -> Node:
        """Where a value comes from; a constant if from outside."""
        graph, node = getattr(value, NODE, (None, None))
        if graph is self.graph:
            return node
        name = f"constant{len([*self.root.buffers()])}"
        self.root.register_buffer(name, value.detach())
        node = self.graph.get_attr(name)
        self.mark(value, node)
        return node


def _depends_on_values(function: Any, args: Any) -> bool:
    """Whether the result is no tensor, or its shape depends on values."""
    if function is aten.index.Tensor:
        return any(rows is not None and rows.dtype in MASKS for rows in args[1])
    return not {*DEPENDENT}.isdisjoint(function.tags)


def _without_data(value: Tensor) -> Tensor:
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
