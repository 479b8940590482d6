"""Local steps in captured graphs: products of clients are subtracted while they are in the cache.

A gradient step `u - lr * gradient` of N clients with large models writes all gradients to memory
and reads them again. The pass of this module subtracts the products of one client from its model
before those of the next client are computed. From the second step on, it changes the models in
place. It applies where `choose_kernels` has taken oneDNN's products.
"""

import operator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.fx import Graph, Node

from fedlib.engine.graphs import arguments, insert, value
from fedlib.engine.kernels import ONEDNN_BMM, RESHAPE, multiply

SUB = torch.ops.aten.sub.Tensor
MUL = torch.ops.aten.mul.Tensor
CAT = torch.ops.aten.cat.default


# torch 2.6 infers no schema from `list[Tensor]`
ARGUMENTS = "float lr, Tensor[] factors, bool[] is_product"


@torch.library.custom_op(
    "fedlib_kernels::descend",
    mutates_args=(),
    schema=f"(Tensor u, {ARGUMENTS}) -> Tensor",
)
def descend(u: Tensor, lr: float, factors: list[Tensor], is_product: list[bool]) -> Tensor:
    """The models `u - lr * gradients`, `[N, d]`, of clients at `u [N, d]` or `[d]`.

    The gradients are joined from blocks along the axis d. Of every block, `factors` has the block
    `[N, size]` itself, or two factors of a product, `[N, n, k]` and `[N, k, m]`.
    """
    result = u.new_empty(factors[0].shape[0], u.shape[-1])
    subtract(u.expand_as(result), lr, factors, is_product, result)
    return result


@descend.register_fake
def _(u: Tensor, lr: float, factors: list[Tensor], is_product: list[bool]) -> Tensor:
    del lr, is_product
    return u.new_empty(factors[0].shape[0], u.shape[-1])


@torch.library.custom_op(
    "fedlib_kernels::descend_in_place",
    mutates_args=("u",),
    schema=f"(Tensor(a!) u, {ARGUMENTS}) -> ()",
)
def descend_in_place(u: Tensor, lr: float, factors: list[Tensor], is_product: list[bool]) -> None:
    """Subtract `lr * gradients` from the models `u [N, d]`; `descend` describes the arguments."""
    subtract(u, lr, factors, is_product, u)


@descend_in_place.register_fake
def _(u: Tensor, lr: float, factors: list[Tensor], is_product: list[bool]) -> None:
    del u, lr, factors, is_product


def subtract(
    before: Float[Tensor, "N d"],
    lr: float,
    factors: list[Tensor],
    is_product: list[bool],
    result: Float[Tensor, "N d"],
) -> None:
    """Write `before - lr * gradients` to `result`, which may be `before`."""
    remaining = iter(factors)
    start = 0
    for multiplied in is_product:
        block = next(remaining)
        right = next(remaining) if multiplied else None
        columns = block[0].numel()
        if right is not None:
            columns = block.shape[1] * right.shape[2]
        stop = start + columns
        if right is None:
            torch.sub(before[:, start:stop], block, alpha=lr, out=result[:, start:stop])
        else:
            for client, left in enumerate(block):
                gradient = multiply(left, right[client])
                old = before[client, start:stop].view_as(gradient)
                new = result[client, start:stop].view_as(gradient)
                torch.sub(old, gradient, alpha=lr, out=new)
        start = stop


DESCEND = torch.ops.fedlib_kernels.descend.default
DESCEND_IN_PLACE = torch.ops.fedlib_kernels.descend_in_place.default


def fuse_steps(graph: Graph) -> None:
    """Replace `u - lr * cat(blocks)` where a block is a product by oneDNN for every client."""
    for node in list(graph.nodes):
        if node.target == SUB:
            fuse_step(graph, node)
    graph.eliminate_dead_code()
    for node in list(graph.nodes):
        if node.target == DESCEND:
            reuse_models(graph, node)


def fuse_step(graph: Graph, node: Node) -> None:
    """Replace a difference of two nodes if it is such a step."""
    u, change = arguments(node)
    if node.kwargs or not is_only_for(change, node) or change.target != MUL:
        return
    joined, lr = arguments(change)
    if not isinstance(lr, float) or not is_only_for(joined, change) or joined.target != CAT:
        return
    blocks, *axis = arguments(joined)
    if axis != [1] or value(joined).dim() != 2 or value(node).shape != value(joined).shape:
        return
    factors: list[Node] = []
    is_product = []
    for block in blocks:
        product = product_of(block, joined)
        is_product.append(product is not None)
        if product is None:
            factors.append(block)
        else:
            factors.extend(arguments(product))
    if not any(is_product):
        return
    with graph.inserting_before(node):
        replaced = insert(graph, DESCEND, u, lr, factors, is_product)
    node.replace_all_uses_with(replaced)


def is_only_for(node: Any, user: Node) -> bool:
    """Whether a node's only user is another node."""
    return isinstance(node, Node) and list(node.users) == [user]


def product_of(block: Node, joined: Node) -> Node | None:
    """The products by oneDNN that a block reshapes for nobody else, or None."""
    user = joined
    while block.target == RESHAPE and is_only_for(block, user):
        user = block
        block = arguments(block)[0]
    if block.target == ONEDNN_BMM and is_only_for(block, user):
        return block
    return None


def reuse_models(graph: Graph, node: Node) -> None:
    """Make a step in place if it follows another and nothing else reads the models before it."""
    models = arguments(node)[0]
    if models.target != DESCEND or is_read_after(models, node):
        return
    with graph.inserting_before(node):
        insert(graph, DESCEND_IN_PLACE, *arguments(node))
    node.replace_all_uses_with(models)
    graph.erase_node(node)


def is_read_after(models: Node, step: Node) -> bool:
    """Whether an operation behind a step reads some models or a view of them."""
    for user in models.users:
        if user > step:
            return True
        if is_view(user) and is_read_after(user, step):
            return True
    return False


def is_view(node: Node) -> bool:
    """Whether a node's result may share memory with its arguments."""
    if node.target is operator.getitem:
        return True
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return True
    return any(result.alias_info is not None for result in schema.returns)
