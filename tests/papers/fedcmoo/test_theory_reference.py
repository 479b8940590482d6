"""FedCMOO's constants and the measurements of its note, by hand and against plain loops."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from papers.fedcmoo.theory import bounds
from papers.fedcmoo.theory import reference as own
from papers.fedcmoo.theory.bounds import Rates, Setting
from tests.helpers.expect import near, refuses

CASE = Setting(
    b=2.0,
    sigma_l=1.0,
    sigma_g=3.0,
    q=1.0,
    M=4,
    N=5,
    n=2,
    n_gram=2,
    tau=8,
    T=50,
)


def test_constants_by_hand():
    # (1 + 1) / 2 * 1 + 1 / 2 * 4 + (5 - 2) / (2 * 4) * 9
    expected = 1 + 2 + 27 / 8
    near(bounds.gram_variance(CASE), expected)
    near(bounds.gram_variance(replace(CASE, sigma_l=0.0), misprint=True), 6.375)
    near(bounds.gram_variance(replace(CASE, N=1, n=1, n_gram=1)), 2 + 4)
    expected = (sqrt(6.375) + 2) ** 2
    near(bounds.gram_constant(CASE), expected)
    near(bounds.gram_constant(CASE, "ours"), 10.375)
    near(bounds.weight_move(CASE, 0.1, "ours"), 0.1 * 2 * 10.375)
    expected = 0.1 * 4 * 10.375**2 / 2
    near(bounds.weight_regret(CASE, 0.1, "ours"), expected)
    near(bounds.step_square(CASE), 4 + 1 / 16)
    expected = (2 + 1 / 4) ** 2
    near(bounds.step_square(CASE, "corrected"), expected)
    expected = 0.02 * (sqrt(8) + 2 * sqrt(112))
    near(bounds.drift(CASE, 0.01), expected)
    expected = 0.02 * (7 + sqrt(3.5))
    near(bounds.drift(CASE, 0.01, "ours"), expected)


def test_corollary_step_sizes():
    rates = bounds.corollary(CASE)
    near(rates.eta_c * rates.eta_s * 8, 1 / sqrt(50))
    near(rates.beta, 1 / (4 * sqrt(50)))
    near(bounds.corollary(CASE, "ours").beta, rates.beta / 10.375)
    refuses("tau T must be at least 4", bounds.corollary, replace(CASE, tau=1, T=3))


def test_projection_is_the_nearest_point():
    """The variational inequality against all vertices, and a value by hand."""
    v = np.random.default_rng(0).standard_normal((200, 5))
    p = own.project_simplex(v)
    assert (p >= 0).all()
    assert np.allclose(p.sum(1), 1)
    away = v - p
    assert (away.max(1) <= (away * p).sum(1) + 1e-12).all()
    near(own.project_simplex(np.array([0.9, 0.5, -1.0])), [0.7, 0.3, 0.0])


@pytest.mark.parametrize("common", [False, True])
def test_gram_factor_has_the_mean_and_the_variance_of_the_formula(common):
    rng = np.random.default_rng(1)
    s = replace(CASE, n_gram=3, sigma_l=0.5)
    g = own.random_gradients(
        rng,
        5,
        6,
        4,
        2.0,
        0.7,
    )
    near(np.linalg.norm(g, axis=1), 2.0)
    y = own.gram_factor(np.broadcast_to(g, (4000, *g.shape)), s, rng, common=common)
    error = y - g.mean(0)
    assert np.abs(error.mean(0)).max() < 0.12
    squares = np.square(error).sum(1)
    spread = squares.std(0) / sqrt(4000)
    assert (np.abs(squares.mean(0) - own.column_variance(g, s)) < 5 * spread).all()


def test_waves_have_the_gradients_of_their_losses_and_the_bounds():
    rng = np.random.default_rng(3)
    problem = own.waves(rng, replace(CASE, L=1.5), 3, 0.3)
    x = rng.standard_normal((7, 3))
    step = 1e-6
    slopes = []
    for direction in step * np.eye(3):
        change = problem.losses(x + direction) - problem.losses(x - direction)
        slopes.append(change / (2 * step))
    gradients = problem.gradients(x)
    assert np.allclose(np.stack(slopes, 1), gradients.mean(1), atol=1e-8)
    assert np.linalg.norm(gradients, axis=2).max() <= 2
    assert (problem.losses(x) >= problem.floor).all()
    chosen = np.broadcast_to([1, 3], (7, 2))
    assert np.allclose(problem.gradients(x, chosen), gradients[:, [1, 3]])


def test_local_work_is_a_plain_loop():
    rng = np.random.default_rng(4)
    s = replace(
        CASE,
        sigma_l=0.0,
        N=2,
        n=2,
        n_gram=1,
        tau=3,
    )
    problem = own.waves(rng, s, 3, 0.5)
    x = rng.standard_normal((1, 3))
    w = np.array([[0.1, 0.2, 0.3, 0.4]])
    ends = []
    for i in range(2):
        point = x.copy()
        for _ in range(3):
            point = point - 0.05 * problem.gradients(point, np.array([[i]]))[:, 0] @ w[0]
        ends.append(point)
    expected = (x - (ends[0] + ends[1]) / 2) / (3 * 0.05)
    assert np.allclose(
        own.local_work(
            problem,
            s,
            x,
            w,
            0.05,
            rng,
        ),
        expected,
    )


def test_a_run_without_noise_is_gradient_descent_with_moving_weights():
    rng = np.random.default_rng(5)
    s = Setting(
        b=1.0,
        M=2,
        N=3,
        n=3,
        n_gram=3,
        tau=1,
        T=4,
    )
    problem = own.waves(rng, s, 3, 0.5)
    squares = own.theory_run(
        problem,
        s,
        Rates(0.1, 1.0, 0.2),
        1,
        rng,
    )
    x = np.zeros((1, 3))
    w = np.array([0.5, 0.5])
    for t in range(4):
        jac = problem.gradients(x)[0].mean(0)
        expected = np.square(jac @ w).sum()
        near(squares[0, t], expected)
        w = own.project_simplex(w - 0.2 * jac.T @ jac @ w)
        x = x - 0.1 * (jac @ w)
