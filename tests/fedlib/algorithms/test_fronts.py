"""Methods of several objectives on quadratics whose front is known, and preferences on it."""

import pytest
import torch

import fedlib as fl
from fedlib.problems import pareto
from fedlib.problems.quadratics import pareto_point, polygon_distance
from tests.helpers.expect import close
from tests.helpers.problems import objectives

EXACT = {"gram": fl.OneWay(fl.Exact())}


def crossing(problem, ratios):
    """The Pareto optimal model of two objectives at which `r_1 F_1 = r_2 F_2`.

    If the front does not meet that line, its end that is nearest to it.
    """
    middle, curvature, _ = problem.heldout
    low = middle.new_zeros(())
    high = middle.new_ones(())
    r = middle.new_tensor(ratios)
    for _ in range(60):
        half = (low + high) / 2  # the weight of the second objective, which falls along the front
        F = r * problem.mean_losses(pareto_point(middle, curvature, torch.stack([1 - half, half])))
        low, high = (half, high) if F[1] > F[0] else (low, half)
    half = (low + high) / 2
    return pareto_point(middle, curvature, torch.stack([1 - half, half]))


class TestKnownFronts:
    def test_the_front_by_hand(self):
        centres = torch.tensor([[0.0, 0.0], [2.0, 0.0]]).double().view(1, 1, 2, 2)
        problem = pareto(centres)
        metrics = problem.metrics(torch.tensor([1.5, 0.5]).double(), problem)
        assert float(metrics["distance"]) == pytest.approx(0.5)
        assert float(metrics["stationarity"]) == pytest.approx(0.5)
        assert float(metrics["f_1"]) == pytest.approx(0.5 * (1.5**2 + 0.25))
        assert float(metrics["f"]) == pytest.approx(0.25 * (1.5**2 + 0.5**2 + 0.5))
        close(crossing(problem, (1.0, 4.0)), torch.tensor([4 / 3, 0.0]).double(), 1e-7)

    def test_points_of_the_front_are_stationary_and_others_are_not(self):
        rng = torch.Generator().manual_seed(0)
        curvature = torch.rand(2, 4, generator=rng, dtype=torch.float64) + 0.2
        centres = torch.randn(5, 1, 2, 4, generator=rng, dtype=torch.float64)
        problem = pareto(centres, curvature)
        middle, _, front = problem.heldout
        for share in (0.0, 0.3, 0.77, 1.0):
            w = pareto_point(middle, curvature, torch.tensor([share, 1 - share]).double())
            assert problem.metrics(w, problem)["stationarity"] < 1e-7
            assert polygon_distance(w, front) < 1e-5
            away = problem.metrics(w + 0.1, problem)
            assert away["stationarity"] > 1e-3
            assert away["distance"] > 1e-3

    @pytest.mark.parametrize(
        "algorithm",
        [
            fl.FedCMOO(
                lr=0.3,
                local_steps=1,
                participants=6,
                **EXACT,
            ),
            fl.FedCMOO(
                lr=0.3,
                local_steps=1,
                participants=6,
                weights=fl.MinNorm(),
            ),
            fl.FSMGDA(lr=0.3, local_steps=1, participants=6),
            fl.MGDA(lr=0.3),
        ],
        ids=["FindWeights", "MinNorm", "FSMGDA", "MGDA"],
    )
    def test_one_step_rounds_reach_the_front(self, algorithm):
        problem = objectives(
            tasks=2,
            dim=5,
            spread=0.2,
            w0=2 * torch.ones(5).double(),
        )
        trace = fl.run(algorithm, problem, rounds=80)
        assert trace.metrics["stationarity"][0, 0] > 1
        assert trace.metrics["stationarity"][0, -1] < 1e-4
        assert trace.metrics["distance"][0, -1] < 1e-3

    @pytest.mark.parametrize(
        "ratios", [pytest.param((1.0, 1.0), marks=pytest.mark.weekly), (2.0, 1.0)]
    )
    def test_the_preference_is_met_up_to_its_tolerance(self, ratios):
        problem = objectives(
            tasks=2,
            dim=5,
            spread=0.5,
            seed=0,
            w0=2 * torch.ones(5).double(),
        )
        for epsilon in (0.01, 1e-4):
            preference = fl.Preference(ratios, epsilon=epsilon)
            algorithm = fl.FedCMOOPref(0.2, 1, 6, preference=preference, least=None, **EXACT)
            trace = fl.run(algorithm, problem, rounds=80)
            assert trace.info["mu"][0, -1] < 1.2 * epsilon
            assert trace.metrics["distance"][0, -1] < 0.05
            assert trace.info["fallback"].sum() == 0
        goal = crossing(problem, ratios)
        assert (trace.state.w[0] - goal).norm() < 0.1
        r = torch.tensor(ratios).double()
        close(*(r * problem.mean_losses(goal)), 1e-9)
