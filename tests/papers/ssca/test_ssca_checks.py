"""What the notes on SSCA measure, by hand, by dual bounds and by autograd."""

import numpy as np
import pytest
import torch

from fedlib.steps import PowerLaw
from papers.ssca import checks
from papers.ssca.leaks import network_gradients, recover
from tests.helpers.expect import near

POINT = np.ones((1, 1))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_averaged_surrogates_by_hand():
    """w^2 and 3 w, first at 1 with weight 1, then at 2 with weight 1/2; tau is 1/2."""
    start = checks.no_surrogates(runs=1, constraints=1, dim=1, tau=0.5)
    values = np.array([[1.0, 3.0]])
    slopes = np.array([[[2.0], [3.0]]])
    at_start = start.averaged(1.0, POINT, values, slopes)
    near(at_start.values(POINT), values)
    near(at_start.gradients(POINT), slopes)
    # At 2 the surrogates made at 1 are 1 + 2 + 1 / 2 and 3 + 3 + 1 / 2
    values = np.array([[4.0, 6.0]])
    slopes = np.array([[[4.0], [3.0]]])
    both = at_start.averaged(0.5, 2 * POINT, values, slopes)
    near(both.values(2 * POINT), np.array([[7.5 / 2, 12.5 / 2]]))
    program = both.program(c=2.0)
    near(program.a0, both.B[:, 0])
    near(program.A, both.A[:, 1:])
    assert program.c == 2


def test_programs_by_hand():
    """Minimize w + w^2 / 2 + 3 [w^2 / 2 - A]_+ on the line, for A = 2 and A = 0."""
    programs = checks.Program(
        a0=np.ones((2, 1)),
        A=np.array([[-2.0], [0.0]]),
        B=np.zeros((2, 1, 1)),
        tau0=0.5,
        tau=0.5,
        c=3.0,
    )
    free = checks.minimizer(programs, np.zeros((2, 1)))
    near(free[:, 0], [-1, -1])
    near(checks.primal(programs, free), [-0.5, -0.5 + 1.5])
    nu = checks.multipliers(programs)
    near(nu[:, 0], [0, 3])
    near(checks.dual(programs, nu), [-0.5, -1 / 8])


@pytest.mark.parametrize(("constraints", "sweeps"), [(0, 1), (1, 1), (2, 300), (3, 600)])
def test_coordinate_ascent_solves_the_program(rng, constraints, sweeps):
    """The dual is never above the primal: where they meet both are solved."""
    programs = checks.Program(
        a0=rng.standard_normal((40, 3)),
        A=rng.standard_normal((40, constraints)),
        B=rng.standard_normal((40, constraints, 3)),
        tau0=0.5,
        tau=0.2,
        c=4.0,
    )
    nu = checks.multipliers(programs, sweeps)
    w = checks.minimizer(programs, nu)
    value = checks.primal(programs, w)
    near(value, checks.dual(programs, nu), abs=1e-6)
    for move in rng.standard_normal((20, 40, 3)):
        moved = checks.primal(programs, w + 0.1 * move)
        assert (moved >= value - 1e-6).all()


def test_ripples_slope_and_batches(rng):
    ripples = checks.ripples(
        rng,
        6,
        2,
        s=0.3,
        centre=1.0,
        level=0.5,
    )
    w = rng.standard_normal((3, 2))
    rows = np.array([[0, 1], [2, 2], [4, 5]])
    gradient = ripples.gradient(w, rows)
    for k, h in enumerate(1e-5 * np.eye(2)):
        change = ripples.value(w + h, rows) - ripples.value(w - h, rows)
        near(gradient[:, k], change / 2e-5, abs=1e-8)
    everything = np.tile(np.arange(6), (3, 1))
    near(ripples.value(w, everything), ripples.value(w))
    near(ripples.gradient(w, everything), ripples.gradient(w))


def test_first_round_by_hand(rng):
    """One sample, F_0 = w^2 / 2 and F_1 = (w - 2)^2 / 2 - 1, from w = 1 with rho = 1.

    Both surrogates are exact: the minimizer of w^2 / 2 + [(w - 2)^2 / 2 - 1]_+ / 2 is 2 - root 2.
    """
    path = checks.ssca(
        functions=[
            checks.Ripples(POINT, 0 * POINT),
            checks.Ripples(POINT, 2 * POINT, level=1.0),
        ],
        rho=np.ones(2),
        gamma=np.full(2, 0.5),
        tau=0.5,
        batch=1,
        start=POINT,
        rng=rng,
        c=0.5,
    )
    root = np.sqrt(2)
    near(path.w[0] + path.step[0], 2 - root)
    near(path.error, 0)
    near(path.gap, 0)
    near(path.nu[0, 0, 0], (2 - root) / root)
    near(path.w[1], 1 + 0.5 * (1 - root))


def test_network_gradients_are_autograds(rng):
    W1 = rng.standard_normal((4, 6))
    W2 = rng.standard_normal((3, 4))
    X = rng.standard_normal((5, 6))
    Y = np.eye(3)[[0, 2, 1, 1, 0]]

    def loss(W1, W2):
        z = torch.from_numpy(X) @ W1.T
        outputs = (z * z.sigmoid()) @ W2.T
        return torch.nn.functional.cross_entropy(outputs, torch.from_numpy(Y))

    weights = torch.from_numpy(W1), torch.from_numpy(W2)
    slopes = torch.func.grad(loss, argnums=(0, 1))(*weights)
    gradients = network_gradients(W1, W2, X, Y)
    for gradient, slope in zip(gradients, slopes, strict=True):
        near(gradient, slope.numpy(), abs=1e-12)


def test_one_sample_is_recovered(rng):
    W1 = rng.standard_normal((6, 8)) / 3
    W2 = rng.standard_normal((3, 6)) / 3
    x = rng.random((1, 8))
    label = np.eye(3)[[1]]
    messages = network_gradients(W1, W2, x, label)
    near(recover(W1, W2, *messages, longest=3.0), x[0], abs=1e-8)


def broken(rho, gamma):
    """The conditions that step sizes do not meet."""
    conditions = checks.conditions(rho, gamma)
    assert len(conditions) == 7
    return {condition.name for condition in conditions if not condition.holds}


@pytest.mark.parametrize(
    ("a1", "a2", "alpha"),
    [
        (0.4, 0.4, 0.4),  # B = 1
        (0.6, 0.9, 0.3),  # B = 10
        (0.9, 0.9, 0.3),  # B = 100
    ],
)
def test_the_papers_own_step_sizes_break_two_conditions(a1, a2, alpha):
    names = broken(PowerLaw(a1, alpha), PowerLaw(a2, alpha + 0.05))
    assert names == {"sum gamma^2 < inf", "sum rho^2 < inf"}


@pytest.mark.parametrize(
    ("alpha", "beta", "names"),
    [
        (0.6, 0.65, set()),
        (0.51, 1.0, set()),
        (0.0, 0.6, {"lim rho = 0", "sum rho^2 < inf"}),
        (0.6, 0.6, {"lim gamma / rho = 0"}),
        (0.6, 1.1, {"sum gamma = inf"}),
        (1.1, 1.2, {"sum rho = inf", "sum gamma = inf"}),
        (0.6, 0.0, {"lim gamma = 0", "sum gamma^2 < inf", "lim gamma / rho = 0"}),
        (0.5, 0.5, {"sum gamma^2 < inf", "sum rho^2 < inf", "lim gamma / rho = 0"}),
    ],
)
def test_each_condition_fails_where_it_should(alpha, beta, names):
    assert broken(PowerLaw(1.0, alpha), PowerLaw(1.0, beta)) == names
