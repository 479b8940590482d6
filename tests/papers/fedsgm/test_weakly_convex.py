"""Clipped distances: constants as stated, prox points against a brute-force grid, the lemmas."""

import numpy as np
import pytest
import torch

from fedlib.core.problem import Batch
from papers.fedsgm.problems import weakly_convex as c
from papers.fedsgm.problems.prox import prox_point
from tests.helpers.expect import near
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
    near(f, (0.75 + 1.0) / 2)
    near(g, 0.25)
    clients = Batch(problem.data, torch.full((2,), 0.5, dtype=torch.float64))
    for weights, expected in (((1.0, 0.0), 0.25), ((0.0, 1.0), 1.0)):
        slope = problem.gradient(problem.w0, clients, torch.tensor(weights).double())
        near(slope.item(), expected)


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


def test_the_multiplier_is_the_slope_of_the_optimal_value():
    """Raising the level c by h lowers the value by multiplier h."""
    problem = c.random_clipped(0)
    a, b = problem.data[:2]
    w = problem.data[0].mean(0)
    value = {}
    h = 1e-4
    for step in (-h, 0.0, h):
        raised = c.clipped_distances(
            a,
            b,
            0.5 + step,
            2.0,
            1.0,
            problem.w0,
        )
        value[step] = prox_point(raised, w, 1.5)
    assert value[0.0].multiplier > 0.1
    slope = (value[-h].value - value[h].value) / (2 * h)
    near(value[0.0].multiplier, slope, rel=1e-3)


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
