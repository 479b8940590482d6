"""A federation in one process: all methods, and whatever may go wrong on the way."""

from dataclasses import replace

import pytest
from expect import refuses
from wires import Wires, apart, job_of, memories, simulated

from fedlib import SSCA, FedAvg, FedCMOO, FedFW, FedSGM, L1Ball, NaiveFW, PowerLaw, TopK
from fedlib.flower.server import Server
from fedlib.testing.examples import classification, several

ROUNDS = 5
CLOSE = 1e-6


def methods():
    top = TopK(0.2)
    plane, few, ball = classification(4), several(3, 20), several(1, 16, L1Ball(4.0))
    sgm = FedSGM(0.1, 2, 3, 0.05, uplink=top, downlink=top)
    law = PowerLaw(0.6, 0.3)
    return {
        "FedSGM": (sgm, plane),
        "FedSGM, minibatches": (replace(sgm, batch_size=5, resample_for_update=True), plane),
        "FedAvg": (FedAvg(0.1, 2, 4), plane),
        "SSCA": (SSCA(1.0, law, law, batch_size=10), plane),
        "FedCMOO": (FedCMOO(0.1, 2, 7), few),
        "FedFW": (FedFW(0.1, 0.9), ball),
    }


METHODS = methods()
#: what is planted -> the clients that are then left out of some round
HARMLESS = ("dies before", "dies after", "twice", "stale", "not delivered",
            "garbled request")  # fmt: skip
COSTLY = ("late", "truncated", "foreign", "empty", "fails", "gone")


def ran(name, faults=()):
    """A server that has run to its end; its link."""
    algorithm, problem = METHODS[name]
    job = job_of(algorithm, problem, ROUNDS)
    wires = Wires(job, problem.num_clients, faults)
    server = Server(job, wires)
    server.run()
    return server, wires


def check(name, server, wires):
    """The model of every end, and every memory, are those of a simulation with the same clients."""
    algorithm, problem = METHODS[name]
    assert len(server.lost) == ROUNDS
    end = simulated(algorithm, problem, server.lost)
    assert apart(server.place.state.w, end.w) < CLOSE
    for j, client in wires.clients.items():
        if j not in server.absent:
            assert client.place.round == ROUNDS
            tables = client.place.tables
            assert apart(*(memories(x, j, tables) for x in (client.place.state, end))) < CLOSE


@pytest.mark.parametrize("name", METHODS)
def test_without_faults_it_is_the_simulation_and_bytes_are_the_counted_bits(name):
    server, wires = ran(name)
    check(name, server, wires)
    assert not any(server.lost)
    messages = sum(len(e.clients) for e in server.log if e.kind == "message")
    for way in ("up", "down"):  # every message is filled up to a whole byte
        assert 0 <= 8 * server.sent[way] - server.counted[way] <= 7 * messages


@pytest.mark.parametrize("fault", HARMLESS)
@pytest.mark.parametrize("name", ["FedSGM", "FedSGM, minibatches"])
def test_what_can_be_repeated_changes_nothing(name, fault):
    server, wires = ran(name, {(0, 2): fault, (1, 3): fault, (3, 4): fault})
    assert wires.happened == [fault] * 3
    check(name, server, wires)
    assert not any(server.lost)


@pytest.mark.parametrize("fault", COSTLY)
@pytest.mark.parametrize("name", ["FedSGM", "SSCA", "FedFW"])
def test_an_answer_that_does_not_come_costs_the_answer_and_not_the_run(name, fault):
    server, wires = ran(name, {(1, 2): fault, (2, 3): "dies after"})
    assert fault in wires.happened
    check(name, server, wires)
    lost = server.lost
    assert [1] in lost
    assert all(gone in ([], [1]) for gone in lost)
    if fault == "gone":
        assert lost[-1] == [1]  # it is waited for once
    elif fault == "late":
        assert lost.count([1]) < ROUNDS - 1  # and takes part again
    else:
        assert lost.count([1]) == 1  # who says something is asked again in the next round


def test_everything_at_once():
    faults = {
        (j, k): (HARMLESS + COSTLY)[(5 * j + 3 * k) % 12] for j in range(3) for k in range(2, 9, 2)
    }
    faults = {place: fault for place, fault in faults.items() if fault != "gone"}
    server, wires = ran("FedSGM", faults)
    assert len(wires.happened) > 6
    check("FedSGM", server, wires)


def test_too_few_clients_stop_the_run_in_one_sentence():
    algorithm, problem = METHODS["FedSGM"]
    job = job_of(algorithm, problem, ROUNDS)
    wires = Wires(job, 4, {(1, 3): "gone"})
    with pytest.raises(
        RuntimeError, match=r"a round must have 3 clients .* has 2 \(1: no answer\)"
    ):
        Server(job, wires, quorum=3).run()


def test_a_job_that_does_not_fit_is_refused_in_one_sentence():
    algorithm, problem = METHODS["FedSGM"]
    refuses("Job: rounds must be", job_of, algorithm, problem, 0)


def test_a_method_that_needs_everybody_stops_without_one():
    job = job_of(NaiveFW(), METHODS["FedFW"][1], ROUNDS)
    wires = Wires(job, 8, {(1, 2): "gone"})
    with pytest.raises(RuntimeError, match="a round must have all clients"):
        Server(job, wires).run()


def test_what_a_client_cannot_do_stands_in_the_sentence_of_the_round_that_is_not_done():
    job = job_of(NaiveFW(), METHODS["FedFW"][1], ROUNDS)
    wires = Wires(job, 8, {(1, 2): "fails"})
    with pytest.raises(RuntimeError, match=r"round 1 has 7 \(1: no space left\)"):
        Server(job, wires).run()
