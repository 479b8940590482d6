"""Runs in threads and processes end digit for digit as the same runs one after another."""

import threading
from functools import cache

import numpy as np
import pytest
import torch
from joblib import Parallel, delayed
from torch import nn

import fedlib as fl
from fedlib import models
from fedlib.engine import batch
from fedlib.problems import from_clients, quadratics
from fedlib.testing.examples import examples
from tests.helpers.randoms import normal, numbers

CAPTURED = 40  # rounds of a run that is captured here


def loss(rows):
    return rows.mean((rows.output.squeeze(-1) - rows.target) ** 2)


def network(layer):
    """A problem of three clients; its module is the same object in every thread."""
    clients = [(numbers(12, 4, seed=j), numbers(12, seed=9 + j)) for j in range(3)]
    module = nn.Sequential(*models.mlp((4, 5)), layer, *models.mlp((5, 1)))
    return from_clients(clients, module=module, objective=loss)


def end(method, problem, options):
    """The numbers with which a run ends."""
    trace = fl.run(method, problem, **options)
    curves = [trace.metrics[name] for name in sorted(trace.metrics)]
    return np.concatenate([*curves, trace.state.w.numpy()], axis=None)


AVG = fl.FedAvg(0.05, 2, 3)
SGM = fl.FedSGM(0.1, 2, 3, 0.05)
TANH = network(nn.Tanh())
CONSTRAINED = quadratics(normal(6, 4), normal(6, 4), level=0.5)
SHORT = {"rounds": 6}
ALONE = {"rounds": 6, "engine": fl.Sequential}
LONG = {"rounds": CAPTURED, "evaluate_every": CAPTURED // 2}
#: name -> (method, problem, options)
RUNS = {
    "a network": (AVG, TANH, SHORT),
    "a captured network": (AVG, TANH, LONG),
    "a network, clients one by one": (AVG, TANH, ALONE),
    "a frozen norm": (AVG, network(nn.BatchNorm1d(5).eval()), ALONE),
    "switching": (SGM, CONSTRAINED, SHORT | {"seeds": (0, 1)}),
    "captured switching": (SGM, CONSTRAINED, LONG),
    "several objectives": (*examples()["FedCMOO"][0], SHORT),
    "a captured oracle": (*examples()["FedFW"][0], LONG),
    "a schedule": (AVG, TANH, LONG | {"schedules": {"lr": fl.PowerLaw(1.0, 0.5)}}),
}
#: Runs that differ in how their rounds are computed; the others are their kin.
APART = [
    "a network",
    "a captured network",
    "a network, clients one by one",
    "switching",
    "captured switching",
    "several objectives",
    "a captured oracle",
]
#: What worker processes run too: they are sent all of a run.
SENT = ["a network", "switching", "several objectives"]


@pytest.fixture(scope="module", autouse=True)
def captured_early():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "CAPTURE", CAPTURED)
        yield


@pytest.fixture(scope="module")
def alone():
    """A function that gives the end of a run by itself, which is computed once."""
    return cache(lambda name: end(*RUNS[name]))


@pytest.mark.parametrize(
    ("backend", "workers", "names"),
    [
        ("threading", 4, APART),
        pytest.param("threading", 4, RUNS, marks=pytest.mark.weekly),
        pytest.param("loky", 2, SENT, marks=pytest.mark.weekly),
    ],
    ids=["threads", "threads, all runs", "processes"],
)
def test_different_runs_in_joblibs_workers_end_as_one_after_another(backend, workers, names, alone):
    twice = [name for name in names for _ in range(2)]
    jobs = [delayed(end)(*RUNS[name]) for name in twice]
    results = Parallel(workers, backend=backend)(jobs)
    for name, result in zip(twice, results, strict=True):
        np.testing.assert_array_equal(result, alone(name), err_msg=name)


def half(rows):
    return rows.mean((rows.output.squeeze(-1) - 1) ** 2, where=rows.target > 0)


def built(seed):
    """A run on a problem that is built, and so tested, in this thread."""
    clients = [(numbers(8, 4, seed=seed), torch.ones(8))] * 2
    problem = from_clients(clients, module=models.linear(4, 1), objective=half)
    return end(fl.FedAvg(0.1, 2, 2), problem, SHORT)


def test_problems_can_be_built_while_others_run():
    jobs = [delayed(built)(seed) for seed in range(6)]
    for seed, result in enumerate(Parallel(4, backend="threading")(jobs)):
        np.testing.assert_array_equal(result, built(seed))


class Rolling(fl.FedAvg):
    def local_update(self, client, w):
        return super().local_update(client, w) + torch.randn_like(w)


@pytest.fixture
def drawing_thread():
    """Another thread draws random numbers all the time."""
    stop = threading.Event()

    def draw():
        while not stop.is_set():
            torch.rand(4)

    thread = threading.Thread(target=draw)
    thread.start()
    yield
    stop.set()
    thread.join()


def test_a_draw_of_another_thread_is_not_taken_for_one_of_the_round(drawing_thread):
    fl.run(AVG, quadratics(), rounds=40)
    with pytest.raises(ValueError, match="a round must not draw random numbers"):
        fl.run(Rolling(0.1, 1, 3), quadratics(), rounds=2)


@pytest.mark.parametrize(
    "backend",
    ["threading", pytest.param("loky", marks=pytest.mark.weekly)],
)
def test_a_divergence_reaches_the_caller_of_a_pool(backend):
    wild = delayed(end)(fl.FedAvg(1e9, 2, 4), quadratics(), SHORT)
    with pytest.raises(fl.Diverged, match="not finite after round 2") as caught:
        Parallel(2, backend=backend)([wild] * 2)
    assert caught.value.round == 2
    assert torch.isfinite(caught.value.state.w).all()
