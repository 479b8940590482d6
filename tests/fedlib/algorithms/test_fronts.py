"""Methods of several objectives on quadratics whose front is known, and preferences on it."""

import pytest
import torch

import fedlib as fl
from fedlib.problems import pareto
from fedlib.problems.quadratics import pareto_point, polygon_distance
from tests.helpers.expect import close
from tests.helpers.problems import double, objectives
from tests.helpers.randoms import normal, uniform

EXACT = fl.OneWay(fl.Exact())
START = 2 * torch.ones(5).double()
WORK = {"lr": 0.3, "local_steps": 1, "participants": 6}


def crossing(problem, ratios):
    """The Pareto optimal model of two objectives at which `r_1 F_1 = r_2 F_2`.

    If the front does not meet that line, its end that is nearest to it.
    """
    middle, curvature, _ = problem.heldout
    r = double(*ratios)
    low = 0.0
    high = 1.0
    for _ in range(60):
        half = (low + high) / 2  # the weight of the second objective, which falls along the front
        w = pareto_point(middle, curvature, double(1 - half, half))
        losses = r * problem.mean_losses(w)
        if losses[1] > losses[0]:
            low = half
        else:
            high = half
    return w


def test_the_front_by_hand():
    problem = pareto(double([0.0, 0.0], [2.0, 0.0]).view(1, 1, 2, 2))
    metrics = problem.metrics(double(1.5, 0.5), problem)
    assert float(metrics["distance"]) == pytest.approx(0.5)
    assert float(metrics["stationarity"]) == pytest.approx(0.5)
    assert float(metrics["f_1"]) == pytest.approx(0.5 * (1.5**2 + 0.25))
    assert float(metrics["f"]) == pytest.approx(0.25 * (1.5**2 + 0.5**2 + 0.5))
    close(crossing(problem, (1.0, 4.0)), double(4 / 3, 0.0), 1e-7)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.77, 1.0])
def test_points_of_the_front_are_stationary_and_others_are_not(share):
    curvature = uniform(2, 4) + 0.2
    problem = pareto(normal(5, 1, 2, 4), curvature)
    middle, _, front = problem.heldout
    w = pareto_point(middle, curvature, double(share, 1 - share))
    assert problem.metrics(w, problem)["stationarity"] < 1e-7
    assert polygon_distance(w, front) < 1e-5
    away = problem.metrics(w + 0.1, problem)
    assert away["stationarity"] > 1e-3
    assert away["distance"] > 1e-3


@pytest.mark.parametrize(
    "method",
    [
        fl.FedCMOO(**WORK, gram=EXACT),
        fl.FedCMOO(**WORK, weights=fl.MinNorm()),
        fl.FSMGDA(**WORK),
        fl.MGDA(lr=0.3),
    ],
)
def test_one_step_rounds_reach_the_front(method):
    problem = objectives(spread=0.2, w0=START)
    metrics = fl.run(method, problem, rounds=80, evaluate_every=80).metrics
    assert metrics["stationarity"][0, 0] > 1
    assert metrics["stationarity"][0, -1] < 1e-4
    assert metrics["distance"][0, -1] < 1e-3


@pytest.mark.parametrize(
    "ratios",
    [pytest.param((1.0, 1.0), marks=pytest.mark.weekly), (2.0, 1.0)],
)
def test_the_preference_is_met_up_to_its_tolerance(ratios):
    problem = objectives(spread=0.5, w0=START)
    for epsilon in (0.01, 1e-4):
        preference = fl.Preference(ratios, epsilon=epsilon)
        method = fl.FedCMOOPref(
            0.2,
            1,
            6,
            preference=preference,
            least=None,
            gram=EXACT,
        )
        trace = fl.run(method, problem, rounds=80, evaluate_every=80)
        assert trace.info["mu"][0, -1] < 1.2 * epsilon
        assert trace.metrics["distance"][0, -1] < 0.05
        assert trace.info["fallback"].sum() == 0
    assert (trace.state.w[0] - crossing(problem, ratios)).norm() < 0.1
