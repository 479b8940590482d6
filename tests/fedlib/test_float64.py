"""No computation in float64 passes through float32, and float32 agrees with float64.

A spy looks at every operation of torch: a float32 tensor that comes from none, unless all it holds
are whole numbers, is a detour that loses digits. Random draws are what they are, some in float32.
"""

import pytest
import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from fedlib.core import Loop
from fedlib.testing.examples import examples
from tests.helpers.randoms import generator

SINGLE = torch.float32


class Spy(TorchDispatchMode):
    """Collects the operations that make a float32 tensor from none."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        inputs = pytree.tree_leaves((args, kwargs))
        drawn = function in (
            torch.ops.aten.rand.generator,
            torch.ops.aten.randn.generator,
        )
        if not drawn and not any(isinstance(x, Tensor) and x.dtype == SINGLE for x in inputs):
            outputs = (x for x in pytree.tree_leaves(result) if isinstance(x, Tensor))
            if any(x.dtype == SINGLE and not bool((x == x.round()).all()) for x in outputs):
                self.found.append(str(function))
        return result


def spied(function, *arguments):
    """What a function gives, once it made no float32 that loses digits."""
    with Spy() as spy:
        result = function(*arguments)
    assert spy.found == []
    return result


def numbers(tree):
    """The tensors of numbers in a tree, in float64."""
    leaves = (x for x in pytree.tree_leaves(tree) if isinstance(x, Tensor))
    return [x.double() for x in leaves if x.is_floating_point()]


@pytest.mark.parametrize("name", sorted(examples()))
def test_a_round_stays_in_float64(name):
    for algorithm, problem in examples()[name]:
        assert problem.w0.dtype == torch.float64
        state = spied(algorithm.init, problem)
        draw = algorithm.draw(problem, generator())
        next_state, info = spied(algorithm.round, Loop(problem), state, draw)
        spied(problem.metrics, next_state.w, problem)
        assert next_state.w.dtype == torch.float64
        assert {x.dtype for x in numbers(info)} <= {torch.float64}
