"""What the notes on SSCA measure, by hand and against generic solvers."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch.func import grad

from fedlib.steps import PowerLaw
from papers.ssca import checks as c
from papers.ssca.checks import conditions
from papers.ssca.leaks import combined, fibre, network_gradients, recover


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def program(rng, rows, constraints):
    a0 = rng.standard_normal((rows, 3))
    B = rng.standard_normal((rows, constraints, 3))
    return c.Program(a0, rng.standard_normal((rows, constraints)), B, 0.5, 0.2, 4.0)


def test_sums_and_biases_by_hand():
    assert c.bias(np.array([0.5, 0.5, 1.0])) == pytest.approx([2, 4 / 3, 1])


def test_power_laws_and_bins():
    assert c.power_law(3.0, 0.5, 4) == pytest.approx([3, 3 / np.sqrt(2), np.sqrt(3), 1.5])
    values = np.arange(100.0)
    ends, means = c.binned_means(values, first=10, bins=3)
    assert ends.tolist() == [31, 100]
    assert means == pytest.approx([20, 65])


def test_averaged_surrogates_by_hand():
    """w^2 and 3 w, first at 1 with weight 1, then at 2 with weight 1/2; tau is 1/2."""
    start = c.no_surrogates(runs=1, constraints=1, dim=1, tau=0.5)
    at_1 = start.averaged(1.0, np.ones((1, 1)), np.array([[1.0, 3]]), np.array([[[2.0], [3]]]))
    assert at_1.values(np.ones((1, 1))) == pytest.approx(np.array([[1, 3]]))
    assert at_1.gradients(np.ones((1, 1)))[0, :, 0] == pytest.approx([2, 3])
    # At 2 the surrogates made at 1 are 1 + 2 + 1 / 2 and 3 + 3 + 1 / 2
    w = np.full((1, 1), 2.0)
    both = at_1.averaged(0.5, w, np.array([[4.0, 6]]), np.array([[[4.0], [3]]]))
    assert both.values(w) == pytest.approx(np.array([[(3.5 + 4) / 2, (6.5 + 6) / 2]]))
    program = both.program(c=2.0)
    assert program.a0 == pytest.approx(both.B[:, 0])
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
    assert c.minimizer(p, np.zeros((2, 1)))[:, 0] == pytest.approx([-1, -1])
    assert c.primal(p, np.full((2, 1), -1.0)) == pytest.approx([-0.5, -0.5 + 1.5])
    assert c.dual(p, np.array([[0.0], [3.0]])) == pytest.approx([-0.5, -1 / 8])
    assert c.multipliers(p)[:, 0] == pytest.approx([0, 3])


@pytest.mark.parametrize(("constraints", "sweeps"), [(0, 1), (1, 1), (2, 300), (3, 600)])
def test_coordinate_ascent_solves_the_program(rng, constraints, sweeps):
    p = program(rng, 40, constraints)
    w = c.minimizer(p, c.multipliers(p, sweeps))
    gap = c.primal(p, w) - c.dual(p, c.multipliers(p, sweeps))
    assert np.abs(gap).max() < 1e-6
    least = c.primal(p, w) - 1e-6
    for move in rng.standard_normal((100, 40, 3)):
        assert (c.primal(p, w + 0.1 * move) >= least).all()


def generic_solution(p, row):
    """One program by scipy: its variables are w and the two slacks."""

    def objective(x):
        w = x[:3]
        return p.a0[row] @ w + p.tau0 * w @ w + p.c * x[3:].sum()

    def room(x):
        w = x[:3]
        return x[3:] - p.A[row] - p.B[row] @ w - p.tau * w @ w

    return minimize(
        objective,
        [0.0, 0.0, 0.0, 5.0, 5.0],
        method="SLSQP",
        bounds=[(None, None)] * 3 + [(0, None)] * 2,
        constraints={"type": "ineq", "fun": room},
        options={"ftol": 1e-13},
    ).x[:3]


def test_against_a_generic_solver(rng):
    p = program(rng, 5, 2)
    w = c.minimizer(p, c.multipliers(p, 500))
    for row in range(5):
        assert generic_solution(p, row) == pytest.approx(w[row], abs=1e-5)


def test_ripples_slope_and_batches(rng):
    ripples = c.ripples(rng, 6, 2, s=0.3, centre=1.0, level=0.5)
    w = rng.standard_normal((3, 2))
    rows = np.array([[0, 1], [2, 2], [4, 5]])
    for k in range(2):
        h = 1e-5 * np.eye(2)[k]
        slope = (ripples.value(w + h, rows) - ripples.value(w - h, rows)) / 2e-5
        assert ripples.gradient(w, rows)[:, k] == pytest.approx(slope, abs=1e-8)
    everything = np.tile(np.arange(6), (3, 1))
    assert ripples.value(w, everything) == pytest.approx(ripples.value(w))
    assert ripples.gradient(w, everything) == pytest.approx(ripples.gradient(w))
    expected = ripples.h.mean(0).max() + 1.2
    assert ripples.smoothness == pytest.approx(expected)


def test_first_round_by_hand():
    """One sample, F_0 = w^2 / 2 and F_1 = (w - 2)^2 / 2 - 1, from w = 1 with rho = 1."""
    objective = c.Ripples(np.ones((1, 1)), np.array([[0.0]]), level=0)
    constraint = c.Ripples(np.ones((1, 1)), np.array([[2.0]]), level=1.0)
    rng = np.random.default_rng(0)
    start = np.ones((1, 1))
    rho = np.ones(2)
    gamma = np.full(2, 0.5)
    path = c.ssca([objective, constraint], rho, gamma, 0.5, 1, start, rng, c=0.5)
    # Both surrogates are exact: minimise w^2 / 2 + [(w - 2)^2 / 2 - 1]_+ / 2, so w = 0.586
    expected = 2 - np.sqrt(2)
    assert path.w[0] + path.step[0] == pytest.approx(expected)
    assert path.error == pytest.approx(0)
    assert path.gap == pytest.approx(0)
    expected = (2 - np.sqrt(2)) / np.sqrt(2)
    assert path.nu[0, 0, 0] == pytest.approx(expected)
    assert path.w[1] == pytest.approx(1 + 0.5 * (1 - np.sqrt(2)))


def test_network_gradients_are_autograds(rng):
    W1, W2, X = (torch.from_numpy(rng.standard_normal(shape)) for shape in ((4, 6), (3, 4), (5, 6)))
    y = torch.tensor([0, 2, 1, 1, 0])

    def loss(W1, W2):
        z = X @ W1.T
        return torch.nn.functional.cross_entropy((z * z.sigmoid()) @ W2.T, y)

    slopes = grad(loss, argnums=(0, 1))(W1, W2)
    ours = network_gradients(W1.numpy(), W2.numpy(), X.numpy(), np.eye(3)[y.numpy()])
    for gradient, slope in zip(ours, slopes, strict=True):
        assert gradient == pytest.approx(slope.numpy(), abs=1e-12)


def test_one_sample_is_recovered(rng):
    W1 = rng.standard_normal((6, 8)) / 3
    W2 = rng.standard_normal((3, 6)) / 3
    x = rng.random((1, 8))
    messages = network_gradients(W1, W2, x, np.eye(3)[[1]])
    assert recover(W1, W2, *messages, longest=3.0) == pytest.approx(x[0], abs=1e-8)


def test_fibres(rng):
    assert fibre(rng.standard_normal((4, 2)), rng.standard_normal((2, 5))) == 4
    assert fibre(rng.standard_normal((4, 3)), rng.standard_normal((3, 1))) == 12 + 3 - 4


def test_the_combination_is_the_picture_itself_for_one_sample_only(rng):
    W1 = rng.standard_normal((6, 9))
    W2 = rng.standard_normal((4, 6))
    X = rng.random((2, 9))
    Y = np.eye(4)[[0, 2]]
    alone = combined(network_gradients(W1, W2, X[:1], Y[:1])[0])
    both = combined(network_gradients(W1, W2, X, Y)[0])
    assert (alone.min(), alone.max()) == (0, 1)
    scaled = (X[0] - X[0].min()) / (X[0].max() - X[0].min())
    assert np.abs(alone - scaled).max() < 1e-12
    assert np.abs(both - scaled).max() > 0.05
    flat = np.stack([np.ones(9), both])  # a combination of the batch and of a flat picture
    mixed = np.linalg.lstsq(np.vstack([X, np.ones(9)]).T, both, rcond=None)
    assert mixed[1].max() < 1e-20
    assert np.linalg.matrix_rank(np.vstack([X, flat])) == 3


PAPER = ((0.4, 0.4, 0.4), (0.6, 0.9, 0.3), (0.9, 0.9, 0.3))  # a_1, a_2, alpha for B = 1, 10, 100


@pytest.mark.parametrize(("a1", "a2", "alpha"), PAPER)
def test_the_papers_own_step_sizes_break_two_conditions(a1, a2, alpha):
    checked = conditions(PowerLaw(a1, alpha), PowerLaw(a2, alpha + 0.05))
    assert len(checked) == 7
    reasons = {condition.name: condition.why for condition in checked if not condition.holds}
    assert {*reasons} == {"sum gamma^2 < inf", "sum rho^2 < inf"}
    assert (
        reasons["sum gamma^2 < inf"]
        == f"gamma^2 falls as t^-{2 * alpha + 0.1:.4g}, whose sum is infinite"
    )


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
