"""Classification over convex sets: models, metrics, methods."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib import data
from fedlib.metrics import fw_gap, mean_gradient
from fedlib.problems.classification import linear_model, mlp_model
from papers.fedfw.feasible_data import constrained_pictures
from tests.helpers.expect import refuses
from tests.helpers.randoms import generator as rng

DOUBLE = torch.float64


@pytest.fixture(scope="module")
def tables():
    table = data.digits()
    return [replace(table, X=table.X[a:b], y=table.y[a:b]) for a, b in ((0, 1200), (1200, 1797))]


def pictures(tables, **options):
    options = {"data": "digits", "dtype": DOUBLE, **options}
    return constrained_pictures(*tables, **options)


def test_parameters_are_those_of_the_network_in_torch():
    g = rng()
    for model, module in (
        (linear_model(5, 3), torch.nn.Linear(5, 3)),
        (
            mlp_model(5, 4, 3, g),
            torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3)),
        ),
    ):
        w, apply = fl.models.ravel(module)
        X = torch.randn(7, 5, generator=g)
        torch.testing.assert_close(model.apply(w, X), apply(w, X))
        assert model.shapes == tuple(tuple(p.shape) for p in module.parameters())
        assert len(model.w0) == len(w)
    assert linear_model(784, 10).w0.shape == (7850,)
    assert not linear_model(784, 10).w0.any()
    assert mlp_model(60, 20, 10, g).w0.shape == (1430,)


def test_metrics_are_what_they_say(tables):
    train, test = tables
    problem = pictures(tables, train_rows=400).within(fl.L1Ball(5.0))
    w = fl.L1Ball(5.0).project(torch.randn(problem.dim, generator=rng(), dtype=DOUBLE))
    found = problem.metrics(w, problem)
    A, b = w[:640].view(10, 64), w[640:]
    scaled = (test.X.flatten(1).double() / 16 - 0.5) / 0.5
    right = ((scaled @ A.T + b).argmax(1) == test.y).double().mean()
    assert found["accuracy"] == pytest.approx(float(right))
    each = [
        torch.nn.functional.cross_entropy(problem.data[0][r] @ A.T + b, problem.data[1][r])
        for r in problem.rows
    ]
    assert found["loss"] == pytest.approx(float(sum(each) / 10))
    assert found["size"] == pytest.approx(float(w.abs().sum()) / 5)
    slope = mean_gradient(problem, w)
    assert found["gap"] == pytest.approx(float(slope @ w + 5 * slope.abs().max()))
    assert "gap" not in pictures(tables, train_rows=400).metrics(
        w, pictures(tables, train_rows=400)
    )
    bytes_of = (8 * (problem.data[0] + 1)).round().byte()
    assert set(map(tuple, bytes_of.tolist())) <= set(map(tuple, train.X.flatten(1).tolist()))


def test_measured_rows_are_the_first_of_every_client(tables):
    problem = pictures(tables, labels=3, measured=20).within(fl.Ball(5.0))
    assert min(problem.sizes) < max(problem.sizes)
    part = replace(problem, rows=problem.rows[:, :20], sizes=(20,) * 10)
    w = 0.1 * torch.randn(problem.dim, generator=rng(), dtype=DOUBLE)
    found = problem.metrics(w, problem)
    assert found["loss"] == pytest.approx(float(part.mean_losses(w)[0]))
    assert found["loss"] != pytest.approx(float(problem.mean_losses(w)[0]))
    assert found["gap"] == pytest.approx(float(fw_gap(part, w)))
    refuses("measured must lie in 1", pictures, tables, labels=3, measured=500)


def test_methods_learn_the_digits(tables):
    problem = pictures(tables, dtype=torch.float32).within(fl.Ball(10.0))
    for method in (fl.FedFW(1e-2), fl.FedFWPlus(1e-2), fl.FedFWSto(1e-3, 32), fl.FedDR(0.1, 2)):
        trace = fl.run(method, problem, rounds=60, evaluate_every=60, progress=False)
        assert trace.metrics["accuracy"][0, 0] < 0.2 < 0.8 < trace.metrics["accuracy"][0, 1]
        assert trace.metrics["size"][0, 1] <= 1 + 1e-6
        assert trace.metrics["gap"].min() >= 0


def test_a_cnn_over_clients(tables):
    small = [
        replace(t, X=torch.nn.functional.pad(t.X, (10, 10, 10, 10))[:60], y=t.y[:60])
        for t in tables
    ]
    problem = pictures(small, model="cnn", clients=3, dtype=torch.float32, measured=5)
    assert problem.dim == 184_586
    shapes = problem.config["shapes"]
    assert shapes[0] == [32, 1, 5, 5]
    bounded = problem.within(fl.Blocks.of_shapes(shapes, fl.L1Ball(10.0)))
    trace = fl.run(fl.FedFW(1e-3), bounded, rounds=1, progress=False)
    assert trace.info["bits_up"][0, 0] == 3 * sum(
        int(np.ceil(np.log2(np.prod(s)))) + 1 for s in shapes
    )
    assert np.isfinite(trace.metrics["loss"]).all()
    whole = replace(problem, sequential_clients=False)
    torch.testing.assert_close(whole.mean_losses(problem.w0)[0], problem.mean_losses(problem.w0)[0])
    torch.testing.assert_close(
        mean_gradient(whole, problem.w0), mean_gradient(problem, problem.w0), atol=1e-6, rtol=1e-4
    )
