"""Weights by preference: the program against all vertices, sets and directions by hand."""

from itertools import combinations, product

import numpy as np
import pytest
import torch

from fedlib.solvers.linear_program import solve
from fedlib.weights import Preference
from fedlib.weights.preference import balancing
from tests.helpers.expect import close
from tests.helpers.grams import assert_on_simplex, gram


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


class TestProgramme:
    def test_against_all_vertices(self):
        rng = np.random.default_rng(0)
        for seed, count in product(range(40), (2, 3, 4)):
            G = gram(count, seed=seed).numpy() / count
            bound = np.where(rng.random(count) < 0.3, -np.inf, -rng.random(count))
            gain = rng.normal(size=count)
            *w, fallback = solve(G, gain, bound)
            best = max(gain @ v for v in vertices(G, bound))
            assert fallback == 0
            assert gain @ w == pytest.approx(best, abs=1e-7)
            assert (G @ w >= bound - 1e-7).all()
            assert_on_simplex(np.array(w))

    def test_never_without_a_solution_for_gram_matrices(self):
        for seed, count in product(range(40), (2, 3, 5, 11, 40)):
            dim = (1, count // 2 + 1, 2 * count)[seed % 3]
            G = gram(count, dim=dim, seed=seed, scales=seed % 2 == 1 and dim > count)
            losses = torch.rand(count, generator=torch.Generator().manual_seed(seed)).double()
            w, _, fallback = Preference()(G, losses)
            assert fallback == 0
            assert_on_simplex(w)

    def test_a_matrix_without_a_solution_by_hand(self):
        G = torch.tensor([[-1.0, -1.0], [-1.0, 3.0]], dtype=torch.float64)
        w, mu, fallback = Preference()(G, torch.tensor([2.0, 1.0]).double())
        assert mu > 0.01
        assert fallback == 1  # J* = {1}, and (G w)_1 = -1 everywhere
        assert_on_simplex(w)

    def test_the_sets_by_hand(self):
        # a = (a_1, a_2) with a_1 > 0 > a_2; orthogonal gradients: J = {1}, Jbar = {2}, J* = {1}
        G = torch.diag(torch.tensor([1.0, 2.0])).double()
        losses = torch.tensor([3.0, 1.0]).double()
        a, _ = balancing(losses, torch.ones(2).double())
        assert a[0] > 0 > a[1]
        w, _, _ = Preference()(G, losses)
        torch.testing.assert_close(w, torch.tensor([1.0, 0.0]).double())  # all on the worse loss
        # within the tolerance: the largest total descent, the second gradient is longer
        w, mu, _ = Preference()(G, torch.tensor([1.05, 1.0]).double())
        assert mu < 0.01
        torch.testing.assert_close(w, torch.tensor([0.0, 1.0]).double())
        w, _, _ = Preference(epsilon=1e-5)(G, torch.tensor([1.05, 1.0]).double())
        torch.testing.assert_close(w, torch.tensor([1.0, 0.0]).double())

    def test_dominance_and_star_ratio_change_the_constraints(self):
        G = torch.tensor([[4.0, -0.9], [-0.9, 1.0]]).double()
        losses = torch.tensor([1.0, 0.99]).double()
        printed, all_fall = (Preference(dominance=d)(G, losses).weights for d in (False, True))
        a, _ = balancing(losses, torch.ones(2).double())
        assert (G @ a)[1] < -0.001
        close((G @ printed)[1], (G @ a)[1], 1e-6)
        close((G @ all_fall)[1], 0 * a[1], 1e-6)
        G3 = torch.tensor([[4.0, -1.0, -1.0], [-1.0, 1.0, 0.0], [-1.0, 0.0, 9.0]]).double()
        losses = torch.tensor([1.0, 0.95, 0.2]).double()
        loose = Preference(star_ratio=0.9)(G3, losses).weights
        assert (G3 @ loose)[1] >= -1e-7, "the second is among the worst, and must not rise"

    @pytest.mark.parametrize(
        ("gradients", "losses", "epsilon", "expected"),
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
    def test_the_constraints_by_hand(self, gradients, losses, epsilon, expected, dtype):
        H = torch.tensor(gradients, dtype=dtype)
        weights = Preference(epsilon=epsilon)(H @ H.T, torch.tensor(losses, dtype=dtype)).weights
        close(weights, torch.tensor(expected, dtype=dtype), 1e-6)

    def test_ratios_keep_the_digits_of_the_losses(self):
        losses = torch.ones(2, dtype=torch.float64)
        _, mu, _ = Preference(ratios=(0.1, 0.3))(torch.eye(2).double(), losses)
        close(mu, np.log(2) + 0.25 * np.log(0.25) + 0.75 * np.log(0.75), 1e-15)


class TestBalancing:
    @pytest.mark.parametrize("count", [2, 5, 40])
    def test_it_is_the_gradient_of_the_imbalance(self, count):
        rng = torch.Generator().manual_seed(count)
        F = torch.rand(count, generator=rng, dtype=torch.float64) + 0.1
        r = torch.rand(count, generator=rng, dtype=torch.float64) + 0.5
        a, _ = balancing(F, r)
        slope = torch.func.grad(lambda x: balancing(x, r)[1])(F)
        torch.testing.assert_close(slope, a / (r * F).sum(), atol=1e-13, rtol=1e-9)
        assert abs(float(a @ F)) < 1e-12
