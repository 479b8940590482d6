"""What SSCA reaches: constraints met in the limit, multipliers, growing penalties."""

from dataclasses import replace

import numpy as np
import pytest

import fedlib as fl
from tests.helpers.networks import NORM, RHO, mean_gradient, small
from tests.helpers.problems import np_problem, objectives


@pytest.mark.weekly
def test_with_full_batches_the_constraint_is_met_in_the_limit():
    gamma = fl.PowerLaw(0.9, 0.6)
    algorithm = fl.ConstrainedSSCA(**NORM | {"levels": 0.3, "gamma": gamma})
    problem = small(hidden=4, rows=60)
    # after 600 rounds the cost is 0.296, after 1200 0.2987; as slow as on 300 digits
    trace = fl.run(algorithm, problem, rounds=1200, evaluate_every=400, progress=False)
    far = np.abs(trace.metrics["cost"][0] - 0.3)
    assert (np.diff(far) < 0).all()  # nearer and nearer
    assert far[-1] < 3e-3
    w = trace.state.w[0]
    assert trace.info["slack"][0, 0, 0] > 0.1  # from far away
    assert trace.info["slack"][0, 0, -1] < 1e-6
    nu = trace.info["nu"][0, 0, -1]
    assert 0 < nu < 1e5
    slope = mean_gradient(problem, w, problem.rows.flatten())
    left = slope + 2 * w / nu  # the gradient of (27) at lambda = 1 / nu (Theorem 5)
    assert left.norm() < 0.2 * slope.norm()


def test_the_problems_own_objective_and_constraint():
    """Two quadratics, one of them a constraint: the multiplier and the solution are known."""
    both = objectives(
        clients=4,
        rows=3,
        tasks=2,
        dim=3,
        spread=0.1,
        noise=0.1,
    )
    problem = replace(both, num_objectives=1, num_constraints=1)
    middle = both.heldout[0]
    floor = both.mean_losses(middle[1])[1]
    level = float(floor + 0.25 * (both.mean_losses(middle[0])[1] - floor))
    # F_k = |w - c_k|^2 / 2 + its floor: half of the way from c_0 to c_1, where nu = 1
    solution = middle.mean(0)
    steps = {"tau": 1.0, "rho": RHO, "gamma": fl.PowerLaw(0.9, 0.5)}
    algorithm = fl.ConstrainedSSCA(**steps, penalty=100.0, levels=level)
    trace = fl.run(algorithm, problem, rounds=400, evaluate_every=400, progress=False)
    w = trace.state.w[0]
    assert problem.mean_losses(w)[1].item() == pytest.approx(level, abs=1e-3)
    assert (w - solution).norm() < 0.02 * (middle[0] - middle[1]).norm()
    assert trace.info["nu"][0, 0, -1] == pytest.approx(1, abs=0.05)
    assert trace.info["slack"][0, 0, -1] < 1e-9


def test_a_constraint_that_does_not_bind_loses_its_multiplier():
    """Neyman-Pearson on breast cancer: the level is far above what the least objective needs."""
    problem = np_problem()
    steps = {"tau": 1.0, "rho": RHO, "gamma": fl.PowerLaw(0.9, 0.5)}
    algorithm = fl.ConstrainedSSCA(**steps, penalty=100.0, levels=0.2)
    trace = fl.run(algorithm, problem, rounds=200, evaluate_every=200, progress=False)
    assert trace.info["nu"][0, 0, :50].max() > 1
    assert trace.info["nu"][0, 0, -100:].max() == 0
    assert trace.info["slack"][0, 0, -100:].max() == 0
    f, g = problem.mean_losses(trace.state.w[0]).tolist()
    assert max(f, g) < 0.18


def test_a_growing_penalty_shrinks_the_slack():
    problem = small(hidden=4, rows=60)
    # much smaller penalties let the model fall to 0 first, where the gradient is 0 too: there it
    # stays, whatever the penalty grows to (the paper asks for a large first one)
    fixed = fl.ConstrainedSSCA(**NORM | {"penalty": 20.0})
    growing = replace(fixed, growth=3.0, patience=20, tolerance=1e-3)
    options = {"rounds": 200, "evaluate_every": 200, "progress": False}
    kept, grew = (fl.run(a, problem, **options).info for a in (fixed, growing))
    assert kept["slack"][0, 0, -1] > 0.3
    assert grew["slack"][0, 0, -1] < 1e-3
    assert (kept["penalty"] == 20).all()
    steps = np.diff(grew["penalty"][0])
    assert (steps >= 0).all()
    assert set(np.flatnonzero(steps) + 1) <= {20 * k for k in range(1, 11)}
    ratios = grew["penalty"][0, 1:] / grew["penalty"][0, :-1]
    assert set(ratios.round(9)) == {1.0, 3.0}
    assert grew["penalty"][0, -1] < 20 * 3.0**9  # it stops once the constraint is met
