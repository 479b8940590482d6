"""Skewness: identity to machine precision, bound, tightness, and the printed form that fails."""

import math

import pytest
import torch
from torch.testing import assert_close

from papers.fedsgm.skewness import client_gradients, multiplier, skew_matrix, skewness
from tests.helpers import plain
from tests.helpers.expect import close, near
from tests.helpers.problems import double, np_problem
from tests.helpers.randoms import normal


def instance(seed, N=6, d=4, scale=1.0):
    a, b = normal(2, N, d, seed=seed)
    return scale * a, b


@pytest.mark.parametrize("seed", range(20))
def test_identity_of_appendix_a(seed):
    a, b = instance(seed, N=2 + seed % 7, d=1 + seed % 9)
    left = skew_matrix(a, b) - skew_matrix(a.mean(0, True), b.mean(0, True))
    right = skew_matrix(a - a.mean(0), b - b.mean(0))
    close(left, right, 1e-12)
    assert not torch.allclose(left, -right, rtol=0, atol=1e-6) or a.shape[1] == 1


@pytest.mark.parametrize(("N", "d"), [(3, 2), (4, 50), (50, 4), (1, 3)])
def test_norms_equal_those_of_the_matrices(N, d):
    a, b = instance(7, N, d)
    skew = skewness(a, b)
    local = skew_matrix(a, b)
    glob = skew_matrix(a.mean(0, True), b.mean(0, True))
    expected = [torch.linalg.matrix_norm(x) for x in (local, glob, local - glob)]
    close(torch.stack(skew[:3]), torch.stack(expected), 1e-12)


def test_one_pair_by_hand():
    """N = 1, a = (3, 0), b = (1, 2): K = [[0, 6], [-6, 0]], no drift."""
    skew = skewness(torch.tensor([[3.0, 0.0]]), torch.tensor([[1.0, 2.0]]))
    expected = 6 * math.sqrt(2)
    near(skew.local.item(), expected, rel=1e-6)
    expected = 6 * math.sqrt(2)
    near(skew.glob.item(), expected, rel=1e-6)
    assert skew.difference.item() == skew.bound.item() == 0


def test_bound_is_attained_by_rank_one_orthogonal_drifts():
    """Drifts s_j x for f and s_j y for g with x and y orthogonal: the constant sqrt(2) is best."""
    s = double([1.0], [-1.0], [2.0], [-2.0])
    x = torch.tensor([[3.0, 0.0, 0.0]])
    y = torch.tensor([[0.0, 0.0, 5.0]])
    a = s * x + 7.0
    b = s * y - 2.0
    skew = skewness(a, b)
    expected = skew.bound.item()
    near(skew.difference.item(), expected, rel=1e-12)
    expected = math.sqrt(2) * 3 * 5 * 2.5
    near(skew.bound.item(), expected, rel=1e-12)


def test_gradients_of_all_clients_and_the_multiplier():
    problem = np_problem()
    w = torch.full((30,), 0.1).double()
    a, b = client_gradients(problem, w)
    X, y, shares = problem.data
    for j in (0, 11):
        r = problem.rows[j]
        expected = plain.gradient(
            w,
            X[r],
            y[r],
            shares[r],
            0,
        )
        assert_close(a[j], expected)
        expected = plain.gradient(
            w,
            X[r],
            y[r],
            shares[r],
            1,
        )
        assert_close(b[j], expected)
    expected = float(a.mean(0).norm() / b.mean(0).norm())
    near(multiplier(problem, w), expected)
