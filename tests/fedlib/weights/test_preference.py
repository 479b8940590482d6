"""Weights by preference: the program against all vertices, sets and directions by hand."""

from itertools import combinations

import numpy as np
import pytest
import torch

from fedlib.solvers.linear_program import solve
from fedlib.weights import Preference
from fedlib.weights.preference import balancing
from tests.helpers.expect import close
from tests.helpers.grams import assert_on_simplex, gram
from tests.helpers.problems import double
from tests.helpers.randoms import uniform


def vertices(G, bound):
    """All vertices of the feasible set of the program, by solving for every active set."""
    count = len(G)
    rows = np.vstack([np.eye(count), G])
    right = np.append(np.zeros(count), bound)
    real = np.flatnonzero(np.isfinite(right))
    for active in combinations(real, count - 1):
        A = np.vstack([np.ones(count), rows[list(active)]])
        if abs(np.linalg.det(A)) > 1e-9:
            w = np.linalg.solve(A, np.append(1.0, right[list(active)]))
            if (rows[real] @ w >= right[real] - 1e-9).all():
                yield w


@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_program_against_all_vertices(count):
    rng = np.random.default_rng(0)
    for seed in range(40):
        G = gram(count, seed=seed).numpy() / count
        free = rng.random(count) < 0.3
        bound = np.where(free, -np.inf, -rng.random(count))
        gain = rng.normal(size=count)
        *w, fallback = solve(G, gain, bound)
        best = max(gain @ v for v in vertices(G, bound))
        assert fallback == 0
        assert gain @ w == pytest.approx(best, abs=1e-7)
        assert (G @ w >= bound - 1e-7).all()
        assert_on_simplex(np.array(w))


@pytest.mark.parametrize("count", [2, 3, 5, 11, 40])
def test_gram_matrices_are_never_without_a_solution(count):
    for seed in range(20):
        for dim in (1, count // 2 + 1, 2 * count):
            G = gram(count, dim=dim, seed=seed, scales=seed % 2 == 1 and dim > count)
            w, _, fallback = Preference()(G, uniform(count, seed=seed))
            assert fallback == 0
            assert_on_simplex(w)


def test_a_matrix_without_a_solution_by_hand():
    G = double([-1.0, -1.0], [-1.0, 3.0])
    w, mu, fallback = Preference()(G, double(2.0, 1.0))
    assert mu > 0.01
    assert fallback == 1  # J* = {1}, and (G w)_1 = -1 everywhere
    assert_on_simplex(w)


@pytest.mark.parametrize(
    ("first_loss", "epsilon", "weights"),
    [
        (3.0, 0.01, [1.0, 0.0]),  # all on the worse loss
        # within the tolerance: the largest total descent, the second gradient is longer
        (1.05, 0.01, [0.0, 1.0]),
        (1.05, 1e-5, [1.0, 0.0]),
    ],
)
def test_the_sets_by_hand(first_loss, epsilon, weights):
    """a_1 > 0 > a_2 and orthogonal gradients: J = {1}, Jbar = {2}, J* = {1}."""
    G = double([1.0, 0.0], [0.0, 2.0])
    w, mu, _ = Preference(epsilon=epsilon)(G, double(first_loss, 1.0))
    close(w, double(*weights), 1e-7)
    assert (mu > epsilon) == (weights[0] == 1.0)


@pytest.mark.parametrize(("dominance", "share"), [(False, 1), (True, 0)])
def test_dominance_lets_no_loss_rise(dominance, share):
    G = double([4.0, -0.9], [-0.9, 1.0])
    losses = double(1.0, 0.99)
    a, _ = balancing(losses, double(1.0, 1.0))
    rise = (G @ a)[1]
    assert rise < -0.001
    w = Preference(dominance=dominance)(G, losses).weights
    close((G @ w)[1], share * rise, 1e-6)


def test_a_lower_star_ratio_counts_more_losses_among_the_worst():
    G = double([4.0, -1.0, -1.0], [-1.0, 1.0, 0.0], [-1.0, 0.0, 9.0])
    w = Preference(star_ratio=0.9)(G, double(1.0, 0.95, 0.2)).weights
    assert (G @ w)[1] >= -1e-7, "the second is among the worst, and must not rise"


@pytest.mark.parametrize(
    ("gradients", "losses", "epsilon", "weights"),
    [
        # orthogonal gradients at the preferred ratio: mu = 0 is no imbalance, so the sum falls
        ([[2, 0], [0, 1]], [1, 1], 0.0, [1, 0]),
        # the last two are opposite: (G a)_k = 0, so k is in Jbar and neither may rise
        ([[2, 0, 1], [0, 1, -1], [0, 0, 1], [0, 0, -1]], [2, 2, 1, 1], 10, [0.5, 0.5, 0, 0]),
        # J is empty, (G a)_k <= 0 for all k, so none may rise: 2 w_1 <= 2 w_3
        ([[2, 0, 1], [0, 0, 0], [-1, 1, 0]], [3, 4, 3], 10, [0.5, 0, 0.5]),
        # the largest loss must not rise, although (G a)_2 > 0: 2 w_1 <= w_2
        ([[2, 2], [-1, 0]], [1, 4], 10, [1 / 3, 2 / 3]),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_constraints_by_hand(gradients, losses, epsilon, weights, dtype):
    H = torch.tensor(gradients, dtype=dtype)
    choice = Preference(epsilon=epsilon)(H @ H.T, torch.tensor(losses, dtype=dtype))
    close(choice.weights, torch.tensor(weights, dtype=dtype), 1e-6)


def test_ratios_keep_the_digits_of_the_losses():
    _, mu, _ = Preference(ratios=(0.1, 0.3))(torch.eye(2).double(), double(1.0, 1.0))
    expected = np.log(2) + 0.25 * np.log(0.25) + 0.75 * np.log(0.75)
    assert float(mu) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("count", [2, 5, 40])
def test_the_balancing_direction_is_the_gradient_of_the_imbalance(count):
    losses = uniform(count) + 0.1
    ratios = uniform(count, seed=1) + 0.5
    a, _ = balancing(losses, ratios)
    slope = torch.func.grad(lambda x: balancing(x, ratios)[1])(losses)
    torch.testing.assert_close(
        slope,
        a / (ratios * losses).sum(),
        atol=1e-13,
        rtol=1e-9,
    )
    assert abs(float(a @ losses)) < 1e-12
