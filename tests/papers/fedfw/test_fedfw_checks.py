"""FedFW's constants and what its notes measure, by hand, by differences and in plain loops."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from papers.fedfw import checks as c
from papers.fedfw import theory, theory_fw
from papers.fedfw.theory_fw import Constants

CASE = Constants(
    L=2.0,
    D=3.0,
    N=4,
    lam0=0.5,
    dual=1.0,
    slope=2.0,
    spread=5.0,
    sigma=1.5,
)
TOY = c.Bowls(np.full((2, 1), 2.0), np.array([[3.0], [-1.0]]))  # (x - 3)^2 and (x + 1)^2
LINE = c.box(-1.0, 1.0)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_convex_bounds_by_hand():
    expected = 18 * (2 / 9 + 4 / (3 * sqrt(8)))
    assert theory.convex(CASE, 7) == pytest.approx(expected)
    # q = 1/4, k = 7: 42 / (12 * 11) of the start; q t + 2 = 13/4, q t + 2 - q = 3
    slow = theory.convex(CASE, 5, share=0.5, quality=0.5, slip=0.3, start=11.0)
    expected = 11 * 42 / 132 + 36 * (8 / 13 + 4 / (3 * sqrt(3))) + 0.6
    assert slow == pytest.approx(expected)
    mean = theory.convex_at_mean(CASE, 6.0, 7)
    expected = 36 / (8 * 0.5 * sqrt(8))
    assert mean - theory.convex(CASE, 7) == pytest.approx(expected)


def test_convex_is_below_the_papers_bounds():
    for t in (1, 2, 10, 1000):
        assert theory.convex(CASE, t) < theory_fw.convex_surrogate(CASE, t)
        printed = theory_fw.stochastic_surrogate(CASE, t + 1)
        assert theory.stochastic(CASE, t) < printed / 16


def test_nonconvex_bounds_by_hand():
    expected = 5 / 2 + 18 / 8 + 18 / 4
    assert theory.nonconvex(CASE, 8) == pytest.approx(expected)
    # P = 26 / 2 + 14 = 27 for p = 1/2 and T = 52
    expected = 5 * 9 / 26 + 1 + 3
    assert theory.nonconvex(CASE, 52, share=0.5) == pytest.approx(expected)
    rough = theory.nonconvex(CASE, 8, quality=0.5, slip=1.0)
    expected = 2 * (theory.nonconvex(CASE, 8) + 1)
    assert rough == pytest.approx(expected)
    mean = theory.nonconvex_at_mean(CASE, 6.0, 8)
    expected = 144 / (16 * 0.5 * 2)
    assert mean - theory.nonconvex(CASE, 8) == pytest.approx(expected)
    assert theory.nonconvex(CASE, 8) == pytest.approx(theory_fw.nonconvex_surrogate(CASE, 8))


def test_stochastic_bound_by_hand():
    noise = 16 / 3 * 2.25 + 27 / 4 * 36
    steps = 81 / 16 * 9 * (2 / sqrt(27) + 2 / 27)
    expected = 9 / 8 * sqrt(noise) + steps
    assert theory.stochastic(CASE, 19) == pytest.approx(expected)


def test_oracles(rng):
    g = rng.standard_normal((50, 3))
    in_ball = (g * c.ball(2.0)(g)).sum(1)
    expected = -2 * np.linalg.norm(g, axis=1)
    assert in_ball == pytest.approx(expected)
    in_cross = (g * c.cross(2.0)(g)).sum(1)
    assert in_cross == pytest.approx(-2 * abs(g).max(1))
    assert c.box([-1.0, 0, 2], [1.0, 1, 3])(np.array([1.0, -1, 0])).tolist() == [-1, 1, 3]
    assert np.isfinite(c.ball(1.0)(np.zeros(3))).all()


@pytest.mark.parametrize("norm", [1, 2])
def test_random_points_lie_in_the_ball(rng, norm):
    x = c.points_in_ball(rng, (500, 3), norm, 2.0, power=0.3)
    length = np.linalg.norm(x, norm, axis=-1)
    assert length.max() <= 2 * (1 + 1e-12)
    assert np.median(length / 2) == pytest.approx(0.5**0.3, abs=0.05)


def test_bowls_against_differences(rng):
    problem = c.bowls(rng, 3, 2, s=0.4, samples=5)
    x = rng.standard_normal((4, 3, 2))
    for k in range(2):
        h = 1e-6 * np.eye(2)[k]
        slope = (problem.values(x + h) - problem.values(x - h)) / 2e-6
        assert problem.gradients(x)[..., k] == pytest.approx(slope, abs=1e-7)
    at_one_point = problem.gradients(np.repeat(x[:, :1], 3, 1))
    assert problem.gradient(x[:, 0]) == pytest.approx(at_one_point.mean(1))
    y = x + rng.standard_normal(x.shape)
    change = np.linalg.norm(problem.gradients(x) - problem.gradients(y), axis=-1)
    distance = np.linalg.norm(x - y, axis=-1)
    assert (change <= problem.smoothness * distance + 1e-12).all()


def test_samples_are_unbiased_with_the_stated_noise(rng):
    problem = c.bowls(rng, 2, 3, samples=4)
    x = np.broadcast_to(rng.standard_normal((2, 3)), (20_000, 2, 3))
    off = problem.gradients(x, rng) - problem.gradients(x)
    assert np.abs(off.mean(0)).max() < 0.05
    assert np.square(off).sum(-1).mean(0).max() == pytest.approx(problem.noise**2, rel=0.03)
    assert replace(problem, offsets=None).noise == 0


def test_spread_and_floor_are_bounds(rng):
    problem = c.bowls(rng, 4, 2, s=0.7)
    x = rng.uniform(-2, 2, (5000, 2))
    apart = problem.gradients(x[:, None]) - problem.gradient(x)[:, None]
    spread = np.sqrt(np.square(apart).sum(-1).mean(-1)).max()
    assert 0.9 * problem.spread(2.0) < spread <= problem.spread(2.0) + 1e-12
    least = problem.values(x[:, None]).min(0).mean()
    assert problem.floor(2.0) <= least < problem.floor(2.0) + 0.1


@pytest.mark.parametrize(("norm", "oracle"), [(1, c.cross), (2, c.ball)])
@pytest.mark.parametrize("radius", [0.3, 1.0, 50.0])
def test_minimizers_have_no_gap(rng, norm, oracle, radius):
    problem = c.bowls(rng, 4, 5)
    best = problem.minimizer(radius, norm)
    assert np.linalg.norm(best, norm) <= radius * (1 + 1e-12)
    assert c.fw_gap(problem, oracle(radius), best) < 1e-9


def test_an_instance_by_hand():
    """(x - 3)^2 and (x + 1)^2 on [-2, 2]: x* = 1, where the gradients are -4 and 4."""
    instance = c.Instance(c.parabolas(2.0, [3.0, -1.0]), norm=2, radius=2.0)
    assert instance.best == pytest.approx([1])
    assert instance.least == pytest.approx(4)
    assert instance.zeta == pytest.approx(4)
    assert instance.dual[:, 0] == pytest.approx([2, -2])
    letters = instance.constants(lam0=0.5)
    size = sqrt(8)
    assert letters == Constants(
        L=2, D=4, N=2, lam0=0.5, dual=pytest.approx(size), slope=pytest.approx(size)
    )


def test_constants_at_the_centre_by_hand():
    """(x - 3)^2 and (x + 1)^2 on [-2, 2]: F(0) = 5, and the least values are 1 and 0."""
    letters = c.constants_at_centre(c.parabolas(2.0, [3.0, -1.0]), 2.0, lam0=0.5)
    assert letters.slope == pytest.approx(sqrt(3**2 + 1))
    assert letters.spread == pytest.approx(4.5, abs=0.02)


def test_schedules_by_hand():
    plan = c.schedule("convex", 3, 0.5)
    assert plan.eta == pytest.approx([1, 2 / 3, 1 / 2])
    assert plan.lam == pytest.approx(0.5 * np.sqrt([2, 3, 4]))
    half = c.schedule("convex", 3, 0.5, 0.5)
    assert half.eta == pytest.approx([1, 4 / 5, 2 / 3])
    plan = c.schedule("nonconvex", 8, 0.5)
    assert plan.eta == pytest.approx([1 / 4] * 8)
    assert plan.lam == pytest.approx([1] * 8)
    assert c.schedule("nonconvex", 52, 0.5, 0.5).eta[0] == pytest.approx(1 / 9)
    plan = c.schedule("stochastic", 2, 0.5)
    assert plan.eta == pytest.approx([1, 9 / 10])
    assert plan.rho == pytest.approx([1, 4 / 9 ** (2 / 3)])


def test_two_rounds_by_hand():
    """Gradients / 2 are x - 3 and x + 1: both go to their ends, then the penalty acts."""
    path = c.run(TOY, LINE, c.schedule("convex", 2, 0.5), np.zeros((1, 1)))
    expected = np.array([[0, 0], [1, -1], [1, 1 / 3]])
    assert path.x[:, 0, :, 0] == pytest.approx(expected)
    # Round 2: 1 - 3 + lam and -1 + 1 - lam with lam = 0.5 sqrt(3): the second turns to +1
    expected = [-2 + 0.5 * sqrt(3), -0.5 * sqrt(3)]
    assert path.g[1, 0, :, 0] == pytest.approx(expected)
    plus = c.run(TOY, LINE, c.schedule("convex", 2, 0.5), np.zeros((1, 1)), plus=0.25)
    expected = [-2 + 0.5 * sqrt(3) + 0.25, -0.5 * sqrt(3) - 0.25]
    assert plus.g[1, 0, :, 0] == pytest.approx(expected)


def test_the_naive_scheme_stays():
    steps = c.schedule("convex", 50, 1.0).eta
    path = c.naive(TOY, LINE, steps, np.array([[0.0], [0.3]]))
    assert np.abs(path[1:]).max() < 1e-15
    slow = c.naive(TOY, LINE, np.full(20, 0.1), np.array([[0.3]]))
    assert slow[-1, 0, 0] == pytest.approx(0.3 * 0.9**20)


def test_server_follows_the_clients(rng):
    problem = c.bowls(rng, 4, 3)
    plan = c.schedule("convex", 40, 0.2, 0.3)
    path = c.run(problem, c.ball(1.0), plan, np.zeros((6, 3)), rng, share=0.3)
    expected = path.x.mean(2)
    assert path.server == pytest.approx(expected, abs=1e-12)
    moved = np.abs(np.diff(path.x, axis=0)).sum(-1) > 0
    assert moved.mean() == pytest.approx(0.3, abs=0.05)


def test_measures_by_hand():
    x = np.array([[[[1.0], [-1.0]]]])
    assert c.distance(x)[0, 0] == pytest.approx(sqrt(2))
    expected = (4 + 0) / 2 + 3
    assert c.surrogate(TOY, x, np.array([3.0]))[0, 0] == pytest.approx(expected)
    assert c.fw_gap(TOY, LINE, np.array([0.0])) == pytest.approx(2)


def test_progress_by_hand():
    """Both models at their ends after a round: F_hat is (4 + 0) / 2, the mean is 0, F(0) is 5."""
    plan = c.schedule("convex", 1, 3.0)
    path = c.run(TOY, LINE, plan, np.zeros((2, 1)))
    measured = c.progress(TOY, path, plan, least=4.0)
    assert measured.h == pytest.approx([2 + 3 * sqrt(2) - 4])
    assert measured.excess == pytest.approx([1])
    assert measured.distance == pytest.approx([sqrt(2)])
    # Gradients / 2 at the start: -3 and 1, towards 1 and -1
    assert c.surrogate_gap(LINE, path) == pytest.approx(np.array([[4, 4]]))


def test_bounds_of_all_rounds():
    in_all_rounds = c.each(theory.convex, [1, 7], CASE, share=0.5)
    assert in_all_rounds[1] == theory.convex(CASE, 7, share=0.5)
    bound = c.distance_bound(CASE, np.array([2.0]), np.array([9.0]))
    assert bound == pytest.approx([1 + 3])


def test_spaced_rounds_and_powers():
    marks = c.spaced(1000, 60)
    assert marks[0] == 0
    assert marks[-1] == 999
    assert len(marks) < 60
    assert (np.diff(marks) > 0).all()
    t = marks + 1.0
    assert c.fitted_power(t, 3 * t**-0.7) == pytest.approx(-0.7)


def test_wrong_oracles_leave_what_they_should(rng):
    problem = c.bowls(rng, 3, 2)
    plan = c.schedule("convex", 30, 0.2)
    slip = np.full(30, 0.06)
    path = c.run(problem, c.ball(1.0), plan, np.zeros((1, 2)), quality=0.7, slip=slip)
    best = (path.g * (path.x[:-1] - c.ball(1.0)(path.g))).sum(-1)
    left = (path.g * (path.x[:-1] - path.s)).sum(-1)
    expected = np.maximum(0.7 * best - 0.02, 0)
    assert left == pytest.approx(expected, abs=1e-12)


def test_stochastic_gradients_are_averaged(rng):
    problem = c.bowls(rng, 3, 2, samples=4)
    plan = c.schedule("stochastic", 5, 0.2)
    path = c.run(
        problem,
        c.ball(1.0),
        plan,
        np.zeros((1, 2)),
        np.random.default_rng(1),
    )
    again = np.random.default_rng(1)
    d = 0.0
    for t in range(5):
        d = (1 - plan.rho[t]) * d + plan.rho[t] * problem.gradients(path.x[t], again) / 3
        again.random((1, 3))  # the coins
        assert path.d[t] == pytest.approx(d, abs=1e-12)
