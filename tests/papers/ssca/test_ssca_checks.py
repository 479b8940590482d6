"""What the notes on SSCA measure, by hand and against generic solvers."""

import numpy as np
import pytest
import torch
from torch.func import grad

from fedlib.steps import PowerLaw
from papers.ssca import checks as c
from papers.ssca.checks import conditions
from papers.ssca.leaks import network_gradients, recover
from tests.helpers.expect import near


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def program(rng, rows, constraints):
    a0 = rng.standard_normal((rows, 3))
    B = rng.standard_normal((rows, constraints, 3))
    return c.Program(
        a0,
        rng.standard_normal((rows, constraints)),
        B,
        0.5,
        0.2,
        4.0,
    )


def test_averaged_surrogates_by_hand():
    """w^2 and 3 w, first at 1 with weight 1, then at 2 with weight 1/2; tau is 1/2."""
    start = c.no_surrogates(
        runs=1,
        constraints=1,
        dim=1,
        tau=0.5,
    )
    at_1 = start.averaged(
        1.0,
        np.ones((1, 1)),
        np.array([[1.0, 3]]),
        np.array([[[2.0], [3]]]),
    )
    near(at_1.values(np.ones((1, 1))), np.array([[1, 3]]))
    near(at_1.gradients(np.ones((1, 1)))[0, :, 0], [2, 3])
    # At 2 the surrogates made at 1 are 1 + 2 + 1 / 2 and 3 + 3 + 1 / 2
    w = np.full((1, 1), 2.0)
    both = at_1.averaged(
        0.5,
        w,
        np.array([[4.0, 6]]),
        np.array([[[4.0], [3]]]),
    )
    near(both.values(w), np.array([[(3.5 + 4) / 2, (6.5 + 6) / 2]]))
    program = both.program(c=2.0)
    near(program.a0, both.B[:, 0])
    assert program.A.tolist() == both.A[:, 1:].tolist()
    assert program.c == 2


def test_program_by_hand():
    """Minimize w + w^2 / 2 + c [w^2 / 2 - A]_+ on the line."""
    p = c.Program(
        np.ones((2, 1)),
        np.array([[-2.0], [0.0]]),
        np.zeros((2, 1, 1)),
        0.5,
        0.5,
        3.0,
    )
    near(c.minimizer(p, np.zeros((2, 1)))[:, 0], [-1, -1])
    near(c.primal(p, np.full((2, 1), -1.0)), [-0.5, -0.5 + 1.5])
    near(c.dual(p, np.array([[0.0], [3.0]])), [-0.5, -1 / 8])
    near(c.multipliers(p)[:, 0], [0, 3])


@pytest.mark.parametrize(("constraints", "sweeps"), [(0, 1), (1, 1), (2, 300), (3, 600)])
def test_coordinate_ascent_solves_the_program(rng, constraints, sweeps):
    p = program(rng, 40, constraints)
    w = c.minimizer(p, c.multipliers(p, sweeps))
    gap = c.primal(p, w) - c.dual(p, c.multipliers(p, sweeps))
    assert np.abs(gap).max() < 1e-6
    least = c.primal(p, w) - 1e-6
    for move in rng.standard_normal((100, 40, 3)):
        assert (c.primal(p, w + 0.1 * move) >= least).all()


def test_ripples_slope_and_batches(rng):
    ripples = c.ripples(
        rng,
        6,
        2,
        s=0.3,
        centre=1.0,
        level=0.5,
    )
    w = rng.standard_normal((3, 2))
    rows = np.array([[0, 1], [2, 2], [4, 5]])
    for k in range(2):
        h = 1e-5 * np.eye(2)[k]
        slope = (ripples.value(w + h, rows) - ripples.value(w - h, rows)) / 2e-5
        near(ripples.gradient(w, rows)[:, k], slope, abs=1e-8)
    everything = np.tile(np.arange(6), (3, 1))
    near(ripples.value(w, everything), ripples.value(w))
    near(ripples.gradient(w, everything), ripples.gradient(w))
    expected = ripples.h.mean(0).max() + 1.2
    near(ripples.smoothness, expected)


def test_first_round_by_hand():
    """One sample, F_0 = w^2 / 2 and F_1 = (w - 2)^2 / 2 - 1, from w = 1 with rho = 1."""
    objective = c.Ripples(np.ones((1, 1)), np.array([[0.0]]), level=0)
    constraint = c.Ripples(np.ones((1, 1)), np.array([[2.0]]), level=1.0)
    rng = np.random.default_rng(0)
    start = np.ones((1, 1))
    rho = np.ones(2)
    gamma = np.full(2, 0.5)
    path = c.ssca(
        [objective, constraint],
        rho,
        gamma,
        0.5,
        1,
        start,
        rng,
        c=0.5,
    )
    # Both surrogates are exact: minimise w^2 / 2 + [(w - 2)^2 / 2 - 1]_+ / 2, so w = 0.586
    expected = 2 - np.sqrt(2)
    near(path.w[0] + path.step[0], expected)
    near(path.error, 0)
    near(path.gap, 0)
    expected = (2 - np.sqrt(2)) / np.sqrt(2)
    near(path.nu[0, 0, 0], expected)
    near(path.w[1], 1 + 0.5 * (1 - np.sqrt(2)))


def test_network_gradients_are_autograds(rng):
    W1, W2, X = (torch.from_numpy(rng.standard_normal(shape)) for shape in ((4, 6), (3, 4), (5, 6)))
    y = torch.tensor([0, 2, 1, 1, 0])

    def loss(W1, W2):
        z = X @ W1.T
        return torch.nn.functional.cross_entropy((z * z.sigmoid()) @ W2.T, y)

    slopes = grad(loss, argnums=(0, 1))(W1, W2)
    ours = network_gradients(
        W1.numpy(),
        W2.numpy(),
        X.numpy(),
        np.eye(3)[y.numpy()],
    )
    for gradient, slope in zip(ours, slopes, strict=True):
        near(gradient, slope.numpy(), abs=1e-12)


def test_one_sample_is_recovered(rng):
    W1 = rng.standard_normal((6, 8)) / 3
    W2 = rng.standard_normal((3, 6)) / 3
    x = rng.random((1, 8))
    messages = network_gradients(
        W1,
        W2,
        x,
        np.eye(3)[[1]],
    )
    near(recover(W1, W2, *messages, longest=3.0), x[0], abs=1e-8)


PAPER = ((0.4, 0.4, 0.4), (0.6, 0.9, 0.3), (0.9, 0.9, 0.3))  # a_1, a_2, alpha for B = 1, 10, 100


@pytest.mark.parametrize(("a1", "a2", "alpha"), PAPER)
def test_the_papers_own_step_sizes_break_two_conditions(a1, a2, alpha):
    checked = conditions(PowerLaw(a1, alpha), PowerLaw(a2, alpha + 0.05))
    assert len(checked) == 7
    broken = {condition.name for condition in checked if not condition.holds}
    assert broken == {"sum gamma^2 < inf", "sum rho^2 < inf"}


def test_a_valid_family_meets_all_conditions():
    assert all(c.holds for c in conditions(PowerLaw(1.0, 0.6), PowerLaw(1.0, 0.65)))
    assert all(c.holds for c in conditions(PowerLaw(0.5, 0.51), PowerLaw(0.9, 1.0)))


@pytest.mark.parametrize(
    ("alpha", "beta", "broken"),
    [
        (0.0, 0.6, {"lim rho = 0", "sum rho^2 < inf"}),
        (0.6, 0.6, {"lim gamma / rho = 0"}),
        (0.6, 1.1, {"sum gamma = inf"}),
        (1.1, 1.2, {"sum rho = inf", "sum gamma = inf"}),
        (0.6, 0.0, {"lim gamma = 0", "sum gamma^2 < inf", "lim gamma / rho = 0"}),
        (0.5, 0.5, {"sum gamma^2 < inf", "sum rho^2 < inf", "lim gamma / rho = 0"}),
    ],
)
def test_each_condition_fails_where_it_should(alpha, beta, broken):
    checked = conditions(PowerLaw(1.0, alpha), PowerLaw(1.0, beta))
    assert {condition.name for condition in checked if not condition.holds} == broken
