"""What SSCA reaches: constraints met in the limit, multipliers, growing penalties."""

from dataclasses import replace

import numpy as np
import pytest

import fedlib as fl
from tests.helpers.networks import NORM, RHO, small
from tests.helpers.problems import np_problem, objectives

STEPS = {"tau": 1.0, "rho": RHO, "gamma": fl.PowerLaw(0.9, 0.5)}


def curves(trace):
    """The multiplier and the slack of the one constraint, round by round."""
    return trace.info["nu"][0, 0], trace.info["slack"][0, 0]


def test_the_problems_own_objective_and_constraint():
    """Two quadratics, one of them a constraint: the multiplier and the solution are known."""
    both = objectives(
        clients=4,
        rows=3,
        dim=3,
        spread=0.1,
        noise=0.1,
    )
    problem = replace(both, num_objectives=1, num_constraints=1)
    middle = both.heldout[0]
    least = both.mean_losses(middle[1])[1]
    away = both.mean_losses(middle[0])[1]
    level = float(least + 0.25 * (away - least))
    # F_k = |w - c_k|^2 / 2 + its least value: half of the way from c_0 to c_1, where nu = 1
    solution = middle.mean(0)
    method = fl.ConstrainedSSCA(**STEPS, penalty=100.0, levels=level)
    trace = fl.run(method, problem, rounds=400, evaluate_every=400)
    w = trace.state.w[0]
    assert problem.mean_losses(w)[1].item() == pytest.approx(level, abs=1e-3)
    assert (w - solution).norm() < 0.02 * (middle[0] - middle[1]).norm()
    nu, slack = curves(trace)
    assert nu[-1] == pytest.approx(1, abs=0.05)
    assert slack[-1] < 1e-9


def test_a_constraint_that_does_not_bind_loses_its_multiplier():
    """Neyman-Pearson on breast cancer: the level is far above what the least objective needs."""
    problem = np_problem()
    method = fl.ConstrainedSSCA(**STEPS, penalty=100.0, levels=0.2)
    trace = fl.run(method, problem, rounds=200, evaluate_every=200)
    nu, slack = curves(trace)
    assert nu[:50].max() > 1
    assert nu[-100:].max() == 0
    assert slack[-100:].max() == 0
    f, g = problem.mean_losses(trace.state.w[0])
    assert max(f, g) < 0.18


def test_a_growing_penalty_shrinks_the_slack():
    problem = small(hidden=4, rows=60)
    # much smaller penalties let the model fall to 0 first, where the gradient is 0 too: there it
    # stays, whatever the penalty grows to (the paper asks for a large first one)
    fixed = fl.ConstrainedSSCA(**NORM | {"penalty": 20.0})
    growing = replace(fixed, growth=3.0, patience=20, tolerance=1e-3)
    options = {"rounds": 200, "evaluate_every": 200}
    _, slack = curves(fl.run(fixed, problem, **options))
    assert slack[-1] > 0.3
    trace = fl.run(growing, problem, **options)
    _, slack = curves(trace)
    assert slack[-1] < 1e-3
    penalty = trace.info["penalty"][0]
    grown = np.flatnonzero(np.diff(penalty)) + 1
    assert set(grown) <= set(range(20, 201, 20))
    ratios = penalty[1:] / penalty[:-1]
    assert set(ratios.round(9)) == {1.0, 3.0}
    assert penalty[-1] < 20 * 3.0**9  # it stops once the constraint is met
