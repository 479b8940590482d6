"""What people bring first, torch's own losses and layers, against the plain loop."""

from itertools import product

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import fedlib as fl
from fedlib.engine import batch
from fedlib.problems import from_clients
from tests.helpers.randoms import generator, numbers
from tests.helpers.weekly import further_weekly

SIZES = (20, 21, 22, 23)


def bits(n):
    return torch.randint(0, 2, (n,), generator=generator()).float()


def classes(n):
    return torch.randint(0, 3, (n,), generator=generator())


#: The module's outputs, the targets, and the loss of every row.
LOSSES = {
    "bce with logits": (1, bits, F.binary_cross_entropy_with_logits),
    "bce": (1, bits, lambda o, y, **options: F.binary_cross_entropy(o.sigmoid(), y, **options)),
    "cross entropy": (3, classes, F.cross_entropy),
    "nll": (3, classes, lambda o, y, **options: F.nll_loss(o.log_softmax(-1), y, **options)),
    "mse": (1, numbers, F.mse_loss),
    "l1": (1, numbers, F.l1_loss),
    "huber": (1, numbers, F.huber_loss),
    "smooth l1": (1, numbers, F.smooth_l1_loss),
    "soft margin": (1, bits, lambda o, y, **_: F.softplus(-(2 * y - 1) * o)),
    "hinge": (1, bits, lambda o, y, **_: F.relu(1 - (2 * y - 1) * o)),
}


def between(*layers):
    """A network of two linear layers with something between them."""
    return lambda outputs: nn.Sequential(nn.Linear(8, 6), *layers, nn.Linear(6, outputs))


def convolution(outputs):
    return nn.Sequential(
        nn.Unflatten(-1, (1, 8)),
        nn.Conv1d(1, 2, 3),
        nn.ReLU(),
        nn.Flatten(-2),
        nn.Linear(12, outputs),
    )


LAYERS = {
    "linear": lambda outputs: nn.Linear(8, outputs),
    "ReLU": between(nn.ReLU()),
    "in-place ReLU": between(nn.ReLU(inplace=True)),
    "LeakyReLU": between(nn.LeakyReLU()),
    "Tanh": between(nn.Tanh()),
    "GELU": between(nn.GELU()),
    "LayerNorm": between(nn.LayerNorm(6)),
    "convolution": convolution,
}


def problem_of(loss, layer):
    outputs, target, function = LOSSES[loss]

    def objective(rows):
        output = rows.output.squeeze(-1) if outputs == 1 else rows.output
        losses = function(output, rows.target, reduction="none")
        return rows.mean(losses)

    torch.random.manual_seed(0)
    clients = [(numbers(n, 8, seed=n), target(n)) for n in SIZES]
    return from_clients(clients, module=LAYERS[layer](outputs), objective=objective)


def assert_same(problem, methods=2, seeds=2, rounds=3, batch_size=5):
    """A grid of methods with some seeds ends as it does in the plain loop."""
    grid = [fl.FedAvg(0.1 / k, 2, 3, batch_size=batch_size) for k in range(1, methods + 1)]
    options = {"rounds": rounds, "seeds": range(seeds), "evaluate_every": rounds}
    fast = fl.run(grid, problem, **options)
    slow = fl.run(grid, problem, engine=fl.Loop, **options)
    for trace, expected in zip(fast, slow, strict=True):
        torch.testing.assert_close(
            trace.state.w,
            expected.state.w,
            rtol=1e-4,
            atol=1e-5,
        )


ALONE = [
    *((loss, "linear") for loss in LOSSES),
    *(("mse", layer) for layer in LAYERS),
    ("cross entropy", "convolution"),
]


@pytest.mark.parametrize(("loss", "layer"), further_weekly(product(LOSSES, LAYERS), ALONE))
def test_every_loss_runs_with_every_layer_as_in_the_plain_loop(loss, layer):
    assert_same(problem_of(loss, layer), rounds=2)


@pytest.mark.parametrize(("methods", "seeds"), [(1, 1), (1, 2), (2, 1), (2, 3)])
@pytest.mark.parametrize("batch_size", [None, 5])
def test_every_number_of_methods_and_seeds_runs(batch_size, methods, seeds):
    assert_same(problem_of("mse", "ReLU"), methods, seeds, batch_size=batch_size)


def test_captured_rounds_are_those_of_the_plain_loop(monkeypatch):
    captured = []
    capture = batch.capture

    def noted(function, *example):
        captured.append(function)
        return capture(function, *example)

    monkeypatch.setattr(batch, "capture", noted)
    monkeypatch.setattr(batch, "CAPTURE", 20)
    assert_same(problem_of("bce with logits", "linear"), seeds=1, rounds=20)
    assert len(captured) == 2  # the round and the metrics
