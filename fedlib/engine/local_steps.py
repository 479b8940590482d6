"""Local steps in captured graphs: products of clients are subtracted while they are in the cache.

A gradient step `u - lr * gradient` of N clients with large models writes all gradients to memory
and reads them again. The pass of this module subtracts the products of one client from its model
before those of the next client are computed. From the second step on, it changes the models in
place, and computes the next step's first product with a client's model directly after the model
has changed. It applies where `choose_kernels` has taken oneDNN's products.
"""

import operator
from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.fx import Graph, Node

from fedlib.engine.graphs import arguments, insert, value
from fedlib.engine.kernels import EXPAND, ONEDNN_BMM, PERMUTE, RESHAPE, multiply

SPLIT = torch.ops.aten.split_with_sizes.default
SUB = torch.ops.aten.sub.Tensor
MUL = torch.ops.aten.mul.Tensor
CAT = torch.ops.aten.cat.default
CLONE = torch.ops.aten.clone.default
#: The two ways in which a graph transposes the matrices of all clients, with their arguments.
TRANSPOSED = [(PERMUTE, [0, 2, 1]), (torch.ops.aten.transpose.int, 1, 2)]


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


@torch.library.custom_op(
    "fedlib_kernels::descend_and_multiply",
    mutates_args=("u",),
    schema=f"(Tensor(a!) u, {ARGUMENTS}, Tensor inputs, int block) -> Tensor",
)
def descend_and_multiply(
    u: Tensor,
    lr: float,
    factors: list[Tensor],
    is_product: list[bool],
    inputs: Tensor,
    block: int,
) -> Tensor:
    """Subtract `lr * gradients` from the models `u [N, d]`, and multiply with the new models.

    The number `block` is that of a block whose gradient is a product `[N, m, k]`. The result
    `[N, n, m]` has `inputs [N, n, k]` times the transposed block, of every client. `descend`
    describes the other arguments.
    """
    rows = factors_of_block(factors, is_product, block)[0].shape[1]
    products = inputs.new_empty(*inputs.shape[:2], rows)
    subtract(u, lr, factors, is_product, u, (block, inputs, products))
    return products


@descend_and_multiply.register_fake
def _(
    u: Tensor,
    lr: float,
    factors: list[Tensor],
    is_product: list[bool],
    inputs: Tensor,
    block: int,
) -> Tensor:
    del u, lr
    rows = factors_of_block(factors, is_product, block)[0].shape[1]
    return inputs.new_empty(*inputs.shape[:2], rows)


@torch.library.custom_op(
    "fedlib_kernels::descend_with_product",
    mutates_args=(),
    schema=f"(Tensor u, {ARGUMENTS}, Tensor inputs, int block) -> (Tensor, Tensor)",
)
def descend_with_product(
    u: Tensor,
    lr: float,
    factors: list[Tensor],
    is_product: list[bool],
    inputs: Tensor,
    block: int,
) -> tuple[Tensor, Tensor]:
    """The results of `descend` and of `descend_and_multiply`."""
    result = u.new_empty(factors[0].shape[0], u.shape[-1])
    rows = factors_of_block(factors, is_product, block)[0].shape[1]
    products = inputs.new_empty(*inputs.shape[:2], rows)
    following = (block, inputs, products)
    subtract(u.expand_as(result), lr, factors, is_product, result, following)
    return result, products


@descend_with_product.register_fake
def _(
    u: Tensor,
    lr: float,
    factors: list[Tensor],
    is_product: list[bool],
    inputs: Tensor,
    block: int,
) -> tuple[Tensor, Tensor]:
    del lr
    rows = factors_of_block(factors, is_product, block)[0].shape[1]
    result = u.new_empty(factors[0].shape[0], u.shape[-1])
    return result, inputs.new_empty(*inputs.shape[:2], rows)


def factors_of_block(
    factors: list[Any],
    is_product: list[bool],
    block: int,
) -> list[Any]:
    """The entries of `factors` that give a block, by its number."""
    start = block + sum(is_product[:block])
    return factors[start : start + 1 + is_product[block]]


def subtract(
    before: Float[Tensor, "N d"],
    lr: float,
    factors: list[Tensor],
    is_product: list[bool],
    result: Float[Tensor, "N d"],
    following: tuple[int, Tensor, Tensor] | None = None,
) -> None:
    """Write `before - lr * gradients` to `result`, which may be `before`.

    `following` are the number of a block, the inputs of the next product with that block, and where
    the product is written; `descend_and_multiply` gives their shapes.
    """
    next_block, inputs, products = following or (-1, before, before)
    remaining = iter(factors)
    start = 0
    for number, multiplied in enumerate(is_product):
        block = next(remaining)
        right = next(remaining) if multiplied else None
        shape = block.shape
        if right is not None:
            shape = torch.Size([*block.shape[:2], right.shape[2]])
        stop = start + shape[1:].numel()
        old = before[:, start:stop].view(shape)
        new = result[:, start:stop].view(shape)
        start = stop
        if right is None:
            torch.sub(old, block, alpha=lr, out=new)
            continue
        clients = zip(old, new, block, right, strict=True)
        if number == next_block:
            subtract_and_multiply(clients, lr, inputs, products)
        else:
            for old_matrix, new_matrix, left_factor, right_factor in clients:
                gradient = multiply(left_factor, right_factor)
                torch.sub(old_matrix, gradient, alpha=lr, out=new_matrix)


def subtract_and_multiply(
    clients: Iterable[tuple[Tensor, Tensor, Tensor, Tensor]],
    lr: float,
    inputs: Float[Tensor, "N n k"],
    products: Float[Tensor, "N n m"],
) -> None:
    """Multiply with a client's new matrix while it is in the cache.

    `clients` are their old and new matrices `[m, k]` and the two factors of each gradient.
    """
    for client, rows, product in zip(clients, inputs, products, strict=True):
        old, new, left_factor, right_factor = client
        torch.sub(old, multiply(left_factor, right_factor), alpha=lr, out=new)
        product.copy_(multiply(rows, new.T))


DESCEND = torch.ops.fedlib_kernels.descend.default
DESCEND_IN_PLACE = torch.ops.fedlib_kernels.descend_in_place.default
DESCEND_AND_MULTIPLY = torch.ops.fedlib_kernels.descend_and_multiply.default
DESCEND_WITH_PRODUCT = torch.ops.fedlib_kernels.descend_with_product.default


def fuse_steps(graph: Graph) -> None:
    """Replace `u - lr * cat(blocks)` where a block is a product by oneDNN for every client."""
    for node in list(graph.nodes):
        if node.target == SUB:
            fuse_step(graph, node)
    graph.eliminate_dead_code()
    for node in list(graph.nodes):
        if node.target == DESCEND:
            reuse_models(graph, node)
    for node in list(graph.nodes):
        if node.target in (DESCEND, DESCEND_IN_PLACE):
            multiply_early(graph, node)
    graph.eliminate_dead_code()


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
            left, right = arguments(product)
            with graph.inserting_before(node):
                left = insert(graph, CLONE, left, memory_format=torch.contiguous_format)
            factors.extend([left, right])
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


def multiply_early(graph: Graph, step: Node) -> None:
    """Let a step compute the first product with a matrix that it changes.

    The product must come before the next step. Its other factor must be independent of the models,
    as a minibatch's inputs are.
    """
    before, _, factors, is_product = arguments(step)
    models = step if step.target == DESCEND else before
    for node in list(graph.nodes):
        if node <= step:
            continue
        if node.target == DESCEND_IN_PLACE and arguments(node)[0] is models:
            return
        if node.target != ONEDNN_BMM:
            continue
        inputs, matrices = arguments(node)
        block = number_of_block(matrices, models)
        if block is None or depends_on(inputs, models) or not is_product[block]:
            continue
        left, right = factors_of_block(factors, is_product, block)
        shape = (value(left).shape[1], value(right).shape[2])
        if value(matrices).shape[1:] != shape[::-1]:
            continue
        move_before(step, inputs)
        with graph.inserting_before(step):
            multiplied = with_product(graph, step, inputs, block)
        node.replace_all_uses_with(multiplied)
        graph.erase_node(node)
        graph.erase_node(step)
        return


def with_product(graph: Graph, step: Node, inputs: Node, block: int) -> Node:
    """The product, by a new step for another one; the latter's models become the former's."""
    options = (*arguments(step), inputs, block)
    if step.target == DESCEND_IN_PLACE:
        return insert(graph, DESCEND_AND_MULTIPLY, *options)
    both = insert(graph, DESCEND_WITH_PRODUCT, *options)
    step.replace_all_uses_with(insert(graph, operator.getitem, both, 0))
    return insert(graph, operator.getitem, both, 1)


def number_of_block(matrices: Node, models: Node) -> int | None:
    """The number of the block of some models `[N, d]` that is transposed in `matrices [N, k, m]`.

    It is None if they are anything else.
    """
    transposed = without_shape(matrices)
    if (transposed.target, *arguments(transposed)[1:]) not in TRANSPOSED:
        return None
    block = arguments(transposed)[0]
    while block.target == RESHAPE:
        block = arguments(block)[0]
    if block.target is not operator.getitem:
        return None
    blocks, number = arguments(block)
    if blocks.target != SPLIT:
        return None
    source, _, *axis = arguments(blocks)
    if source is not models or axis != [1]:
        return None
    return int(number)


def without_shape(node: Node) -> Node:
    """The node that another repeats in its own shape, if it does, or else that node itself."""
    while node.target in (RESHAPE, EXPAND):
        source = arguments(node)[0]
        if value(source).shape != value(node).shape:
            break
        node = source
    return node


def depends_on(node: Node, other: Node) -> bool:
    """Whether a node's result is made of another's."""
    return node is other or any(depends_on(before, other) for before in node.all_input_nodes)


def move_before(step: Node, node: Node) -> None:
    """Compute a node, and what it is made of, before a step on which it does not depend."""
    if node > step:
        for before in node.all_input_nodes:
            move_before(step, before)
        step.prepend(node)
