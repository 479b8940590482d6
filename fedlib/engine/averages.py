"""A pass that averages over clients before large products in place of after them.

The server's mean over clients of what is linear in a product, such as `w - lr * g_j` with the
gradients `g_j = E_j.T @ X_j` of a linear layer, needs one product of all clients' rows, since

    mean_j E_j.T @ X_j = [E_1; ...; E_N].T @ [X_1; ...; X_N] / N.

The captured round computes N products, stores them and averages them. This pass moves the mean
through sums, scalings and reshapes to the products. Values change by rounding only.
"""

from typing import Any

import torch
from torch.fx import Graph, Node

from fedlib.engine.graphs import arguments, insert, value

aten = torch.ops.aten
#: Multiplications in all clients' products together from which moving the mean pays.
LARGE = 2_000_000


def average_early(graph: Graph) -> None:
    """Move means over the first dimension to the large products that they average."""
    for node in list(graph.nodes):
        if not is_client_mean(node):
            continue
        averaged = arguments(node)[0]
        if reaches_product(averaged):
            with graph.inserting_before(node):
                mean = mean_of(graph, averaged)
            node.replace_all_uses_with(mean)
    graph.eliminate_dead_code()


def is_client_mean(node: Node) -> bool:
    """Whether a node is a plain mean over the first dimension."""
    if node.target != aten.mean.dim or node.kwargs:
        return False
    _, *options = arguments(node)
    return options == [[0]]


def reaches_product(node: Node) -> bool:
    """Whether a mean over clients of this node can be moved to a large product."""
    if len(node.users) > 1:
        return False
    if node.target == aten.bmm.default:
        left, right = arguments(node)
        columns = value(right).shape[-1]
        return value(left).numel() * columns >= LARGE
    return any(reaches_product(term) for term in linear_terms(node))


def linear_terms(node: Node) -> list[Node]:
    """The arguments, with a row for each client, in which a node is linear; [] for other nodes."""
    inputs = arguments(node)
    if node.kwargs:
        return []
    if node.target in (aten.add.Tensor, aten.sub.Tensor) and len(inputs) == 2:
        terms = []
        axes = value(node).dim()
        for term in inputs:
            if has_clients(term, node):
                terms.append(term)
            elif isinstance(term, Node) and value(term).dim() >= axes:
                return []  # it may have clients on another axis
        return terms
    if node.target in (aten.mul.Tensor, aten.div.Tensor):
        scaled, factor = inputs
        is_constant = not isinstance(factor, Node) or value(factor).dim() == 0
        return [scaled] if is_constant and has_clients(scaled, node) else []
    if node.target == aten.reshape.default:
        reshaped = inputs[0]
        return [reshaped] if has_clients(reshaped, node) else []
    if node.target == aten.cat.default and len(inputs) == 2:
        joined, axis = inputs
        return list(joined) if axis > 0 else []
    return []


def has_clients(argument: Any, node: Node) -> bool:
    """Whether an argument has a row for each row of the node's result."""
    if not isinstance(argument, Node):
        return False
    shape = value(argument).shape
    result_shape = value(node).shape
    if node.target != aten.reshape.default and len(shape) != len(result_shape):
        return False
    return len(shape) > 0 and shape[0] == result_shape[0] > 1


def mean_of(graph: Graph, node: Node) -> Node:
    """A node for the mean of another over the clients, averaged as early as possible."""
    if not reaches_product(node):
        return insert(graph, aten.mean.dim, node, [0])
    if node.target == aten.bmm.default:
        return mean_of_products(graph, *arguments(node))
    if node.target == aten.reshape.default:
        mean = mean_of(graph, arguments(node)[0])
        shape = list(value(node).shape[1:])
        return insert(graph, node.target, mean, shape)
    terms = linear_terms(node)
    if node.target == aten.cat.default:
        means = [mean_of(graph, term) for term in terms]
        _, axis = arguments(node)
        return insert(graph, node.target, means, axis - 1)
    averaged = [mean_of(graph, x) if x in terms else x for x in arguments(node)]
    return insert(graph, node.target, *averaged)


def mean_of_products(
    graph: Graph,
    left: Node,
    right: Node,
) -> Node:
    """A node for the mean of the clients' products of `left [N, n, k]` and `right [N, k, m]`."""
    clients, rows, depth = value(left).shape
    columns = value(right).shape[-1]
    turned = insert(graph, aten.permute.default, left, [0, 2, 1])
    stacked = insert(graph, aten.reshape.default, turned, [clients * depth, rows])
    all_left = insert(graph, aten.permute.default, stacked, [1, 0])
    all_right = insert(graph, aten.reshape.default, right, [clients * depth, columns])
    total = insert(graph, aten.mm.default, all_left, all_right)
    return insert(graph, aten.div.Tensor, total, clients)
