"""How methods read the constraint: at its threshold, and with clients of unequal weight."""

from dataclasses import replace

import pytest
import torch

import fedlib as fl
from fedlib.core.problem import Draw
from fedlib.problems import constrained_pareto, quadratics

EVERYONE = Draw(torch.arange(2))


def double(*values):
    """A tensor of float64 numbers."""
    return torch.tensor(values, dtype=torch.float64)


AT_THE_THRESHOLD = [
    fl.PenaltyFedAvg(
        lr=0.5,
        local_steps=1,
        participants=1,
        level=0.5,
        tolerance=0.5,
        rho=2.0,
    ),
    fl.PenaltySGM(
        lr=0.5,
        level=0.5,
        tolerance=0.5,
        rho=2.0,
    ),
]


@pytest.mark.parametrize("method", AT_THE_THRESHOLD, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize(("start", "on"), [(2.0, 0.0), (2.5, 1.0)])
def test_the_hinge_is_on_only_above_level_plus_tolerance(method, start, on):
    """f = (w - 4)^2 / 2 and g = w^2 / 2 - 1, which is 1 = level + tolerance at w = 2."""
    problem = quadratics(double([4.0]), double([0.0]), level=1.0)
    problem = replace(problem, w0=double(start))
    draw = Draw(torch.tensor([0]))
    state, info = method.round(fl.Vectorized(problem), method.init(problem), draw)
    assert info["g_hat"] == pytest.approx(start**2 / 2 - 1)
    assert info["sigma"] == on
    assert info["sigma"].dtype == torch.float64
    assert state.w.item() == pytest.approx(start - 0.5 * (start - 4 + on * 2 * start))


WORK = {"lr": 0.5, "local_steps": 1, "participants": 2}
WITH_A_CONSTRAINT = [
    fl.FedSGM(**WORK, tolerance=0.0),
    fl.PenaltyFedAvg(**WORK, tolerance=0.0, rho=1.0),
    fl.MultiFedSGM(**WORK, tolerance=0.0),
]


@pytest.mark.parametrize("method", WITH_A_CONSTRAINT, ids=lambda x: type(x).__name__)
def test_the_constraint_is_the_weighted_mean_of_the_clients_values(method):
    """g_j = |w - b_j|^2 / 2 - 3/4 with b = (0, 2), so g_1 = -3/4 and g_2 = 5/4 at w = 0."""
    centres = double([4.0], [4.0]).view(2, 1, 1, 1)
    problem = constrained_pareto(centres, double([0.0], [2.0]), level=0.25, w0=double(0.0))
    _, info = method.round(fl.Vectorized(problem), method.init(problem), EVERYONE)
    assert info["g_hat"] == pytest.approx(0.25)
    assert info["sigma"] == 1
    unequal = problem.weighted((7.0, 1.0))
    _, info = method.round(fl.Vectorized(unequal), method.init(unequal), EVERYONE)
    assert info["g_hat"] == pytest.approx(-0.5)
    assert info["sigma"] == 0
