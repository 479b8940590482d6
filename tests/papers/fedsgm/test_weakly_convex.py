"""Clipped distances: constants as stated, prox points against a brute-force grid, the lemmas."""

import numpy as np
import pytest
import torch

from fedlib.core.problem import Batch
from papers.fedsgm.problems import weakly_convex as c
from papers.fedsgm.problems.prox import lemma_11, prox_point
from tests.helpers.randoms import normal

RHO = 0.5  # of the random instances


def column(*values):
    return torch.tensor(values, dtype=torch.float64).unsqueeze(1)


def random_points(count, dim, seed=0):
    x = normal(count, dim, seed=seed)
    return x / x.norm(dim=-1, keepdim=True).clamp_min(1)


def test_values_and_gradient_by_hand():
    """|w - a| = 1 gives 1 - 1/4 at clip 2; a point beyond the clip has value 1, slope 0."""
    problem = c.clipped_distances(
        column(0.0, -9.0), column(0.5, 0.5), 0.25, 2.0, 1.0, column(1.0)[0]
    )
    f, g = problem.mean_losses(problem.w0).tolist()
    assert f == pytest.approx((0.75 + 1.0) / 2)
    assert g == pytest.approx(0.25)
    clients = Batch(problem.data, torch.full((2,), 0.5, dtype=torch.float64))
    for weights, expected in (((1.0, 0.0), 0.25), ((0.0, 1.0), 1.0)):
        slope = problem.gradient(problem.w0, clients, torch.tensor(weights).double())
        assert slope.item() == pytest.approx(expected)


def test_weakly_convex_with_one_over_clip_and_with_nothing_less():
    """Midpoint excess of f + rho / 2 |.|^2 along random segments, at rho = 1/clip never > 0."""
    problem = c.random_clipped(2, clients=1, clip=0.5)

    def excess(rho, u, w):
        h = [problem.mean_losses(x)[0] + rho / 2 * x.square().sum() for x in (u, w, (u + w) / 2)]
        return float(h[2] - (h[0] + h[1]) / 2)

    a = problem.data[0][0]
    points = random_points(400, 2)
    radial = [(a * 0.9, a * 0.7)]
    pairs = [*zip(points[:200], points[200:], strict=True), *radial]
    assert max(excess(2.0, u, w) for u, w in pairs) <= 1e-12
    assert max(excess(1.8, u, w) for u, w in pairs) > 1e-4


def test_random_instances_satisfy_their_assumptions():
    for seed in range(20):
        problem = c.random_clipped(seed, dim=2 + seed % 2, spread=0.1 * (seed % 3))
        assert c.slater_slack(problem) >= 0.4
        assert problem.set.contains(problem.data[1].mean(0))
        assert problem.set.contains(problem.data[0][0])
        assert float(problem.mean_losses(problem.w0)[1]) > 0.2  # the start is not feasible


def test_prox_point_is_that_of_a_grid_in_two_dimensions():
    axis = np.linspace(-1, 1, 401)
    mesh = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    mesh = mesh[np.linalg.norm(mesh, axis=1) <= 1]
    for seed in range(4):
        problem = c.random_clipped(seed, spread=0.1)
        values = torch.func.vmap(problem.mean_losses)(torch.from_numpy(mesh)).numpy()
        for w in random_points(3, 2, seed):
            h = values[:, 0] + 0.75 * ((mesh - w.numpy()) ** 2).sum(1)
            h[values[:, 1] > 0] = np.inf
            prox = prox_point(problem, w, 1.5)
            assert prox.value <= h.min() + 1e-6
            strong = 1.5 - RHO  # |y - z|^2 <= 2 (h(z) - h(y)) / strong
            gap = np.linalg.norm(prox.y - mesh[h.argmin()])
            assert gap <= np.sqrt(2 * max(h.min() - prox.value, 0) / strong) + 1e-5


def test_prox_point_at_a_kink_of_the_objective():
    """A centre a_j that is itself the prox centre and free: y stays there, exactly."""
    a = torch.tensor([[0.2, 0.1]], dtype=torch.float64)
    problem = c.clipped_distances(a, a - 0.3, 0.9, 2.0, 1.0, a[0])
    prox = prox_point(problem, a[0] + 0.05, 4.0)
    assert prox.y == pytest.approx(a[0].numpy(), abs=1e-12)
    assert prox.residual == 0.0
    assert prox.multiplier == 0.0


def test_the_multiplier_is_the_slope_of_the_optimal_value():
    """Raising the level c by h lowers the value by multiplier h."""
    problem = c.random_clipped(0)
    a, b = problem.data[:2]
    w = problem.data[0].mean(0)
    value = {}
    h = 1e-4
    for step in (-h, 0.0, h):
        raised = c.clipped_distances(a, b, 0.5 + step, 2.0, 1.0, problem.w0)
        value[step] = prox_point(raised, w, 1.5)
    assert value[0.0].multiplier > 0.1
    slope = (value[-h].value - value[h].value) / (2 * h)
    assert value[0.0].multiplier == pytest.approx(slope, rel=1e-3)


def test_lemma_11_on_random_points_and_the_rho_term_is_needed():
    over = []
    for seed in range(20):
        problem = c.random_clipped(seed, clip=0.5)
        for w in random_points(5, 2, seed):
            for local_steps in (1, 4):
                y = torch.from_numpy(prox_point(problem, w, 5.0).y)
                left, right, rho_term = lemma_11(problem, w, y, local_steps, 0.01)
                assert left <= right + rho_term + 1e-12
                over.append(left - right)
    assert max(over) > 0


def test_a_problem_that_has_no_feasible_point_is_reported():
    problem = c.clipped_distances(
        column(0.0),
        column(9.0),
        1.0,
        1.0,
        1.0,
        column(0.0)[0],
    )
    with pytest.raises(RuntimeError, match="optimality conditions must hold"):
        prox_point(problem, problem.w0, 2.0)
