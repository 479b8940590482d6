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
from papers.fedsgm.problems.norms import drift_sum, kink, norms, random_norms
from papers.fedsgm.theory import Rate

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
    gaps = own.mean_gaps(trace, [problem])
    assert gaps.f_gap == pytest.approx(np.array([1.0]))
    assert gaps.g == pytest.approx(np.array([-1.0]))
    assert gaps.within(1.01).tolist() == [True]
    assert gaps.within(0.99).tolist() == [False]


def test_no_weight_gives_no_iterate():
    problem = plane(1.0, 3.0, 0.0)  # g(w0) = 1
    trace = run(FedSGM(0.1, 1, 1, tolerance=0.5), problem, rounds=2, progress=False)
    gaps = own.mean_gaps(trace, [problem])
    assert np.isnan(gaps).all()
    assert gaps.within(100.0).tolist() == [False]


def test_gaps_of_rates_are_those_of_single_runs():
    rates = {
        "small": Rate(1.0, lr=0.05, tolerance=0.2, beta=np.inf, accuracy=0.2),
        "large": Rate(1.0, lr=0.2, tolerance=0.3, beta=np.inf, accuracy=0.3),
    }
    gaps = own.gaps_of_rates(
        rates, random_norms, rounds=10, seeds=range(2), local_steps=2, participants=8
    )
    assert list(gaps) == ["small", "large"]
    problems = [random_norms(0), random_norms(1)]
    for name, rate in rates.items():
        algorithm = FedSGM(rate.lr, 2, 8, tolerance=rate.tolerance)
        trace = run(algorithm, random_norms, rounds=10, seeds=range(2), progress=False)
        expected = own.mean_gaps(trace, problems)
        assert gaps[name].f_gap == pytest.approx(expected.f_gap, nan_ok=True)
        assert gaps[name].g == pytest.approx(expected.g, nan_ok=True)


def test_lemma_1_must_hold_in_every_case(monkeypatch):
    assert own.lemma_1_holds(kink())
    last_lr, last_factor, last_weight = own.LEMMA_1_CASES[-1]
    last_case = (5, last_lr, last_lr * last_factor, last_weight)

    def sides(_problem, *case):
        return (1.0, 0.5 if case == last_case else 2.0)

    monkeypatch.setattr(own, "lemma_1_sides", sides)
    assert not own.lemma_1_holds(kink())


def test_play_is_what_run_computes():
    problem = random_norms(1)
    algorithm = FedSGM(0.1, 2, 8, tolerance=0.1)
    states, draws = own.play(algorithm, problem, 5, seed=3)
    trace = run(algorithm, problem, rounds=5, progress=False)
    assert len(states) == len(draws) + 1 == 6
    assert torch.equal(states[0].w, problem.w0)
    assert torch.allclose(states[-1].w, trace.state.w[0])


def test_share_and_estimate_by_hand():
    assert own.share(torch.tensor([True, False, False, True])) == 0.5
    assert own.share(np.array([True, False])) == 0.5
    mean, error = own.estimate(torch.tensor([1.0, 3.0]))
    assert (mean, error) == (2.0, pytest.approx(1.0))


@pytest.mark.parametrize("steps", [1, 4])
def test_one_client_is_what_the_library_computes(steps):
    problem = plane(2.0, 3.0, pi / 3)
    algorithm = FedSGM(0.05, steps, 1, tolerance=0.2, switch=Soft(3.0 / 0.2))
    trace = run(algorithm, problem, rounds=30, progress=False)
    gap = own.mean_gaps(trace, [problem]).f_gap / 0.2
    assert own.one_client(CASE, 3.0, steps, 30, 0.2, 0.05) == pytest.approx(gap, rel=1e-10)


def test_one_client_without_a_good_round_is_infinite():
    case = np.array([[1.0, 1.0, 2.0, 3.0, 0.0]])
    (gap,) = own.one_client(case, 3.0, local_steps=1, rounds=1, tolerance=0.5, lr=0.1)
    assert gap == np.inf


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
        weight = 0.5 * (seed % 3)
        left, right = own.lemma_1_sides(random_norms(seed), 5, 0.1, alpha, weight)
        assert left <= right
    left, right = own.lemma_1_sides(kink(), 2, 0.1, alpha, 0.0)
    youngs_terms = 0.1 / alpha * 0.1**2 + 2 * 0.1 * alpha
    assert right - youngs_terms < left <= right


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
