"""What a state is made of: a round keeps its shapes and its type of numbers."""

import pytest
import torch

import fedlib as fl
from fedlib.core.sampling import seeded
from fedlib.problems import pareto
from fedlib.testing.examples import examples

EXAMPLES = [example for group in examples().values() for example in group]


def kinds(state):
    """Shape and type of each field."""
    return {name: (values.shape, values.dtype) for name, values in state._asdict().items()}


NAMES = [type(algorithm).__name__ for algorithm, _ in EXAMPLES]


@pytest.mark.parametrize(("algorithm", "problem"), EXAMPLES, ids=NAMES)
def test_a_round_keeps_the_shapes_of_the_state(algorithm, problem):
    state = algorithm.init(problem)
    draw = algorithm.draw(problem, seeded(0, "rounds"))
    after, _ = algorithm.round(fl.Vectorized(problem), state, draw)
    assert kinds(after) == kinds(state)


@pytest.mark.parametrize("name", ["SSCA", "VerticalSSCA"])
def test_without_constraints_one_surrogate_is_averaged(name):
    algorithm, problem = examples()[name][0]
    state = algorithm.init(problem)
    assert state.linear.shape == (1, problem.dim)
    assert state.constant.shape == (1,)


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


@pytest.mark.parametrize("algorithm", SEVERAL, ids=lambda x: type(x).__name__)
def test_a_state_of_short_floats_stays_one(algorithm):
    problem = pareto(torch.eye(4).view(2, 1, 2, 4).bfloat16())
    state = algorithm.init(problem)
    draw = algorithm.draw(problem, seeded(0, "rounds"))
    after, _ = algorithm.round(fl.Vectorized(problem), state, draw)
    assert kinds(after) == kinds(state)
