"""Parts of trust-region policy optimization against plain loops and explicit matrices."""

import math

import pytest
import torch
from torch.testing import assert_close

from papers.fedsgm.cartpole import trpo as c
from tests.helpers.expect import close
from tests.helpers.problems import double
from tests.helpers.randoms import normal


def by_hand(amount, values, ended, discount, gae):
    """Advantages and returns of one environment, backwards in a plain loop."""
    steps = len(amount)
    advantages = torch.zeros(steps)
    returns = torch.zeros(steps)
    advantage = 0.0
    tail = float(values[-1])
    for t in reversed(range(steps)):
        going = 0.0 if ended[t] else 1.0
        delta = amount[t] + discount * going * values[t + 1] - values[t]
        advantage = float(delta + discount * gae * going * advantage)
        tail = float(amount[t] + discount * going * tail)
        advantages[t] = advantage
        returns[t] = tail
    return advantages, returns


@pytest.mark.parametrize("steps", [1, 2, 7, 64, 100])
def test_discounted_sums_equal_a_loop(steps):
    x = normal(steps, 3)
    keep = torch.rand(steps, 3, dtype=torch.float64)
    y = torch.zeros(3, dtype=torch.float64)
    expected = []
    for t in reversed(range(steps)):
        y = x[t] + keep[t] * y
        expected.insert(0, y)
    assert_close(c.discounted(x, keep), torch.stack(expected))


@pytest.mark.parametrize(("discount", "gae"), [(1.0, 0.97), (0.9, 1.0), (0.99, 0.0)])
def test_advantages_equal_a_loop_with_ends_and_a_cut(discount, gae):
    amount = normal(30, 2)
    values = normal(31, 2, seed=1)
    ended = torch.zeros(30, 2, dtype=torch.float64)
    ended[[4, 17], 0] = 1
    ended[29, 1] = 1  # one environment ends with the last step, the other is cut there
    gains, returns = c.advantages(
        amount,
        values,
        ended,
        discount,
        gae,
    )
    for e in range(2):
        expected = by_hand(
            amount[:, e],
            values[:, e],
            ended[:, e],
            discount,
            gae,
        )
        assert_close(gains[:, e].float(), expected[0])
        assert_close(returns[:, e].float(), expected[1])


def test_conjugate_gradient_solves_in_as_many_steps_as_there_are_dimensions():
    root = normal(12, 12)
    b = normal(12, seed=1)
    A = root @ root.T + 0.1 * torch.eye(12)
    x, remaining = c.conjugate_gradient(lambda p: A @ p, b, 12)
    assert_close(A @ x, b, atol=1e-6, rtol=1e-6)
    close(remaining, b - A @ x, 1e-8)
    early, left = c.conjugate_gradient(lambda p: A @ p, b, 3)
    close(left, b - A @ early, 1e-10)
    assert left.norm() > 1e-3
    assert c.conjugate_gradient(lambda p: A @ p, torch.zeros(12).double(), 3)[0].norm() == 0


def test_backtracking_takes_the_longest_step_within_the_limit_or_none():
    step = double(3.0, 4.0)
    taken = c.backtrack(
        lambda m: m @ m,
        step,
        10.0,
        0.5,
        4,
    )  # 25, 6.25: the second
    assert_close(taken, 0.5 * step)
    assert (
        c.backtrack(
            lambda m: m @ m,
            step,
            0.01,
            0.5,
            4,
        ).norm()
        == 0
    )
    assert torch.equal(
        c.backtrack(
            lambda m: 0 * m.sum(),
            step,
            0.01,
            0.5,
            4,
        ),
        step,
    )


def test_ridge_is_least_squares_as_the_penalty_vanishes_and_shrinks_with_it():
    x = normal(50, 4)
    y = normal(50, 2, seed=1)
    exact = torch.linalg.lstsq(x, y).solution
    close(c.ridge(x, y, 1e-12), exact, 1e-8)
    by_formula = torch.linalg.solve(x.T @ x / 50 + 0.3 * torch.eye(4), x.T @ y / 50)
    assert_close(c.ridge(x, y, 0.3), by_formula)


def test_features_hold_all_monomials_up_to_degree_two():
    z = double(2.0, 3.0)
    basis = c.cosine_basis(2, 5, z)
    features = c.cosine_features(z, basis)
    assert features.shape == (5 + 6,)
    assert features[5:].tolist() == [1, 2, 3, 4, 6, 9]
    expected = torch.cos(z @ basis[:2] + basis[2])
    assert_close(features[:5], expected)
    assert torch.equal(basis, c.cosine_basis(2, 5, z))


def test_normalized_has_mean_zero_and_variance_one_and_survives_constants():
    x = c.normalized(5 + 3 * normal(40))
    assert abs(x.mean()) < 1e-12
    assert math.isclose(x.square().mean(), 1, rel_tol=1e-6)
    assert torch.equal(c.normalized(torch.full((4,), 7.0)), torch.zeros(4))
