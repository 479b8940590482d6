"""What people bring first, torch's own losses and layers, against the plain loop."""

from itertools import product

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import fedlib as fl
from fedlib.engine import batch
from fedlib.problems import from_clients

SIZES = (20, 21, 22, 23)


def rows(target):
    rng = torch.Generator().manual_seed(0)
    return [(torch.randn(n, 8, generator=rng), target(n, rng)) for n in SIZES]


def bits(n, rng):
    return torch.randint(0, 2, (n,), generator=rng).float()


def classes(n, rng):
    return torch.randint(0, 3, (n,), generator=rng)


def numbers(n, rng):
    return torch.randn(n, generator=rng)


def mean_of(loss):
    return lambda rows: rows.mean(loss(rows.output, rows.target))


#: The module's outputs, the targets, and the loss of every row.
LOSSES = {
    "bce with logits": (
        1,
        bits,
        lambda o, y: F.binary_cross_entropy_with_logits(o.squeeze(-1), y, reduction="none"),
    ),
    "bce": (
        1,
        bits,
        lambda o, y: F.binary_cross_entropy(o.squeeze(-1).sigmoid(), y, reduction="none"),
    ),
    "cross entropy": (3, classes, lambda o, y: F.cross_entropy(o, y, reduction="none")),
    "nll": (3, classes, lambda o, y: F.nll_loss(o.log_softmax(-1), y, reduction="none")),
    "mse": (1, numbers, lambda o, y: F.mse_loss(o.squeeze(-1), y, reduction="none")),
    "l1": (1, numbers, lambda o, y: F.l1_loss(o.squeeze(-1), y, reduction="none")),
    "huber": (1, numbers, lambda o, y: F.huber_loss(o.squeeze(-1), y, reduction="none")),
    "smooth l1": (1, numbers, lambda o, y: F.smooth_l1_loss(o.squeeze(-1), y, reduction="none")),
    "soft margin": (1, bits, lambda o, y: F.softplus(-(2 * y - 1) * o.squeeze(-1))),
    "hinge": (1, bits, lambda o, y: F.relu(1 - (2 * y - 1) * o.squeeze(-1))),
}


def between(layer):
    """A network of two linear layers with something between them."""
    return lambda k: nn.Sequential(nn.Linear(8, 6), layer, nn.Linear(6, k))


LAYERS = {
    "linear": lambda k: nn.Linear(8, k),
    "ReLU": between(nn.ReLU()),
    "in-place ReLU": lambda k: nn.Sequential(
        nn.Linear(8, 6), nn.ReLU(inplace=True), nn.Linear(6, k)
    ),
    "LeakyReLU": between(nn.LeakyReLU()),
    "Tanh": between(nn.Tanh()),
    "GELU": between(nn.GELU()),
    "LayerNorm": between(nn.LayerNorm(6)),
    "convolution": lambda k: nn.Sequential(
        nn.Unflatten(-1, (1, 8)), nn.Conv1d(1, 2, 3), nn.ReLU(), nn.Flatten(-2), nn.Linear(12, k)
    ),
}


OF_CLASSES = ("cross entropy", "convolution")


def problem_of(loss, layer):
    outputs, target, row_loss = LOSSES[loss]
    torch.random.manual_seed(0)
    module = LAYERS[layer](outputs)
    return from_clients(rows(target), module=module, objective=mean_of(row_loss))


def grid_of(count, **options):
    """Methods that differ in their step size."""
    rates = [0.1 / number for number in range(1, count + 1)]
    return [
        fl.FedAvg(
            lr=lr,
            local_steps=2,
            participants=3,
            **options,
        )
        for lr in rates
    ]


def assert_same(problem, methods, seeds, rounds=3, **options):
    """A grid of methods with some seeds ends as it does in the plain loop."""
    grid = grid_of(methods, **options)
    settings = {"rounds": rounds, "seeds": range(seeds), "evaluate_every": rounds}
    fast = fl.run(grid, problem, progress=False, **settings)
    slow = fl.run(grid, problem, progress=False, engine=fl.Loop, **settings)
    for trace, expected in zip(fast, slow, strict=True):
        torch.testing.assert_close(trace.state.w, expected.state.w, rtol=1e-4, atol=1e-5)


def each_alone_or_weekly(loss, layer):
    """Every loss with one layer and every layer with one loss; the other pairs are weekly."""
    alone = layer == "linear" or loss == "mse" or (loss, layer) == OF_CLASSES
    return pytest.param(loss, layer, marks=() if alone else pytest.mark.weekly)


PAIRS = [each_alone_or_weekly(loss, layer) for loss, layer in product(LOSSES, LAYERS)]


@pytest.mark.parametrize(("loss", "layer"), PAIRS)
def test_every_loss_runs_with_every_layer_as_in_the_plain_loop(loss, layer):
    assert_same(problem_of(loss, layer), 2, 2, rounds=2, batch_size=5)


@pytest.mark.parametrize(("methods", "seeds"), [(1, 1), (1, 2), (2, 1), (2, 3)])
@pytest.mark.parametrize(
    ("loss", "layer", "batch_size"),
    [("bce with logits", "linear", None), ("mse", "ReLU", 5)],
)
def test_every_number_of_methods_and_seeds_runs(loss, layer, batch_size, methods, seeds):
    assert_same(problem_of(loss, layer), methods, seeds, batch_size=batch_size)


def test_captured_rounds_are_those_of_the_plain_loop(monkeypatch):
    captured = []
    capture = batch.capture

    def noted(function, *example):
        captured.append(function)
        return capture(function, *example)

    monkeypatch.setattr(batch, "capture", noted)
    monkeypatch.setattr(batch, "CAPTURE", 20)
    assert_same(problem_of("bce with logits", "linear"), 2, 1, rounds=20, batch_size=5)
    assert len(captured) == 2  # the round and the metrics
