"""What is set around a run changes none of its numbers."""

from contextlib import contextmanager
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

import fedlib as fl
from fedlib import models
from fedlib.problems import from_clients
from fedlib.testing.examples import examples
from tests.helpers.randoms import numbers


def loss(rows):
    return rows.mean((rows.output.squeeze(-1) - rows.target) ** 2)


def host_loss(rows):
    return float(loss(rows))


def network():
    clients = [(numbers(12, 4, seed=j), numbers(12, seed=j + 9)) for j in range(3)]
    module = nn.Sequential(*models.mlp((4, 8)), nn.Tanh(), *models.mlp((8, 1)))
    return from_clients(
        clients,
        module=module,
        objective=loss,
        measures={"loss": host_loss},
    )


@contextmanager
def setting(change, inside, usual):
    """One of torch's settings, while the block runs."""
    change(inside)
    try:
        yield
    finally:
        change(usual)


AROUND = {
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "no grad": torch.no_grad,
    "inference mode": torch.inference_mode,
    "float64 by default": lambda: setting(torch.set_default_dtype, torch.float64, torch.float32),
    "deterministic": lambda: setting(torch.use_deterministic_algorithms, True, False),
    "another device by default": lambda: torch.device("meta"),
}
RUNS = {
    "a network": (fl.FedAvg(0.3, 3, 2, batch_size=8), network()),
    "a sketch": examples()["FedCMOO"][0],
    "noise": examples()["FedSGM"][3],
    "random positions": examples()["FedSGM"][2],
    "coins": examples()["FedFW"][1],
    "batches": examples()["SSCA"][0],
}


def end(method, problem, **options):
    """The numbers with which a run ends."""
    trace = fl.run(method, problem, rounds=4, **options)
    curves = [trace.metrics[name] for name in sorted(trace.metrics)]
    return np.concatenate([*curves, trace.state.w.numpy()], axis=None)


@pytest.fixture(scope="module")
def plain():
    """A function that gives the end of a run with nothing around it, which is computed once."""
    return cache(lambda name: end(*RUNS[name]))


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
@pytest.mark.parametrize("name", RUNS)
def test_the_numbers_are_those_without(name, around, plain):
    with around():
        inside = end(*RUNS[name])
    np.testing.assert_array_equal(inside, plain(name))


@pytest.mark.parametrize("engine", [fl.Vectorized, fl.Sequential])
@pytest.mark.parametrize("around", [torch.no_grad, torch.inference_mode])
def test_a_problem_that_was_built_inside_runs_inside_and_outside(around, engine):
    method = fl.FedAvg(0.3, 3, 2)
    expected = end(method, network(), engine=engine)
    with around():
        problem = network()
        np.testing.assert_array_equal(end(method, problem, engine=engine), expected)
    np.testing.assert_array_equal(end(method, problem, engine=engine), expected)
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()
