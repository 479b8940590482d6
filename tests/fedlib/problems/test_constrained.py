"""Classification over convex sets: models, metrics, methods."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, pad

import fedlib as fl
from fedlib import data
from fedlib.metrics import fw_gap, mean_gradient
from fedlib.problems.classification import (
    Samples,
    classifier,
    cnn_model,
    in_pieces,
    linear_model,
    mlp_model,
)
from papers.fedfw.feasible_data import constrained_pictures
from tests.helpers.expect import close, refuses
from tests.helpers.randoms import generator, normal

DIGITS = data.digits()
TRAIN = replace(DIGITS, X=DIGITS.X[:1200], y=DIGITS.y[:1200])
TEST = replace(DIGITS, X=DIGITS.X[1200:], y=DIGITS.y[1200:])


def pictures(train=TRAIN, test=TEST, **options):
    options = {"data": "digits", "dtype": torch.float64, **options}
    return constrained_pictures(train, test, **options)


LAYERS = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))
PAIRS = [
    (linear_model(5, 3), nn.Linear(5, 3)),
    (mlp_model(5, 4, 3, generator()), LAYERS),
]


@pytest.mark.parametrize(("model", "module"), PAIRS)
def test_parameters_are_those_of_the_network_in_torch(model, module):
    w, apply = fl.models.ravel(module)
    X = torch.randn(7, 5, generator=generator())
    close(model.apply(w, X), apply(w, X), 1e-6)
    assert model.shapes == tuple(tuple(p.shape) for p in module.parameters())
    assert len(model.w0) == len(w)


def test_a_linear_model_starts_at_zero():
    assert not linear_model(784, 10).w0.any()


def test_metrics_are_what_they_say():
    free = pictures(train_rows=400)
    problem = free.within(fl.L1Ball(5.0))
    w = problem.set.project(normal(problem.dim))
    metrics = problem.metrics(w, problem)
    A = w[:640].view(10, 64)
    b = w[640:]
    scaled = TEST.X.flatten(1).double() / 8 - 1
    right = (scaled @ A.T + b).argmax(1) == TEST.y
    close(metrics["accuracy"], right.double().mean())
    X, y = problem.data
    losses = [cross_entropy(X[r] @ A.T + b, y[r]) for r in problem.rows]
    close(metrics["loss"], torch.stack(losses).mean())
    close(metrics["size"], w.abs().sum() / 5)
    slope = mean_gradient(problem, w)
    close(metrics["gap"], slope @ w + 5 * slope.abs().max())
    assert "gap" not in free.metrics(w, free)
    trained = (8 * (X + 1)).round().byte()
    assert set(map(tuple, trained.tolist())) <= set(map(tuple, TRAIN.X.flatten(1).tolist()))


def test_measured_rows_are_the_first_of_every_client():
    problem = pictures(labels=3, measured=20).within(fl.Ball(5.0))
    assert min(problem.sizes) < max(problem.sizes)
    shortened = replace(problem, rows=problem.rows[:, :20], sizes=(20,) * 10)
    w = 0.1 * normal(problem.dim)
    metrics = problem.metrics(w, problem)
    close(metrics["loss"], shortened.mean_losses(w)[0])
    assert metrics["loss"] != pytest.approx(float(problem.mean_losses(w)[0]))
    close(metrics["gap"], fw_gap(shortened, w))
    refuses("measured must lie in 1", pictures, labels=3, measured=500)


@pytest.mark.parametrize("method", [fl.FedFW(1e-2), fl.FedDR(0.1, 2)])
def test_methods_learn_the_digits(method):
    problem = pictures(dtype=torch.float32).within(fl.Ball(10.0))
    metrics = fl.run(method, problem, rounds=60, evaluate_every=60, progress=False).metrics
    at_start, at_end = metrics["accuracy"][0]
    assert at_start < 0.2
    assert at_end > 0.8
    assert metrics["size"][0, 1] <= 1 + 1e-6


def enlarged(table):
    """Sixty digits with a border, as large as those of MNIST."""
    X = pad(table.X[:60], (10, 10, 10, 10))
    return replace(table, X=X, y=table.y[:60])


def test_a_cnn_over_clients():
    options = {"model": "cnn", "clients": 3, "dtype": torch.float32, "measured": 5}
    problem = pictures(enlarged(TRAIN), enlarged(TEST), **options)
    shapes = problem.config["shapes"]
    assert shapes[0] == [32, 1, 5, 5]
    bounded = problem.within(fl.Blocks.of_shapes(shapes, fl.L1Ball(10.0)))
    trace = fl.run(fl.FedFW(1e-3), bounded, rounds=1, progress=False)
    bits = [int(np.ceil(np.log2(np.prod(shape)))) + 1 for shape in shapes]
    assert trace.info["bits_up"][0, 0] == 3 * sum(bits)
    together = replace(problem, sequential_clients=False)
    slope = mean_gradient(problem, problem.w0)
    close(mean_gradient(together, problem.w0), slope, 1e-4)


@pytest.mark.parametrize("weights", [None, "rows", (1.0, 2.0, 5.0)])
def test_pieces_of_clients_have_the_means_of_the_clients(weights):
    rng = generator()
    X = torch.randint(
        0,
        255,
        (45, 1, 16, 16),
        dtype=torch.uint8,
        generator=rng,
    )
    samples = Samples(X, torch.randint(0, 10, (45,), generator=rng))
    rows = torch.arange(45).view(3, 15)
    options = {"sizes": (15, 3, 7), "scale": (255.0, 0.5, 0.5)}
    problem = classifier(samples, samples, rows, cnn_model(1, 16, 10, rng), **options)
    problem = problem.within(fl.L1Ball(10.0))
    if weights is not None:
        problem = problem.weighted(weights)
    pieces = in_pieces(problem, 4)
    w = problem.w0
    assert pieces.sizes == (4, 4, 4, 3, 3, 4, 3)
    close(pieces.mean_losses(w), problem.mean_losses(w), 1e-6)
    close(fw_gap(pieces, w), fw_gap(problem, w), 1e-5)
    assert in_pieces(problem, 15) is problem
