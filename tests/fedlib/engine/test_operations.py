"""Operations are noted as `make_fx` notes them, and a look at values is never missed."""

import numpy as np
import pytest
import torch
from process import python
from torch.func import grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from fedlib.engine.operations import Dependent, operations
from fedlib.engine.record import record

TABLE = torch.arange(12.0).reshape(4, 3)


def step(w, x, rows):
    """Two maps, a gradient, a constant from outside, a buffer that is written to."""

    def loss(u, x, rows):
        held = torch.zeros_like(x @ u)
        held[:2] += (x @ u)[:2]
        return torch.log1p(held.exp()).mean() + (TABLE[rows] @ u).sum() + torch.tensor(0.5)

    one = vmap(lambda w, x, rows: w - 0.1 * grad(loss)(w, x, rows), in_dims=(None, 0, 0))
    return (vmap(one, in_dims=(0, None, None))(w, x, rows), *w.split(1))


def targets(module):
    return [(n.op, str(n.target) if n.op == "call_function" else "") for n in module.graph.nodes]


def test_the_operations_are_those_of_make_fx():
    w, x, rows = torch.ones(2, 3), torch.rand(5, 4, 3), torch.arange(20).reshape(5, 4) % 4
    ours = operations(step, (w, x, rows))
    theirs = make_fx(step, tracing_mode="fake", _allow_non_fake_inputs=True)(w, x, rows)
    assert sorted(targets(ours)) == sorted(targets(theirs))  # constants stand elsewhere
    w = torch.rand(2, 3)
    for given, expected in zip(ours(w, x, rows), step(w, x, rows), strict=True):
        assert torch.equal(given, expected)
    for node in ours.graph.nodes:
        assert node.op == "output" or "val" in node.meta


def test_nothing_of_the_caller_is_marked_or_kept():
    x = torch.ones(3)
    operations(lambda x: (x * TABLE[0],), (x,))
    assert not vars(x)
    assert not vars(TABLE)


LOOKS = {
    "item": lambda x: x * x[0].item(),
    "a branch": lambda x: x if x[0] > 0 else -x,
    "float": lambda x: x * float(x[0]),
    "numpy": lambda x: x * float(x.numpy().sum()),
    "an array": lambda x: x * float(np.sqrt(x)[0]),
    "a list": lambda x: x * x.tolist()[0],
    "a text": lambda x: x * len(str(x)),
    "an index": lambda x: x * x[x.long()[0]],
    "a length": lambda x: x[: x.long()[1]],
    "a range": lambda x: torch.arange(x.long()[1]),
    "a tensor of tensors": lambda x: x * torch.tensor([x[0], 1.0, 2.0]),
    "nested": lambda x: x * torch.as_tensor([[x[0], x[1], x[2]]])[0],
    "a constructor": lambda x: x * torch.Tensor([x[0], x[1], x[2]]),
    "new": lambda x: x * x.new_tensor([x[0], 1.0, 2.0]),
    "full": lambda x: x * torch.full((3,), x[0]),
    "a mask": lambda x: x[x > 1],
    "nonzero": lambda x: torch.where(x > 1)[0],
    "unique": torch.unique,
    "equal": lambda x: x * torch.equal(x, x),
    "repeats": lambda x: torch.repeat_interleave(x, x.long()),
    "memory": lambda x: x * x.untyped_storage()[0],
}


@pytest.mark.parametrize("function", LOOKS.values(), ids=LOOKS)
def test_a_look_at_values_is_noticed(function):
    with pytest.raises(Dependent):
        operations(lambda x: (function(x),), (torch.tensor([1.0, 2.0, 0.0]),))


def test_a_shape_that_depends_on_values_is_recorded_all_the_same():
    replay = record(lambda x: x[x > 1].sum(), torch.tensor([1.0, 2.0, 3.0]))
    assert replay(torch.tensor([4.0, 5.0, 0.0])) == 9.0


def test_an_operation_of_ours_is_not_computed_meanwhile():
    played = []
    schema = "(Tensor x, int much) -> (Tensor, Tensor)"

    @torch.library.custom_op("fedlib::tested", mutates_args=(), schema=schema)
    def tested(x, much):
        played.append(much)
        return x * much, x.sum(-1).long()

    @tested.register_fake
    def _(x, much):
        return torch.empty_like(x), x.new_empty(x.shape[:-1], dtype=torch.long)

    def step(x):
        scaled, sums = tested(2.0 * x, 3)
        return scaled - 1.0, sums + 1

    x = torch.rand(4, 3, dtype=torch.float64)
    graph = operations(step, (x,))
    assert not played
    scaled, sums = (node.meta["val"] for node in graph.graph.output_node().args[0])
    assert (scaled.shape, scaled.dtype) == ((4, 3), torch.float64)
    assert (sums.shape, sums.dtype) == ((4,), torch.long)
    for given, expected in zip(graph(x), step(x), strict=True):
        assert torch.equal(given, expected)
    assert played == [3, 3]


def test_no_compiler_is_imported():
    code = (
        "import sys, torch; from fedlib.engine.record import record;"
        "record(lambda x: torch.func.vmap(torch.func.grad(lambda v: (v**2).sum()))(x),"
        "torch.ones(2, 3)); print('torch._dynamo' in sys.modules)"
    )
    done = python("-c", code)
    assert done.stdout == "False\n", done.stderr
