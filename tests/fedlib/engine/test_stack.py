"""What the loop does to the problems of several seeds before it runs them together."""

import pytest
import torch

import fedlib as fl
from fedlib.engine.stack import pad_rows
from fedlib.metrics import fw_gap
from fedlib.problems import pareto
from papers.fedfw.matrices import multi_task_regression
from tests.helpers.expect import close


def test_problems_are_padded_to_the_most_rows_of_a_client():
    short = pareto(torch.zeros(2, 2, 1, 3).double())
    long = pareto(torch.zeros(2, 5, 1, 3).double())
    padded, unchanged = pad_rows([short, long])
    assert torch.equal(unchanged.rows, long.rows)
    assert torch.equal(padded.rows[:, :2], short.rows)
    assert torch.equal(padded.rows[:, 2:], short.rows[:, :1].expand(-1, 3))
    assert padded.lengths.tolist() == list(short.sizes) == [2, 2]


def within_own_ball(seed):
    """A problem whose feasible set has a radius of the seed's own, which its metrics use."""
    return multi_task_regression(
        seed=seed,
        clients=3,
        rows=4,
        features=5,
        tasks=4,
        dtype=torch.float64,
    )


@pytest.mark.parametrize("engine", [fl.Vectorized, fl.Loop])
def test_every_seed_runs_within_its_own_set(engine):
    """The radius of a ball may depend on the seed: alone or among others, it is the seed's own."""
    problem = within_own_ball(2)
    assert problem.set.radius != within_own_ball(0).set.radius
    method = fl.FedFW(lam0=0.1)
    both = fl.run(
        method,
        within_own_ball,
        rounds=4,
        seeds=(0, 2),
        engine=engine,
    )
    alone = fl.run(
        method,
        within_own_ball,
        rounds=4,
        seeds=(2,),
        engine=engine,
    )
    close(both.model(2), alone.model(2))
    close(fw_gap(problem, both.model(2)), fw_gap(problem, alone.model(2)))
    for name, curve in alone.metrics.items():
        close(both.metrics[name][1], curve[0])
