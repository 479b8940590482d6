"""The balancing direction and the linear program of the note, by hand."""

from math import log

import numpy as np
import pytest

from papers.fedcmoo.theory.balancing import balance, game_value, min_norm, preference_program
from tests.helpers.expect import near

EVEN = np.ones(2)
MU = 0.75 * log(1.5) + 0.25 * log(0.5)  # of losses in the shares 3/4 and 1/4


def test_balance_by_hand():
    mu, a = balance(np.array([1.0, 2.0]), np.array([3.0, 0.5]))
    near(mu, MU)
    near(a, [log(1.5) - MU, 2 * (log(0.5) - MU)])


def test_balanced_losses_have_no_direction():
    mu, a = balance(np.array([1.0, 2.0]), np.array([2.0, 1.0]))
    near(mu, 0)
    near(a, [0, 0])


def test_several_losses_are_balanced_at_once():
    losses = np.array([[3.0, 1.0], [1.0, 1.0]])
    mu, _ = balance(EVEN, losses)
    near(mu, [MU, 0])


def test_all_weight_on_the_larger_loss():
    losses = np.array([3.0, 1.0])
    program = preference_program(EVEN, losses, np.eye(2))
    _, a = balance(EVEN, losses)
    near(program.weights, [1, 0])
    near(program.value, a[0])
    assert program.falling.tolist() == [True, False]
    assert program.worst.tolist() == [True, False]
    near(program.low, [0, a[1]])


def test_equal_losses_take_the_larger_decrease():
    program = preference_program(EVEN, EVEN, np.diag([1.0, 2.0]))
    near(program.weights, [0, 1])
    assert program.worst.all()


def test_an_indefinite_matrix_can_be_infeasible():
    bad = np.array([[1.0, -2.0], [-2.0, 1.0]])
    program = preference_program(EVEN, np.array([1.1, 1.0]), bad)
    assert np.isnan(program.value)
    near(game_value(bad), -0.5)
    near(game_value(np.eye(2)), 0.5)


def test_the_shortest_combination_by_hand():
    near(min_norm(np.diag([1.0, 2.0])), [0.8, 0.2])


@pytest.mark.parametrize("seed", range(5))
def test_no_gradient_makes_the_shortest_combination_shorter(seed):
    rng = np.random.default_rng(seed)
    sizes = np.exp(2 * rng.standard_normal(3))
    jac = rng.standard_normal((4, 3)) * sizes
    w = min_norm(jac)
    slope = jac.T @ jac @ w
    assert slope.min() >= w @ slope - 1e-9 * np.square(jac).sum()
