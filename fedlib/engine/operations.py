"""The list of tensor operations that one call of a function performs.

What `make_fx` of PyTorch does, for functions that never look at values, and a quarter of its time:
it first imports PyTorch's compiler, which takes longer than most recordings, and follows tensors
without data through every operation. Here operations are noted while they are done. The lists are
the same.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor
from torch.fx import Graph, GraphModule, Node
from torch.fx._lazy_graph_module import _LazyGraphModule
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten

NODE = "_fedlib_node"  # the attribute of a tensor that says where it comes from
#: Ways to see the values of a tensor, which a replay would not look at again.
LOOKS = frozenset(
    {
        *(Tensor.__bool__, Tensor.__int__, Tensor.__index__, Tensor.__float__, Tensor.__complex__),
        *(Tensor.__repr__, Tensor.__format__, Tensor.__array__, Tensor.__dlpack__),
        *(Tensor.__deepcopy__, Tensor.item, Tensor.tolist, Tensor.numpy, Tensor.data_ptr),
        Tensor.untyped_storage,
    }
)
#: What makes a tensor of numbers; of numbers that are tensors themselves, it takes the values.
MAKERS = frozenset({torch.tensor, torch.as_tensor, torch.asarray, Tensor.new_tensor, Tensor.new})
DEPENDENT = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)
MASKS = (torch.bool, torch.uint8)
OWN = "fedlib"  # the namespace of operations that are code of this library


class Dependent(RuntimeError):
    """A function looks at the values of a tensor, or a shape depends on them."""


def operations(function: Callable[..., Sequence[Any]], inputs: Sequence[Any]) -> GraphModule:
    """The operations of `function(*inputs)`, as a function of the inputs.

    Of every value `meta["val"]` of its node has shape, strides and type, without data. Tensors that
    the function closes over are constants.

    Raises
    ------
    Dependent
        if the function looks at the values of a tensor, or a shape depends on them.
    """
    noting = _Noting()
    own = [x.detach() for x in inputs]  # so that no caller's tensor is marked
    for i, x in enumerate(own):
        noting.mark(x, noting.graph.placeholder(f"x{i}"))
    with without_compiler(), _NoLooks(), noting:
        found = function(*own)
    noting.graph.output(tuple(noting.node(x) for x in found))
    return _LazyGraphModule(noting.root, noting.graph)  # most are never called from Python


def has_own_code(graph: Graph) -> bool:
    """Whether an operation is code of this library: a simulator, a program for weights.

    A simulator's episodes part where a number is rounded otherwise.
    """
    return any(getattr(node.target, "namespace", "") == OWN for node in graph.nodes)


@contextmanager
def without_compiler() -> Iterator[None]:
    """`grad` and its kin do not import PyTorch's compiler, which they ask to leave them alone.

    Where it is not imported it does so anyway. Whoever asks for more of it meanwhile, gets it.
    """
    if "torch._dynamo" in sys.modules:
        yield
        return
    absent = vars(torch)["_dynamo"] = _Absent()
    try:
        yield
    finally:
        if vars(torch).get("_dynamo") is absent:
            del vars(torch)["_dynamo"]


def unwatched(own: Any) -> None:
    """Let an operation of ours (`torch.library.custom_op`) be called without PyTorch's compiler.

    PyTorch wraps its function so that the compiler leaves it alone, and imports it for that.
    """
    for device, call in getattr(own, "_backend_fns", {}).items():
        own._backend_fns[device] = getattr(call, "__wrapped__", call)


class _Absent:
    """In place of `torch._dynamo`, until more is asked of it."""

    compiled_autograd = SimpleNamespace(_disable=nullcontext)

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("torch._dynamo"), name)


class _NoLooks(TorchFunctionMode):
    """Refuses looks at values."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        within = [x for x in (*args, *kwargs.values()) if isinstance(x, (list, tuple))]
        if function in LOOKS or (function in MAKERS and _tensors(within)):
            raise Dependent(function.__name__)
        return function(*args, **kwargs)


class _Noting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes every operation that reaches the tensors, below `vmap` and `grad`."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.graph = Graph()
        self.root = torch.nn.Module()
        self.constants: dict[int, tuple[Tensor, Node]] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # what PyTorch would wrap the next method in imports its compiler

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if _depends_on_values(function, args):
            raise Dependent(str(function))
        if function._can_decompose() and function is not aten.detach.default:
            with self:
                found = function.decompose(*args, **kwargs)
            if found is not NotImplemented:
                return found
        if function is aten.lift_fresh.default:  # a number that became a tensor, maybe written to
            function = aten.lift_fresh_copy.default
        given = self.nodes(args), {k: self.nodes(v) for k, v in kwargs.items()}
        with torch._C.DisableTorchFunction():
            if function.namespace == OWN:
                value = _zeros(function, args, kwargs)
            else:
                value = function(*args, **kwargs)
        noted = self.graph.call_function(function, *given)
        if isinstance(value, Tensor):
            self.mark(value, noted)
        elif isinstance(value, (tuple, list)):
            noted.meta["val"] = [_without_data(x) if isinstance(x, Tensor) else x for x in value]
            for i, part in enumerate(value):
                if isinstance(part, Tensor):
                    self.mark(part, self.graph.call_function(operator.getitem, (noted, i)))
        return value

    def mark(self, value: Shaped[Tensor, "..."], node: Node) -> None:
        """Note where a value comes from."""
        node.meta["val"] = _without_data(value)
        setattr(value, NODE, (self.graph, node))

    def node(self, value: Shaped[Tensor, "..."]) -> Node:
        """Where a value comes from; a constant if from outside."""
        graph, node = getattr(value, NODE, (None, None))
        if graph is not self.graph:
            _, node = self.constants.get(id(value)) or self._constant(value)
        assert isinstance(node, Node)
        return node

    def nodes(self, given: Any) -> Any:
        """An argument with its tensors replaced; `tree_map` would take a fifth of a recording."""
        if isinstance(given, (list, tuple)):
            parts = map(self.nodes, given)
            return [*parts] if isinstance(given, list) else (*parts,)
        return self.node(given) if isinstance(given, Tensor) else given

    def _constant(self, value: Tensor) -> tuple[Tensor, Node]:
        name = f"constant{len(self.constants)}"
        self.root.register_buffer(name, value.detach())
        node = self.graph.get_attr(name)
        node.meta["val"] = _without_data(value)
        return self.constants.setdefault(id(value), (value, node))


def _depends_on_values(function: Any, args: Any) -> bool:
    """Whether the result is no tensor, or its shape depends on values."""
    if function is aten.index.Tensor:
        return any(rows is not None and rows.dtype in MASKS for rows in args[1])
    return not {*DEPENDENT}.isdisjoint(function.tags)


def _zeros(function: Any, args: Any, kwargs: Any) -> Any:
    """Zeros, shaped as what an operation of ours gives: a simulator would play for nobody."""
    meta = pytree.tree_map_only(Tensor, _without_data, (args, kwargs))
    where = next(x.device for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, Tensor))
    shaped = function(*meta[0], **meta[1])
    return pytree.tree_map_only(Tensor, lambda x: torch.zeros_like(x, device=where), shaped)


def _tensors(values: Any) -> bool:
    return any(isinstance(x, Tensor) for x in pytree.tree_leaves(values))


def _without_data(value: Tensor) -> Tensor:
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
