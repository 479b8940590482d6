"""The network of one hidden layer: gradient, metrics, start, subset, bad tables."""

from dataclasses import replace
from math import sqrt

import torch

from fedlib.core.problem import Batch
from fedlib.data import digits
from papers.ssca.network import swish_network
from tests.helpers.expect import close
from tests.helpers.networks import small, tiny
from tests.helpers.problems import double, slope_of


def test_the_networks_gradient_and_metrics():
    problem = tiny()
    rng = torch.Generator().manual_seed(5)
    w = torch.randn(24, generator=rng, dtype=torch.float64)
    weight = torch.rand(12, generator=rng, dtype=torch.float64)
    batch = Batch(problem.data, weight / weight.sum())
    two = double(2.0)
    close(problem.gradient(w, batch, two), slope_of(problem, w, batch, two))
    x = problem.data[0].double() / 255
    A = w[:15].view(3, 5)
    B = w[15:].view(3, 3)
    outputs = torch.nn.functional.silu(x @ A.T) @ B.T
    losses = torch.nn.functional.cross_entropy(
        outputs,
        problem.data[1],
        reduction="none",
    )
    close(problem.losses(w, batch)[0], batch.weight @ losses)
    metrics = problem.metrics(w, problem)
    close(metrics["cost"], losses.mean())
    expected = (outputs.argmax(1) == problem.data[1]).double().mean()
    close(metrics["accuracy"], expected)
    close(metrics["norm"], w.square().sum())


def test_the_networks_start_split_and_subset():
    problem = small(seed=3, hidden=6, rows=121)
    assert problem.data[0].dtype == torch.uint8
    assert problem.dim == 64 * 6 + 6 * 10
    assert problem.rows.shape == (3, 40)  # one row is left out
    assert problem.rows.unique().numel() == 120
    assert problem.w0[: 64 * 6].abs().max() <= 1 / 8
    assert 0.2 < problem.w0[64 * 6 :].abs().max() <= 1 / sqrt(6)
    assert not torch.equal(problem.rows, small(seed=4, rows=121).rows)
    table = digits()
    subset = swish_network(
        table,
        table,
        hidden=2,
        evaluate=50,
        scale=16.0,
    )
    assert subset.heldout[0].unique().numel() == 50
    assert subset.w0.dtype == torch.float32


def test_the_cost_on_a_subset_is_computed_in_parts():
    table = digits()
    problem = swish_network(
        table,
        table,
        clients=3,
        hidden=2,
        evaluate=1797,
        scale=16.0,
    )
    double = replace(problem, w0=problem.w0.double())
    cost = double.metrics(double.w0, double)["cost"]
    close(cost, double.mean_losses(double.w0)[0], 1e-12)
