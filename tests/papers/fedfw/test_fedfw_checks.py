"""FedFW's constants and what its notes measure, by hand, by differences and in plain loops."""

from math import sqrt

import numpy as np
import pytest

from papers.fedfw import checks as c
from papers.fedfw import theory
from papers.fedfw.theory_fw import Constants
from tests.helpers.expect import near

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
CENTRES = [3.0, -1.0]  # of (x - 3)^2 and (x + 1)^2
TOY = c.parabolas(2.0, CENTRES)
LINE = c.box(-1.0, 1.0)
ORIGIN = np.zeros((1, 1))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_convex_bounds_by_hand():
    expected = 18 * (2 / 9 + 4 / (3 * sqrt(8)))
    near(theory.convex(CASE, 7), expected)
    # q = 1/4, k = 7: 42 / (12 * 11) of the start; q t + 2 = 13/4, q t + 2 - q = 3
    slow = theory.convex(
        CASE,
        5,
        share=0.5,
        quality=0.5,
        slip=0.3,
        start=11.0,
    )
    expected = 11 * 42 / 132 + 36 * (8 / 13 + 4 / (3 * sqrt(3))) + 0.6
    near(slow, expected)
    mean = theory.convex_at_mean(CASE, 6.0, 7)
    expected = 36 / (8 * 0.5 * sqrt(8))
    near(mean - theory.convex(CASE, 7), expected)


def test_nonconvex_bounds_by_hand():
    plain = 5 / 2 + 18 / 8 + 18 / 4
    near(theory.nonconvex(CASE, 8), plain)
    # P = 26 / 2 + 14 = 27 for p = 1/2 and T = 52
    expected = 5 * 9 / 26 + 1 + 3
    near(theory.nonconvex(CASE, 52, share=0.5), expected)
    rough = theory.nonconvex(CASE, 8, quality=0.5, slip=1.0)
    near(rough, 2 * (plain + 1))
    mean = theory.nonconvex_at_mean(CASE, 6.0, 8)
    expected = 144 / (16 * 0.5 * 2)
    near(mean - plain, expected)


def test_stochastic_bound_by_hand():
    noise = 16 / 3 * 2.25 + 27 / 4 * 36
    steps = 81 / 16 * 9 * (2 / sqrt(27) + 2 / 27)
    expected = 9 / 8 * sqrt(noise) + steps
    near(theory.stochastic(CASE, 19), expected)


def test_bowls_against_differences(rng):
    problem = c.bowls(rng, 3, 2, s=0.4, samples=5)
    x = rng.standard_normal((4, 3, 2))
    for k in range(2):
        h = 1e-6 * np.eye(2)[k]
        change = problem.values(x + h) - problem.values(x - h)
        slope = change / 2e-6
        near(problem.gradients(x)[..., k], slope, abs=1e-7)
    y = x + rng.standard_normal(x.shape)
    change = problem.gradients(x) - problem.gradients(y)
    length = np.linalg.norm(change, axis=-1)
    distance = np.linalg.norm(x - y, axis=-1)
    assert (length <= problem.smoothness * distance + 1e-12).all()


def test_samples_are_unbiased_with_the_stated_noise(rng):
    problem = c.bowls(rng, 2, 3, samples=4)
    point = rng.standard_normal((2, 3))
    x = np.broadcast_to(point, (20_000, 2, 3))
    off = problem.gradients(x, rng) - problem.gradients(x)
    assert np.abs(off.mean(0)).max() < 0.05
    variances = np.square(off).sum(-1).mean(0)
    near(variances.max(), problem.noise**2, rel=0.03)


@pytest.mark.parametrize(("norm", "oracle"), [(1, c.cross), (2, c.ball)])
@pytest.mark.parametrize("radius", [0.3, 50.0])
def test_minimizers_have_no_gap(rng, norm, oracle, radius):
    problem = c.bowls(rng, 4, 5)
    best = problem.minimizer(radius, norm)
    assert np.linalg.norm(best, norm) <= radius * (1 + 1e-12)
    assert c.fw_gap(problem, oracle(radius), best) < 1e-9


def test_an_instance_by_hand():
    """On [-2, 2]: x* = 1, where the gradients are -4 and 4."""
    instance = c.Instance(TOY, norm=2, radius=2.0)
    near(instance.best, [1])
    near(instance.least, 4)
    near(instance.zeta, 4)
    near(instance.dual[:, 0], [2, -2])
    size = pytest.approx(sqrt(8))
    expected = Constants(
        L=2,
        D=4,
        N=2,
        lam0=0.5,
        dual=size,
        slope=size,
    )
    assert instance.constants(lam0=0.5) == expected


def test_constants_at_the_centre_by_hand():
    """On [-2, 2]: F(0) = 5, and the least values are 1 and 0."""
    letters = c.constants_at_centre(TOY, 2.0, lam0=0.5)
    near(letters.slope, sqrt(3**2 + 1))
    near(letters.spread, 4.5, abs=0.02)


def test_schedules_by_hand():
    plan = c.schedule("convex", 3, 0.5)
    near(plan.eta, [1, 2 / 3, 1 / 2])
    near(plan.lam, 0.5 * np.sqrt([2, 3, 4]))
    half = c.schedule("convex", 3, 0.5, 0.5)
    near(half.eta, [1, 4 / 5, 2 / 3])
    plan = c.schedule("nonconvex", 8, 0.5)
    near(plan.eta, [1 / 4] * 8)
    near(plan.lam, [1] * 8)
    half = c.schedule("nonconvex", 52, 0.5, 0.5)
    near(half.eta[0], 1 / 9)
    plan = c.schedule("stochastic", 2, 0.5)
    near(plan.eta, [1, 9 / 10])
    near(plan.rho, [1, 4 / 9 ** (2 / 3)])


@pytest.mark.parametrize("plus", [0.0, 0.25])
def test_two_rounds_by_hand(plus):
    """Gradients / 2 are x - 3 and x + 1: both go to their ends, then the penalty acts."""
    plan = c.schedule("convex", 2, 0.5)
    path = c.run(TOY, LINE, plan, ORIGIN, plus=plus)
    expected = np.array([[0, 0], [1, -1], [1, 1 / 3]])
    near(path.x[:, 0, :, 0], expected)
    # Round 2: 1 - 3 + lam and -1 + 1 - lam with lam = 0.5 sqrt(3): the second turns to +1
    lam = 0.5 * sqrt(3) + plus
    near(path.g[1, 0, :, 0], [-2 + lam, -lam])


def test_the_naive_scheme_stays():
    steps = c.schedule("convex", 50, 1.0).eta
    path = c.naive(TOY, LINE, steps, np.array([[0.0], [0.3]]))
    assert np.abs(path[1:]).max() < 1e-15
    slow = c.naive(TOY, LINE, np.full(20, 0.1), np.array([[0.3]]))
    near(slow[-1, 0, 0], 0.3 * 0.9**20)


def test_server_follows_the_clients_of_which_a_share_moves(rng):
    problem = c.bowls(rng, 4, 3)
    plan = c.schedule("convex", 40, 0.2, 0.3)
    path = c.run(
        problem,
        c.ball(1.0),
        plan,
        np.zeros((6, 3)),
        rng,
        share=0.3,
    )
    means = path.x.mean(2)
    near(path.server, means, abs=1e-12)
    steps = np.abs(np.diff(path.x, axis=0)).sum(-1)
    near((steps > 0).mean(), 0.3, abs=0.05)


def test_progress_by_hand():
    """Both models at their ends after a round: F_hat is (4 + 0) / 2, the mean is 0, F(0) is 5."""
    plan = c.schedule("convex", 1, 3.0)
    path = c.run(TOY, LINE, plan, np.zeros((2, 1)))
    measured = c.progress(TOY, path, plan, least=4.0)
    near(measured.h, [2 + 3 * sqrt(2) - 4])
    near(measured.excess, [1])
    near(measured.distance, [sqrt(2)])
    # Gradients / 2 at the start: -3 and 1, towards 1 and -1
    expected = np.array([[4, 4]])
    near(c.surrogate_gap(LINE, path), expected)


def test_wrong_oracles_leave_what_they_should(rng):
    problem = c.bowls(rng, 3, 2)
    plan = c.schedule("convex", 30, 0.2)
    path = c.run(
        problem,
        c.ball(1.0),
        plan,
        np.zeros((1, 2)),
        quality=0.7,
        slip=np.full(30, 0.06),
    )
    x = path.x[:-1]
    vertices = c.ball(1.0)(path.g)
    best = (path.g * (x - vertices)).sum(-1)
    left = (path.g * (x - path.s)).sum(-1)
    expected = np.maximum(0.7 * best - 0.02, 0)
    near(left, expected, abs=1e-12)


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
    for t, rho in enumerate(plan.rho):
        sample = problem.gradients(path.x[t], again) / 3
        d = (1 - rho) * d + rho * sample
        again.random((1, 3))  # the coins
        near(path.d[t], d, abs=1e-12)
