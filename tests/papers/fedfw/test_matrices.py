"""Matrices of low rank: gradients, the truth on the boundary."""

from dataclasses import replace

import torch
from torch.testing import assert_close

import fedlib as fl
from fedlib.metrics import mean_gradient
from papers.fedfw.matrices import multi_task_regression
from tests.helpers.expect import near
from tests.helpers.randoms import generator as rng


def test_regression_of_several_tasks():
    """Gradients, the truth on the boundary, and Frank-Wolfe towards it with rank-one messages."""
    problem = multi_task_regression(clients=5, dtype=torch.float64)
    w = 0.1 * torch.randn(problem.dim, generator=rng(), dtype=torch.float64)
    general = replace(problem, gradient=None)
    assert_close(mean_gradient(problem, w), mean_gradient(general, w))
    values = torch.linalg.svdvals(problem.heldout[0])
    near(float(values.sum()), problem.set.radius)
    near(float(values[2]), 0, abs=1e-6)  # made in float32
    small = multi_task_regression(clients=2, noise=0.0, rows=60)
    trace = fl.run(
        fl.FedFWPlus(0.03),
        small,
        rounds=300,
        evaluate_every=300,
        progress=False,
    )
    truth = small.heldout[0].flatten()
    assert (trace.state.w[0] - truth).norm() < 0.15 * truth.norm()
    assert trace.info["bits_up"][0, 0] == 2 * 32 * sum(small.heldout[0].shape)
