"""ConstrainedSSCA on an objective and a constraint: its plain twin, and when the penalty grows."""

from dataclasses import replace

import pytest
import torch

import fedlib as fl
from fedlib.problems import quadratics
from tests.helpers.expect import close
from tests.helpers.networks import GAMMA, RHO
from tests.helpers.problems import double
from tests.helpers.rounds import walk

A = double([3.0, 1.0], [2.0, -1.0])
B = double([-1.0, 0.5], [0.0, 0.3])
PROBLEM = quadratics(A, B, level=0.4)
TAU = 0.7
LEVEL = 0.1
PENALTY = 3.0
METHOD = fl.ConstrainedSSCA(
    tau=TAU,
    rho=RHO,
    gamma=GAMMA,
    penalty=PENALTY,
    levels=LEVEL,
)


def best_response(objective, linear, constant):
    """The minimizer at the multiplier that bisection finds in [0, penalty]."""
    low = 0.0
    high = PENALTY
    for _ in range(80):
        nu = (low + high) / 2
        w = -(objective + nu * linear) / (2 * TAU * (1 + nu))
        excess = constant + linear @ w + TAU * w @ w - LEVEL
        if excess > 0:
            low = nu
        else:
            high = nu
    return w, nu


def test_equals_its_plain_twin():
    w = PROBLEM.w0
    objective = torch.zeros(2).double()
    linear = torch.zeros(2).double()
    constant = 0.0
    for t, (_, _, state, info) in enumerate(walk(METHOD, PROBLEM, 12), start=1):
        rho = RHO(t)
        slope = w - B.mean(0)
        value = PROBLEM.mean_losses(w)[1]
        objective = (1 - rho) * objective + rho * (w - A.mean(0) - 2 * TAU * w)
        linear = (1 - rho) * linear + rho * (slope - 2 * TAU * w)
        constant = (1 - rho) * constant + rho * (value - slope @ w + TAU * w @ w)
        best, nu = best_response(objective, linear, constant)
        w = (1 - GAMMA(t)) * w + GAMMA(t) * best
        close(state.w, w, 1e-9)
        assert info["nu"].item() == pytest.approx(nu, abs=1e-9)
    assert 0 < nu < PENALTY


@pytest.mark.parametrize(("level", "factor"), [(100.0, 1.0), (-100.0, 2.0)])
def test_without_tolerance_the_penalty_grows_only_where_there_is_slack(level, factor):
    method = replace(
        METHOD,
        levels=level,
        tolerance=0.0,
        patience=1,
        growth=2.0,
    )
    ((_, _, state, _),) = walk(method, PROBLEM, 1)
    assert state.factor == factor
