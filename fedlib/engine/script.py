"""Recorded operations as a program of TorchScript's interpreter, written operation by operation.

The operations and their arguments are known, so nothing has to be done to find the program.
`torch.jit.trace` would do all of them and keep every value until the end, which for a long round is
many gigabytes. The interpreter takes the program as it is: no pass of its own moves or joins
operations, and a value is given up after its last use.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor
from torch.fx import GraphModule, Node

from fedlib.engine.products import program_of

aten = torch.ops.aten

#: Orders of entries in memory, by the numbers that the interpreter knows them by.
FORMATS: dict[Any, int] = {
    torch.contiguous_format: 0,
    torch.preserve_format: 1,
    torch.channels_last: 2,
    torch.channels_last_3d: 3,
}


class Unknown(RuntimeError):
    """The interpreter does not know an operation with such arguments."""


class Program:
    """What a recording does, as a function of its inputs: the list of its outputs.

    Raises
    ------
    Unknown
        if the interpreter does not know one of the operations.
    """

    def __init__(self, module: GraphModule) -> None:
        self.graph: Any = torch._C.Graph()
        self.constants: dict[str, Any] = {}
        self.values: dict[Node, Any] = {}
        nodes = {op: module.graph.find_nodes(op=op) for op in ("placeholder", "get_attr")}
        for node in (*nodes["placeholder"], *nodes["get_attr"]):
            self.values[node] = self.graph.addInput()
        self.closed_over = [getattr(module, str(node.target)) for node in nodes["get_attr"]]
        for node in module.graph.nodes:
            if node.op == "call_function":
                self.values[node] = self._value(node)
        outputs: Any = module.graph.output_node().args[0]
        found = [self.values[x] for x in outputs]
        self.graph.registerOutput(self._list(found, torch._C.TensorType.get()))
        self.run = torch._C._create_function_from_graph("recorded", self.graph)

    def __call__(self, *inputs: Shaped[Tensor, "..."]) -> Sequence[Shaped[Tensor, "..."]]:
        """The outputs."""
        before = torch._C._get_graph_executor_optimize()
        torch._C._set_graph_executor_optimize(False)
        try:
            found: Sequence[Tensor] = self.run(*inputs, *self.closed_over)
        finally:
            torch._C._set_graph_executor_optimize(before)
        return found

    def _value(self, node: Node) -> Any:
        """What an operation gives: a value, or a list of them if it gives several."""
        arguments: Any = node.args
        if node.target is operator.getitem:
            return self._item(self.values[arguments[0]], arguments[1])
        if program := program_of(node.target):
            given = [self.values[x] for x in arguments]
            return self.graph.insertGraph(program.inlined_graph, given)[0]
        if node.target is aten._to_copy.default and not isinstance(arguments[0], Node):
            self.values[node] = self.graph.insertConstant(torch.tensor(arguments[0]))
            arguments = (node,)
        if not isinstance(node.target, torch._ops.OpOverload):
            raise Unknown(node.name)
        schema: Any = node.target._schema
        named = dict(zip((a.name for a in schema.arguments), arguments, strict=False))
        named |= node.kwargs
        values = [
            self._argument(named.get(a.name, a.default_value), a.type) for a in schema.arguments
        ]
        found = self._call(schema.name, values, [r.type for r in schema.returns])
        return found[0] if len(found) == 1 else found

    def _item(self, source: Any, i: int) -> Any:
        if isinstance(source, list):
            return source[i]
        index = self._constant(i)
        return self._call("aten::__getitem__", [source, index], [torch._C.TensorType.get()])[0]

    def _argument(self, given: Any, kind: Any) -> Any:
        """A value, a list of values, or a constant of the kind that the operation asks for."""
        if isinstance(given, Node):
            return self.values[given]
        if given is None:
            return self._constant(None)
        if isinstance(kind, torch._C.OptionalType):
            return self._argument(given, kind.getElementType())
        if isinstance(kind, torch._C.ListType):
            element: Any = kind.getElementType()
            each = given if isinstance(given, (list, tuple)) else [given]
            return self._list([self._argument(x, element) for x in each], element)
        return self._constant(float(given) if isinstance(kind, torch._C.FloatType) else given)

    def _constant(self, given: Any) -> Any:
        key = repr((type(given), given))  # 1, 1.0 and True are equal
        if key not in self.constants:
            self.constants[key] = self.graph.insertConstant(FORMATS.get(given, given))
        return self.constants[key]

    def _list(self, values: list[Any], element: Any) -> Any:
        return self._call("prim::ListConstruct", values, [torch._C.ListType(element)])[0]

    def _call(self, name: str, values: list[Any], kinds: list[Any]) -> list[Any]:
        made = self.graph.create(name, values, len(kinds))
        self.graph.insertNode(made)
        results: list[Any] = list(made.outputs())
        for value, kind in zip(results, kinds, strict=True):
            value.setType(kind)
        if not name.startswith("prim::") and made.schema() == "(no schema)":
            raise Unknown(name)
        return results


def replay(module: GraphModule) -> Callable[..., Sequence[Shaped[Tensor, "..."]]]:
    """The recorded operations, run by the interpreter if it knows them all, else from Python."""
    try:
        return Program(module)
    except Unknown:
        return module
