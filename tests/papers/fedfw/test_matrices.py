"""Matrices of low rank: gradients, the truth on the boundary, what is held out."""

from dataclasses import replace

import pytest
import torch
from expect import refuses
from randoms import generator as rng

import fedlib as fl
from fedlib.metrics import mean_gradient
from papers.fedfw.matrices import matrix_completion, multi_task_regression

DOUBLE = torch.float64


@pytest.mark.parametrize("make", [multi_task_regression, matrix_completion])
def test_matrices(make):
    """Gradients, the truth on the boundary, and Frank-Wolfe towards it with rank-one messages."""
    problem = make(clients=5, dtype=DOUBLE)
    w = 0.1 * torch.randn(problem.dim, generator=rng(), dtype=DOUBLE)
    general = replace(problem, gradient=None)
    torch.testing.assert_close(mean_gradient(problem, w), mean_gradient(general, w))
    truth = problem.heldout[0]
    at = problem.metrics(truth.flatten(), problem)
    assert at["error"] < 1e-12
    assert at["size"] == pytest.approx(1.0, abs=1e-5)
    assert at["rank"] == 2
    small = make(clients=2, noise=0.0, **({"rows": 60} if make is multi_task_regression else {
        "users": 20, "items": 20, "observed": 0.6, "rank": 1,
    }))  # fmt: skip
    lam0 = 0.03 if make is multi_task_regression else 1e-4
    trace = fl.run(fl.FedFWPlus(lam0), small, rounds=300, evaluate_every=300, progress=False)
    assert trace.metrics["error"][0, 1] < 0.15 * trace.metrics["error"][0, 0]
    assert trace.info["bits_up"][0, 0] == 2 * 32 * sum(small.heldout[0].shape)


def test_entries_that_nobody_observed_are_held_out():
    problem = matrix_completion(clients=5, users=10, items=8, observed=0.5)
    seen, hidden = problem.data[0], problem.heldout[1]
    assert sorted([*seen.tolist(), *hidden.tolist()]) == list(range(80))
    for j, rows in enumerate(problem.rows):
        assert set((seen[rows] // 8).tolist()) == {2 * j, 2 * j + 1}


def test_refusals():
    refuses("multi_task_regression: rank must lie in 1..15", multi_task_regression, rank=99)
    refuses("multi_task_regression: noise must be nonneg", multi_task_regression, noise=-1)
    refuses("matrix_completion: clients must divide users =", matrix_completion, clients=7)
    refuses("matrix_completion: observed must lie in (0,", matrix_completion, observed=1.0)
