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
    parts = (slice(1200), slice(1200, None))
    return [replace(table, X=table.X[rows], y=table.y[rows]) for rows in parts]


def pictures(tables, **options):
    options = {"data": "digits", "dtype": DOUBLE, **options}
    return constrained_pictures(*tables, **options)


def linear_pair(rng):
    """A model and the module of torch that has its parameters."""
    return linear_model(5, 3), torch.nn.Linear(5, 3)


def network_pair(rng):
    layers = torch.nn.Linear(5, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3)
    return mlp_model(5, 4, 3, rng), torch.nn.Sequential(*layers)


@pytest.mark.parametrize("make_pair", [linear_pair, network_pair])
def test_parameters_are_those_of_the_network_in_torch(make_pair):
    g = rng()
    model, module = make_pair(g)
    w, apply = fl.models.ravel(module)
    X = torch.randn(7, 5, generator=g)
    torch.testing.assert_close(model.apply(w, X), apply(w, X))
    assert model.shapes == tuple(tuple(p.shape) for p in module.parameters())
    assert len(model.w0) == len(w)


def test_a_linear_model_starts_at_zero_and_models_have_the_sizes_of_the_paper():
    assert linear_model(784, 10).w0.shape == (7850,)
    assert not linear_model(784, 10).w0.any()
    assert mlp_model(60, 20, 10, rng()).w0.shape == (1430,)


def test_metrics_are_what_they_say(tables):
    train, test = tables
    free = pictures(tables, train_rows=400)
    problem = free.within(fl.L1Ball(5.0))
    w = fl.L1Ball(5.0).project(torch.randn(problem.dim, generator=rng(), dtype=DOUBLE))
    metrics = problem.metrics(w, problem)
    A = w[:640].view(10, 64)
    b = w[640:]
    scaled = (test.X.flatten(1).double() / 16 - 0.5) / 0.5
    answers = (scaled @ A.T + b).argmax(1)
    assert metrics["accuracy"] == pytest.approx(float((answers == test.y).double().mean()))
    X, y = problem.data
    losses = [torch.nn.functional.cross_entropy(X[r] @ A.T + b, y[r]) for r in problem.rows]
    assert metrics["loss"] == pytest.approx(float(sum(losses) / 10))
    assert metrics["size"] == pytest.approx(float(w.abs().sum()) / 5)
    slope = mean_gradient(problem, w)
    assert metrics["gap"] == pytest.approx(float(slope @ w + 5 * slope.abs().max()))
    assert "gap" not in free.metrics(w, free)
    rows_of_bytes = (8 * (X + 1)).round().byte().tolist()
    originals = train.X.flatten(1).tolist()
    assert set(map(tuple, rows_of_bytes)) <= set(map(tuple, originals))


def test_measured_rows_are_the_first_of_every_client(tables):
    problem = pictures(tables, labels=3, measured=20).within(fl.Ball(5.0))
    assert min(problem.sizes) < max(problem.sizes)
    shortened = replace(problem, rows=problem.rows[:, :20], sizes=(20,) * 10)
    w = 0.1 * torch.randn(problem.dim, generator=rng(), dtype=DOUBLE)
    metrics = problem.metrics(w, problem)
    assert metrics["loss"] == pytest.approx(float(shortened.mean_losses(w)[0]))
    assert metrics["loss"] != pytest.approx(float(problem.mean_losses(w)[0]))
    assert metrics["gap"] == pytest.approx(float(fw_gap(shortened, w)))
    refuses("measured must lie in 1", pictures, tables, labels=3, measured=500)


def test_methods_learn_the_digits(tables):
    problem = pictures(tables, dtype=torch.float32).within(fl.Ball(10.0))
    for method in (fl.FedFW(1e-2), fl.FedFWPlus(1e-2), fl.FedFWSto(1e-3, 32), fl.FedDR(0.1, 2)):
        trace = fl.run(method, problem, rounds=60, evaluate_every=60, progress=False)
        at_start, at_end = trace.metrics["accuracy"][0]
        assert at_start < 0.2
        assert at_end > 0.8
        assert trace.metrics["size"][0, 1] <= 1 + 1e-6
        assert trace.metrics["gap"].min() >= 0


def enlarged(table):
    """Sixty digits with a border, as large as those of MNIST."""
    X = torch.nn.functional.pad(table.X, (10, 10, 10, 10))
    return replace(table, X=X[:60], y=table.y[:60])


def test_a_cnn_over_clients(tables):
    small = [enlarged(table) for table in tables]
    problem = pictures(
        small,
        model="cnn",
        clients=3,
        dtype=torch.float32,
        measured=5,
    )
    w = problem.w0
    assert problem.dim == 184_586
    shapes = problem.config["shapes"]
    assert shapes[0] == [32, 1, 5, 5]
    bounded = problem.within(fl.Blocks.of_shapes(shapes, fl.L1Ball(10.0)))
    trace = fl.run(fl.FedFW(1e-3), bounded, rounds=1, progress=False)
    bits = [int(np.ceil(np.log2(np.prod(shape)))) + 1 for shape in shapes]
    assert trace.info["bits_up"][0, 0] == 3 * sum(bits)
    assert np.isfinite(trace.metrics["loss"]).all()
    together = replace(problem, sequential_clients=False)
    torch.testing.assert_close(together.mean_losses(w), problem.mean_losses(w))
    slope = mean_gradient(problem, w)
    torch.testing.assert_close(mean_gradient(together, w), slope, atol=1e-6, rtol=1e-4)
