"""The measurements of the derivation notes, against values by hand and against the library."""

from math import pi, sqrt

import numpy as np
import pytest
import torch

from fedlib import run
from fedlib.algorithms import FedSGM
from fedlib.steps import Soft
from papers.fedsgm import checks as own
from papers.fedsgm import gamma as its
from papers.fedsgm.problems.norms import drift_sum, norms, random_norms

CASE = np.array([[1.0, 1.0, 2.0, 3.0, pi / 3]])


def plane(c, r, angle):
    """The problem of `one_client` with both slopes one."""
    start = torch.tensor([c + np.cos(angle), np.sin(angle)]).double()
    points = torch.tensor([[c + r, 0.0], [0.0, 0.0], [c, 0.0]]).double()
    return norms(points[:1], points[1:2], c, start, points[2])


def test_regret_and_mean_gaps_by_hand():
    """One round, weight on the objective: the regret is f_gap, the output is w0."""
    problem = plane(2.0, 3.0, pi)  # w0 = (1, 0), f = 4, f* = 3, g = -1
    trace = run(FedSGM(0.1, 1, 1, tolerance=0.5), problem, rounds=1, progress=False)
    assert own.regret(trace) == pytest.approx(np.array([[1.0]]))
    gap, g = own.mean_gaps(trace, [problem])
    assert (gap[0], g[0]) == (pytest.approx(1.0), pytest.approx(-1.0))


def test_no_weight_gives_no_iterate():
    problem = plane(1.0, 3.0, 0.0)  # g(w0) = 1
    trace = run(FedSGM(0.1, 1, 1, tolerance=0.5), problem, rounds=2, progress=False)
    assert np.isnan(own.mean_gaps(trace, [problem])).all()


@pytest.mark.parametrize("steps", [1, 4])
def test_one_client_is_what_the_library_computes(steps):
    problem = plane(2.0, 3.0, pi / 3)
    algorithm = FedSGM(0.05, steps, 1, tolerance=0.2, switch=Soft(3.0 / 0.2))
    trace = run(algorithm, problem, rounds=30, progress=False)
    gap = own.mean_gaps(trace, [problem])[0] / 0.2
    assert own.one_client(CASE, 3.0, steps, 30, 0.2, 0.05) == pytest.approx(gap, rel=1e-10)


def test_one_client_without_a_good_round_is_infinite():
    assert (
        own.one_client(
            np.array([[1.0, 1.0, 2.0, 3.0, 0.0]]),
            3.0,
            1,
            1,
            0.5,
            0.1,
        )[0]
        == np.inf
    )


def test_directions_are_those_of_the_drift():
    problem = random_norms(1)
    points, steps = own.directions(problem, 5, 0.05, 0.0)
    drift = (points - problem.w0).square().sum(-1).sum(0).max() / 0.05**2
    assert float(drift) == pytest.approx(drift_sum(problem, 5, 0.05))
    assert torch.allclose(steps.norm(dim=-1), torch.ones(5, 8).double())


def test_lemma_1_by_hand():
    """One client, one step: no drift; nu points away from a, and h(w*) - h(w0) = -1."""
    problem = plane(2.0, 3.0, pi)  # w0 = (1, 0), w* = (2, 0), nu = (-1, 0)
    left, right = own.lemma_1_sides(problem, 1, 0.1, 0.5, 0.0)
    assert left == pytest.approx(-0.2)
    assert right == pytest.approx(0.1 * 0.5 - 0.2)


@pytest.mark.parametrize("alpha", [0.01, 0.1, 1.0])
def test_lemma_1_holds_and_needs_youngs_terms_where_a_client_turns_back(alpha):
    for seed in range(6):
        left, right = own.lemma_1_sides(
            random_norms(seed),
            5,
            0.1,
            alpha,
            0.5 * (seed % 3),
        )
        assert left <= right
    # w0 is 0.03 beyond a, so that the second direction is the first turned back
    a = torch.zeros(1, 2).double()
    b = torch.ones(1, 2).double()
    turning = norms(
        a,
        b,
        9.0,
        torch.tensor([0.03, 0.0]).double(),
        torch.zeros(2).double(),
    )
    left, right = own.lemma_1_sides(turning, 2, 0.1, alpha, 0.0)
    assert left <= right
    assert left > right - 0.1 / alpha * 0.1**2 - 2 * 0.1 * alpha


def test_the_search_finds_bad_cases_where_they_exist_and_none_where_not():
    """At E = 1 the printed theorem is proved for beta epsilon >= 2/3, and false at 1/4."""
    s = (1.0, 1.0, 1, 20)
    tolerance = its.bound(*s, its.gamma_local(1))
    best = its.regret_bound(*s, its.gamma_local(1, "direct"), its.step_size(*s, its.gamma_local(1)))
    for sharpness, fails in ((0.25, True), (2 / 3, False), (2.0, False)):
        value, case = own.worst_case(sharpness, 1, 20, tries=60)
        assert (value > 1) == fails
        assert value <= 1 + its.soft_excess(tolerance, best, sharpness / tolerance) / tolerance
        assert case.shape == (5,)


def test_soft_beta_and_excess_meet():
    assert its.soft_beta(2.0, 1.0) == 1.0
    assert its.soft_beta(2.0, 1.0, "direct") == 0.25
    assert its.soft_excess(2.0, 1.0, 0.25) == 0.0
    assert its.soft_excess(2.0, 1.0, 0.25 - 1e-9) == pytest.approx(0.0, abs=1e-7)
    expected = 25 - 2 * sqrt(25)
    assert its.soft_excess(2.0, 1.0, 0.04) == pytest.approx(expected)
    assert its.soft_excess(1.0, 1.0, 2.0) == 0.5


def test_the_direct_gamma_with_error_feedback():
    """By hand at q = q0 = 3/4: s = 1/2, r = r0 = 1, (1 + s) / (1 - s) = 3."""
    expected = 2 + 2 + 2 * 3
    assert its.gamma_feedback_direct(2, 0.75, 0.75) == pytest.approx(expected)
    assert its.gamma_feedback_direct(3, 1.0, 1.0) == its.gamma_local(3, "direct")
    for E in (1, 5):
        for q in (0.01, 0.1, 0.9, 1.0):
            for q0 in (0.01, 0.1, 0.9, 1.0):
                assert its.gamma_feedback_direct(E, q, q0) < its.gamma_feedback(E, q, q0)
