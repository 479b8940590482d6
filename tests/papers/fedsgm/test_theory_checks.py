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
from papers.fedsgm.problems.norms import norms, random_norms
from tests.helpers.expect import near
from tests.helpers.problems import double

CASE = np.array([[1.0, 1.0, 2.0, 3.0, pi / 3]])


def plane(c, r, angle):
    """The problem of `one_client` with both slopes one."""
    start = double(c + np.cos(angle), np.sin(angle))
    points = double([c + r, 0.0], [0.0, 0.0], [c, 0.0])
    return norms(
        points[:1],
        points[1:2],
        c,
        start,
        points[2],
    )


def test_regret_and_mean_gaps_by_hand():
    """One round, weight on the objective: the regret is f_gap, the output is w0."""
    problem = plane(2.0, 3.0, pi)  # w0 = (1, 0), f = 4, f* = 3, g = -1
    trace = run(FedSGM(0.1, 1, 1, tolerance=0.5), problem, rounds=1, progress=False)
    near(own.regret(trace), np.array([[1.0]]))
    gaps = own.mean_gaps(trace, [problem])
    near(gaps.f_gap, np.array([1.0]))
    near(gaps.g, np.array([-1.0]))
    assert gaps.within(1.01).tolist() == [True]
    assert gaps.within(0.99).tolist() == [False]


def test_play_is_what_run_computes():
    problem = random_norms(1)
    algorithm = FedSGM(0.1, 2, 8, tolerance=0.1)
    states, draws = own.play(algorithm, problem, 5, seed=3)
    trace = run(algorithm, problem, rounds=5, progress=False)
    assert len(states) == len(draws) + 1 == 6
    assert torch.equal(states[0].w, problem.w0)
    assert torch.allclose(states[-1].w, trace.state.w[0])


@pytest.mark.parametrize("steps", [1, 4])
def test_one_client_is_what_the_library_computes(steps):
    problem = plane(2.0, 3.0, pi / 3)
    algorithm = FedSGM(
        0.05,
        steps,
        1,
        tolerance=0.2,
        switch=Soft(3.0 / 0.2),
    )
    trace = run(algorithm, problem, rounds=30, progress=False)
    gap = own.mean_gaps(trace, [problem]).f_gap / 0.2
    near(
        own.one_client(
            CASE,
            3.0,
            steps,
            30,
            0.2,
            0.05,
        ),
        gap,
        rel=1e-10,
    )


def test_directions_are_unit_steps_from_point_to_point():
    problem = random_norms(1)
    points, steps = own.directions(problem, 5, 0.05, 0.0)
    assert torch.equal(points[0], problem.w0.expand(8, -1))
    assert torch.allclose(points[1:], points[:-1] - 0.05 * steps[:-1])
    assert torch.allclose(steps.norm(dim=-1), torch.ones(5, 8).double())


def test_lemma_1_by_hand():
    """One client, one step: no drift; nu points away from a, and h(w*) - h(w0) = -1."""
    problem = plane(2.0, 3.0, pi)  # w0 = (1, 0), w* = (2, 0), nu = (-1, 0)
    left, right = own.lemma_1_sides(
        problem,
        1,
        0.1,
        0.5,
        0.0,
    )
    near(left, -0.2)
    near(right, 0.1 * 0.5 - 0.2)


def test_soft_beta_and_excess_meet():
    assert its.soft_beta(2.0, 1.0) == 1.0
    assert its.soft_beta(2.0, 1.0, "direct") == 0.25
    assert its.soft_excess(2.0, 1.0, 0.25) == 0.0
    near(its.soft_excess(2.0, 1.0, 0.25 - 1e-9), 0.0, abs=1e-7)
    expected = 25 - 2 * sqrt(25)
    near(its.soft_excess(2.0, 1.0, 0.04), expected)
    assert its.soft_excess(1.0, 1.0, 2.0) == 0.5


def test_the_direct_gamma_with_error_feedback():
    """By hand at q = q0 = 3/4: s = 1/2, r = r0 = 1, (1 + s) / (1 - s) = 3."""
    expected = 2 + 2 + 2 * 3
    near(its.gamma_feedback_direct(2, 0.75, 0.75), expected)
    assert its.gamma_feedback_direct(3, 1.0, 1.0) == its.gamma_local(3, "direct")
    for E in (1, 5):
        for q in (0.01, 0.1, 0.9, 1.0):
            for q0 in (0.01, 0.1, 0.9, 1.0):
                assert its.gamma_feedback_direct(E, q, q0) < its.gamma_feedback(E, q, q0)
