"""A federation in one process: all methods, and whatever may go wrong on the way."""

from dataclasses import replace

import pytest

from fedlib import SSCA, FedCMOO, FedFW, FedSGM, L1Ball, PowerLaw, TopK
from fedlib.flower.server import Server
from fedlib.testing.examples import classification, several
from tests.helpers.expect import refuses
from tests.helpers.weekly import further_weekly
from tests.helpers.wires import Wires, apart, job_of, memories, simulated

ROUNDS = 5
CLOSE = 1e-6


PLANE = classification(4)
LAW = PowerLaw(0.6, 0.3)
SGM = FedSGM(
    0.1,
    2,
    3,
    0.05,
    uplink=TopK(0.2),
    downlink=TopK(0.2),
)
METHODS = {
    "FedSGM": (SGM, PLANE),
    "FedSGM, minibatches": (replace(SGM, batch_size=5, resample_for_update=True), PLANE),
    "SSCA": (SSCA(1.0, LAW, LAW, batch_size=10), PLANE),
    "FedCMOO": (FedCMOO(0.1, 2, 7), several(3, 20)),
    "FedFW": (FedFW(0.1, 0.9), several(1, 16, L1Ball(4.0))),
}
HARMLESS = ("dies before", "dies after", "twice", "stale", "not delivered", "garbled request")
#: what is planted -> what the sentence then says
FATAL = {
    "truncated": "damaged",
    "foreign": "damaged",
    "empty": "damaged",
    "fails": "no space left",
    "gone": "no answer within 600 s",
}


def ran(name, faults=()):
    """A server that has run to its end; its link."""
    algorithm, problem = METHODS[name]
    job = job_of(algorithm, problem, ROUNDS)
    wires = Wires(job, problem.num_clients, faults)
    server = Server(job, wires)
    server.run()
    return server, wires


def check(name, server, wires):
    """The model of every end, and every memory, are those of a simulation."""
    algorithm, problem = METHODS[name]
    end = simulated(algorithm, problem, ROUNDS)
    assert apart(server.place.state.w, end.w) < CLOSE
    for j, client in wires.clients.items():
        assert client.place.round == ROUNDS
        tables = client.place.tables
        assert apart(*(memories(x, j, tables) for x in (client.place.state, end))) < CLOSE


@pytest.mark.parametrize("name", METHODS)
def test_without_faults_it_is_the_simulation_and_bytes_are_the_counted_bits(name):
    server, wires = ran(name)
    check(name, server, wires)
    messages = sum(len(e.clients) for e in server.log if e.kind == "message")
    for direction in ("up", "down"):  # every message is filled up to a whole byte
        assert 0 <= 8 * server.sent[direction] - server.counted[direction] <= 7 * messages


@pytest.mark.parametrize("fault", HARMLESS)
@pytest.mark.parametrize("name", further_weekly(["FedSGM", "FedSGM, minibatches"], ["FedSGM"]))
def test_what_can_be_repeated_changes_nothing(name, fault):
    server, wires = ran(name, {(0, 2): fault, (1, 3): fault, (3, 4): fault})
    assert wires.happened == [fault] * 3
    check(name, server, wires)


@pytest.mark.parametrize("fault", FATAL)
def test_an_answer_that_does_not_come_stops_the_run_in_one_sentence(fault):
    words = f"federation: client 1 must answer, got: .*{FATAL[fault]}.*; start again"
    with pytest.raises(RuntimeError, match=words):
        ran("SSCA", {(1, 2): fault, (2, 3): "dies after"})


def test_a_job_that_does_not_fit_is_refused_in_one_sentence():
    algorithm, problem = METHODS["FedSGM"]
    refuses("Job: rounds must be", job_of, algorithm, problem, 0)
