"""ConstrainedSSCA on an objective and a constraint: its plain twin, and when the penalty grows."""

from dataclasses import replace

import pytest
import torch

import fedlib as fl
from fedlib.problems import quadratics
from tests.helpers.expect import close
from tests.helpers.rounds import walk

A = torch.tensor([[3.0, 1.0], [2.0, -1.0]], dtype=torch.float64)
B = torch.tensor([[-1.0, 0.5], [0.0, 0.3]], dtype=torch.float64)
PROBLEM = quadratics(A, B, level=0.4)
RHO = fl.PowerLaw(0.6, 0.3)
GAMMA = fl.PowerLaw(0.9, 0.35)
METHOD = fl.ConstrainedSSCA(
    tau=0.7,
    rho=RHO,
    gamma=GAMMA,
    penalty=3.0,
    levels=0.1,
)


def excess(w, linear, constant):
    """How far the surrogate of the constraint lies above the level."""
    return float(constant + linear @ w + METHOD.tau * w @ w - METHOD.levels)


def best_response(objective, linear, constant):
    """The minimizer at the multiplier that bisection finds in [0, penalty]."""
    low = 0.0
    high = METHOD.penalty
    for _ in range(80):
        nu = (low + high) / 2
        w = -(objective + nu * linear) / (2 * METHOD.tau * (1 + nu))
        if excess(w, linear, constant) > 0:
            low = nu
        else:
            high = nu
    return w, nu


def test_equals_its_plain_twin():
    w = PROBLEM.w0
    middle = A.mean(0)
    ball = B.mean(0)
    objective = torch.zeros(2, dtype=torch.float64)
    linear = torch.zeros(2, dtype=torch.float64)
    constant = 0.0
    for t, (_, _, state, info) in enumerate(walk(METHOD, PROBLEM, 12), start=1):
        rho = 0.6 / t**0.3
        gamma = 0.9 / t**0.35
        slope = w - ball
        value = PROBLEM.mean_losses(w)[1]
        objective = (1 - rho) * objective + rho * (w - middle - 2 * METHOD.tau * w)
        linear = (1 - rho) * linear + rho * (slope - 2 * METHOD.tau * w)
        constant = (1 - rho) * constant + rho * (value - slope @ w + METHOD.tau * w @ w)
        best, nu = best_response(objective, linear, constant)
        w = (1 - gamma) * w + gamma * best
        close(state.w, w, 1e-9)
        assert info["nu"].item() == pytest.approx(nu, abs=1e-9)
    assert 0 < nu < METHOD.penalty


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
