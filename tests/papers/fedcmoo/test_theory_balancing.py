"""The balancing direction and the linear program of the note, by hand."""

from math import log

import numpy as np

from papers.fedcmoo.theory.balancing import balance, game_value, min_norm, preference_program
from tests.helpers.expect import near

ONE = np.ones(2)


def test_balance_by_hand():
    mu, a = balance(np.array([1.0, 2.0]), np.array([3.0, 0.5]))  # u = 3/4, 1/4
    expected = 0.75 * log(1.5) + 0.25 * log(0.5)
    near(mu, expected)
    near(a, [log(1.5) - expected, 2 * (log(0.5) - expected)])
    near(balance(np.array([1.0, 2.0]), np.array([2.0, 1.0]))[1], [0, 0])
    both, _ = balance(np.ones(2), np.array([[3.0, 1.0], [1.0, 1.0]]))
    near(both, [expected, 0])


def test_program_by_hand():
    """Orthogonal unit gradients: all weight on the larger loss, or anything in descent mode."""
    program = preference_program(ONE, np.array([3.0, 1.0]), np.eye(2))
    _, a = balance(ONE, np.array([3.0, 1.0]))
    near(program.weights, [1, 0])
    near(program.value, a[0])
    assert program.falling.tolist() == program.worst.tolist() == [True, False]
    near(program.low, [0, a[1]])
    equal = preference_program(ONE, ONE, np.diag([1.0, 2.0]))
    near(equal.weights, [0, 1])  # the larger decrease
    assert equal.worst.all()


def test_an_indefinite_matrix_can_be_infeasible():
    bad = np.array([[1.0, -2.0], [-2.0, 1.0]])
    program = preference_program(ONE, np.array([1.1, 1.0]), bad)
    assert np.isnan(program.value)
    assert np.isnan(program.weights).all()
    near(game_value(bad), -0.5)
    near(game_value(np.eye(2)), 0.5)


def test_min_norm_by_hand_and_by_its_optimality():
    near(min_norm(np.diag([1.0, 2.0])), [0.8, 0.2])
    near(min_norm(np.zeros((2, 3))).sum(), 1)
    rng = np.random.default_rng(0)
    for _ in range(20):
        jac = rng.standard_normal((4, 3)) * np.exp(2 * rng.standard_normal(3))
        w = min_norm(jac)
        slope = jac.T @ jac @ w
        assert slope.min() >= w @ slope - 1e-9 * np.square(jac).sum()
