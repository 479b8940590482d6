"""What is sent in a round, message by message, against tables by hand and the counted bits."""

from dataclasses import replace
from functools import partial

import pytest
import torch

import fedlib as fl
from fedlib.compress import TopK
from fedlib.core import Loop, Sequential, Vectorized
from fedlib.core.federation import Sent
from fedlib.core.sampling import seeded
from fedlib.flower.job import Job, client_problem
from fedlib.flower.server import ServerEnd
from fedlib.problems import quadratics
from fedlib.testing.contract import messages, two_ends
from fedlib.testing.examples import examples

PROBLEM = quadratics(torch.ones(5, 8), torch.zeros(5, 8), level=0.5)
EXAMPLES = [(name, k) for name, listed in examples().items() for k in range(len(listed))]


@pytest.mark.parametrize("engine", [Vectorized, Sequential, Loop])
def test_the_messages_of_a_round_by_hand(engine):
    wire = TopK(0.25)  # two of eight numbers, and which
    method = fl.FedSGM(
        0.1,
        1,
        3,
        tolerance=0.1,
        uplink=wire,
        downlink=wire,
    )
    small = wire.bits(8)
    assert messages(method, engine(PROBLEM), seeded(0, "rounds")) == [
        Sent(
            "participant",
            "server",
            "constraint_value",
            1,
            0,
            32,
            3,
        ),
        Sent(
            "server",
            "participant",
            "sigma",
            1,
            0,
            32,
            3,
        ),
        Sent(
            "participant",
            "server",
            "local_update",
            8,
            0,
            small,
            3,
        ),
        Sent(
            "server",
            "every client",
            "broadcast",
            8,
            0,
            small,
            5,
        ),
    ]


@pytest.mark.parametrize(("name", "k"), EXAMPLES)
def test_the_messages_of_every_example_add_up_to_the_bits_it_reports(name, k):
    algorithm, problem = examples()[name][k]
    log = messages(algorithm, Vectorized(problem), seeded(0, "rounds"))
    fed = Vectorized(problem)
    draw = algorithm.draw(problem, seeded(0, "rounds"))
    _, info = algorithm.round(fed, algorithm.init(problem), draw)
    up = sum(m.bits * m.copies for m in log if m.receiver == "server")
    down = sum(m.bits * m.copies for m in log if m.sender == "server")
    between = sum(m.bits * m.copies for m in log if "server" not in (m.sender, m.receiver))
    assert [up, down] == [int(info["bits_up"]), int(info["bits_down"])]
    assert between == int(info.get("bits_between", 0))
    assert fed.log is None  # nobody asked for one


def test_only_messages_of_the_active_are_in_the_log():
    method, problem = examples()["FedFW"][1]
    method = replace(method, participation=0.4)
    draw = method.draw(problem, seeded(0, "rounds"))
    count = int((draw.chance < method.participation).sum())
    assert 0 < count < problem.num_clients
    log = messages(method, Vectorized(problem), seeded(0, "rounds"))
    assert {m.copies for m in log if m.sender == "participant"} == {count}


@pytest.mark.parametrize("name", ["FedSGM", "FedCMOO", "FedFW"])
def test_the_ends_of_a_federation_log_what_the_simulation_does(name, monkeypatch):
    algorithm, problem = examples()[name][0]
    monkeypatch.setattr(ServerEnd, "log", [])
    two_ends(Job(algorithm, partial(client_problem, problem), 1)).run()
    assert ServerEnd.log == messages(algorithm, Vectorized(problem), seeded(0, "rounds"))
