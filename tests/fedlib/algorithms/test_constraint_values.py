"""How methods read the constraint: at its threshold, and with clients of unequal weight."""

from dataclasses import replace

import pytest
import torch

import fedlib as fl
from fedlib.core.problem import Draw
from fedlib.problems import constrained_pareto, quadratics
from tests.helpers.problems import double

HINGE = {"lr": 0.5, "level": 0.5, "tolerance": 0.5, "rho": 2.0}
WORK = {"lr": 0.5, "local_steps": 1, "participants": 2, "tolerance": 0.0}


def first_round(method, problem):
    """The state and the report after a round of all clients."""
    everyone = Draw(torch.arange(problem.num_clients))
    return method.round(fl.Vectorized(problem), method.init(problem), everyone)


@pytest.mark.parametrize(
    "method",
    [fl.PenaltyFedAvg(**HINGE, local_steps=1, participants=1), fl.PenaltySGM(**HINGE)],
)
@pytest.mark.parametrize(("start", "on"), [(2.0, 0.0), (2.5, 1.0)])
def test_the_hinge_is_on_only_above_level_plus_tolerance(method, start, on):
    """f = (w - 4)^2 / 2 and g = w^2 / 2 - 1, which is 1 = level + tolerance at w = 2."""
    problem = quadratics(double([4.0]), double([0.0]), level=1.0)
    state, info = first_round(method, replace(problem, w0=double(start)))
    assert info["g_hat"] == pytest.approx(start**2 / 2 - 1)
    assert info["sigma"] == on
    assert info["sigma"].dtype == torch.float64
    assert state.w.item() == pytest.approx(start - 0.5 * (start - 4 + on * 2 * start))


@pytest.mark.parametrize(
    "method",
    [fl.FedSGM(**WORK), fl.PenaltyFedAvg(**WORK, rho=1.0), fl.MultiFedSGM(**WORK)],
)
@pytest.mark.parametrize(
    ("weights", "g", "sigma"),
    [((1.0, 1.0), 0.25, 1), ((7.0, 1.0), -0.5, 0)],
)
def test_the_constraint_is_the_weighted_mean_of_the_clients_values(method, weights, g, sigma):
    """g_j = |w - b_j|^2 / 2 - 3/4 with b = (0, 2), so g_1 = -3/4 and g_2 = 5/4 at w = 0."""
    centres = double([4.0], [4.0]).view(2, 1, 1, 1)
    problem = constrained_pareto(
        centres,
        double([0.0], [2.0]),
        level=0.25,
        w0=double(0.0),
    )
    _, info = first_round(method, problem.weighted(weights))
    assert info["g_hat"] == pytest.approx(g)
    assert info["sigma"] == sigma
