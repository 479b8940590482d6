"""What a state is made of: a round keeps its shapes and its type of numbers."""

import pytest
import torch

import fedlib as fl
from fedlib.problems import pareto
from fedlib.testing.examples import examples
from tests.helpers.rounds import walk

SHORT = pareto(torch.eye(4).view(2, 1, 2, 4).bfloat16())
WORK = {"lr": 0.1, "local_steps": 2, "participants": 2}
SEVERAL = [
    fl.FSMGDA(**WORK),
    fl.FSMGDA(**WORK, batch_size=1),
    fl.FedCMOO(**WORK),
    fl.FedCMOOPref(**WORK),
    fl.FedCMOOTheory(**WORK, step=0.1, gram_participants=1),
    fl.MGDA(lr=0.1),
    fl.Scalarized(**WORK),
    fl.Scalarized(**WORK, task=1),
]
CASES = [(method, SHORT) for method in SEVERAL]
for group in examples().values():
    CASES.extend(group)


def kinds(state):
    """Shape and type of each field."""
    return [(values.shape, values.dtype) for values in state]


@pytest.mark.parametrize(("method", "problem"), CASES)
def test_a_round_keeps_the_shapes_and_the_types_of_the_state(method, problem):
    ((state, _, next_state, _),) = walk(method, problem, 1)
    assert kinds(next_state) == kinds(state)


@pytest.mark.parametrize("name", ["SSCA", "VerticalSSCA"])
def test_without_constraints_one_surrogate_is_averaged(name):
    method, problem = examples()[name][0]
    state = method.init(problem)
    assert state.linear.shape == (1, problem.dim)
    assert state.constant.shape == (1,)
