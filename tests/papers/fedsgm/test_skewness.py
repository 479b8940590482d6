"""Skewness: identity to machine precision, bound, tightness, and the printed form that fails."""

import math

import pytest
import torch

from papers.fedsgm.skewness import client_gradients, multiplier, skew_matrix, skewness
from tests.helpers import plain
from tests.helpers.problems import np_problem
from tests.helpers.randoms import normal


def instance(seed, N=6, d=4, scale=1.0):
    a, b = normal(2, N, d, seed=seed)
    return scale * a, b


@pytest.mark.parametrize("seed", range(20))
def test_identity_of_appendix_a(seed):
    a, b = instance(seed, N=2 + seed % 7, d=1 + seed % 9)
    left = skew_matrix(a, b) - skew_matrix(a.mean(0, True), b.mean(0, True))
    right = skew_matrix(a - a.mean(0), b - b.mean(0))
    assert torch.allclose(left, right, rtol=0, atol=1e-12)
    assert not torch.allclose(left, -right, rtol=0, atol=1e-6) or a.shape[1] == 1


@pytest.mark.parametrize(("N", "d"), [(3, 2), (4, 50), (50, 4), (1, 3)])
def test_norms_equal_those_of_the_matrices(N, d):
    a, b = instance(7, N, d)
    skew = skewness(a, b)
    local = skew_matrix(a, b)
    glob = skew_matrix(a.mean(0, True), b.mean(0, True))
    expected = [torch.linalg.matrix_norm(x) for x in (local, glob, local - glob)]
    assert torch.allclose(
        torch.stack(skew[:3]),
        torch.stack(expected),
        rtol=0,
        atol=1e-12,
    )


def test_one_pair_by_hand():
    """N = 1, a = (3, 0), b = (1, 2): K = [[0, 6], [-6, 0]], no drift."""
    skew = skewness(torch.tensor([[3.0, 0.0]]), torch.tensor([[1.0, 2.0]]))
    expected = 6 * math.sqrt(2)
    assert skew.local.item() == pytest.approx(expected, rel=1e-6)
    expected = 6 * math.sqrt(2)
    assert skew.glob.item() == pytest.approx(expected, rel=1e-6)
    assert skew.difference.item() == skew.bound.item() == 0


def test_bound_holds_on_random_instances():
    for seed in range(300):
        skew = skewness(
            *instance(
                seed,
                N=2 + seed % 5,
                d=2 + seed % 6,
                scale=10.0 ** (seed % 4),
            )
        )
        assert skew.difference <= skew.bound * (1 + 1e-12)


def test_bound_is_attained_by_rank_one_orthogonal_drifts():
    """Drifts s_j x for f and s_j y for g with x and y orthogonal: the constant sqrt(2) is best."""
    s = torch.tensor([[1.0], [-1.0], [2.0], [-2.0]], dtype=torch.float64)
    x = torch.tensor([[3.0, 0.0, 0.0]])
    y = torch.tensor([[0.0, 0.0, 5.0]])
    a = s * x + 7.0
    b = s * y - 2.0
    skew = skewness(a, b)
    expected = skew.bound.item()
    assert skew.difference.item() == pytest.approx(expected, rel=1e-12)
    expected = math.sqrt(2) * 3 * 5 * 2.5
    assert skew.bound.item() == pytest.approx(expected, rel=1e-12)


def test_form_of_section_3_2_fails_on_a_generic_instance():
    """The bound is one on K_loc - K_glob; K_loc itself exceeds it."""
    failures = 0
    for seed in range(100):  # means and drifts of the same size, as clients' gradients have
        (a, b) = instance(seed)
        (mean_a, mean_b) = instance(1000 + seed, N=1)
        skew = skewness(a + 2 * mean_a, b + 2 * mean_b)
        failures += bool(skew.local > skew.bound)
    assert failures > 20
    a, b = instance(0)
    shifted = skewness(a + torch.tensor([9.0, 0, 0, 0]), b + torch.tensor([0, 9.0, 0, 0]))
    assert shifted.local > shifted.bound
    expected = skewness(a, b).difference.item()
    assert shifted.difference.item() == pytest.approx(expected, rel=1e-12)


def test_drift_far_below_the_gradients_keeps_its_digits():
    """A Gram matrix would square 1e-9 away against 1; the triangular factor does not."""
    a, b = instance(3)
    skew = skewness(1e6 + a, 1e6 + b).difference
    expected = skewness(a, b).difference.item()
    assert skew.item() == pytest.approx(expected, rel=1e-8)


def test_gradients_of_all_clients_and_the_multiplier():
    problem = np_problem()
    w = torch.full((30,), 0.1).double()
    a, b = client_gradients(problem, w)
    X, y, shares = problem.data
    for j in (0, 11):
        r = problem.rows[j]
        expected = plain.gradient(w, X[r], y[r], shares[r], 0)
        torch.testing.assert_close(a[j], expected)
        expected = plain.gradient(w, X[r], y[r], shares[r], 1)
        torch.testing.assert_close(b[j], expected)
    expected = float(a.mean(0).norm() / b.mean(0).norm())
    assert multiplier(problem, w) == pytest.approx(expected)
