"""Nodes of captured graphs: their results' shapes, and new nodes."""

from typing import Any

from torch import Tensor
from torch.fx import Graph, Node
from torch.utils import _pytree as pytree


def arguments(node: Node) -> tuple[Any, ...]:
    """The positional arguments of a node."""
    return node.args


def insert(graph: Graph, target: Any, *arguments: Any, **options: Any) -> Node:
    """A new node, with the shape and type of its result."""
    node = graph.call_function(target, arguments, options)
    values = pytree.tree_map_only(Node, value, arguments)
    node.meta["val"] = target(*values, **options)
    return node


def value(node: Any) -> Tensor:
    """The fake tensor that stands for a node's result in a captured graph."""
    result: Tensor = node.meta["val"]
    return result
