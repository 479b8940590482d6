"""A federation in one process: all methods, and whatever may go wrong on the way."""

from dataclasses import replace

import numpy as np
import pytest
from expect import refuses
from wires import Killed, Wires, apart, job_of, memories, simulated

from fedlib import SSCA, FedAvg, FedCMOO, FedFW, FedSGM, L1Ball, NaiveFW, PowerLaw, TopK, run
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
HARMLESS = ("dies before", "dies after", "twice", "stale", "no memory", "not delivered",
            "garbled request", "server killed", "server killed after")  # fmt: skip
COSTLY = ("late", "truncated", "foreign", "empty", "fails", "gone")


def ran(name, folder, faults=(), **options):
    """A server that has run to its end, however often it was killed on the way; its link."""
    algorithm, problem = METHODS[name]
    job = job_of(algorithm, problem, ROUNDS)
    wires = Wires(job, folder, problem.num_clients, faults)
    while True:
        server = Server(job, wires, folder, **options)
        try:
            server.run()
        except Killed:
            wires.queue.clear()
            continue
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
def test_without_faults_it_is_the_simulation_and_bytes_are_the_counted_bits(name, tmp_path):
    server, wires = ran(name, tmp_path)
    check(name, server, wires)
    assert not any(server.lost)
    messages = sum(len(e.clients) for e in server.log if e.kind == "message")
    for way in ("up", "down"):  # every message is filled up to a whole byte
        assert 0 <= 8 * server.sent[way] - server.counted[way] <= 7 * messages


def first_message(server, t):
    """The first message of a round, of a run in which nobody was lost."""
    begins = [i for i, event in enumerate(server.log) if event.kind == "begin"]
    return server.log[begins[t] + 1]


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_a_report_comes_beside_the_answer_of_who_takes_part(share, tmp_path):
    algorithm, problem = FedFW(0.1, share), METHODS["FedFW"][1]
    job = job_of(algorithm, problem, ROUNDS)
    server, gaps = Server(job, Wires(job, tmp_path, 8), tmp_path), []
    server.run(lambda *_: gaps.append(float(server.info["gap"])))
    everybody = [len(first_message(server, t).clients) == 8 for t in range(ROUNDS)]
    assert all(everybody) == (share == 1)
    found = run(algorithm, problem, rounds=ROUNDS, progress=False).info["gap"][0]
    assert gaps == pytest.approx(np.where(everybody, found, np.nan), nan_ok=True)


@pytest.mark.parametrize("fault", HARMLESS)
@pytest.mark.parametrize("name", ["FedSGM", "FedSGM, minibatches"])
def test_what_can_be_repeated_changes_nothing(name, fault, tmp_path):
    server, wires = ran(name, tmp_path, {(0, 2): fault, (1, 3): fault, (3, 4): fault})
    assert wires.happened == [fault] * 3
    check(name, server, wires)
    assert not any(server.lost)


@pytest.mark.parametrize("fault", COSTLY)
@pytest.mark.parametrize("name", ["FedSGM", "SSCA", "FedFW"])
def test_an_answer_that_does_not_come_costs_the_answer_and_not_the_run(name, fault, tmp_path):
    server, wires = ran(name, tmp_path, {(1, 2): fault, (2, 3): "dies after"})
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


def test_everything_at_once(tmp_path):
    faults = {
        (j, k): (HARMLESS + COSTLY)[(5 * j + 3 * k) % 15] for j in range(3) for k in range(2, 9, 2)
    }
    faults = {place: fault for place, fault in faults.items() if fault != "gone"}
    server, wires = ran("FedSGM", tmp_path, faults)
    assert len(wires.happened) > 6
    check("FedSGM", server, wires)


def test_too_few_clients_stop_the_run_in_one_sentence_and_it_goes_on_later(tmp_path):
    algorithm, problem = METHODS["FedSGM"]
    job = job_of(algorithm, problem, ROUNDS)
    wires = Wires(job, tmp_path, 4, {(1, 3): "gone"})
    with pytest.raises(
        RuntimeError, match=r"a round must have 3 clients .* has 2 \(1: no answer\)"
    ):
        Server(job, wires, tmp_path, quorum=3).run()
    wires.restart(1)
    server = Server(job, wires, tmp_path, quorum=3)
    server.run()
    check("FedSGM", server, wires)
    assert not any(server.lost)


def test_a_job_and_a_folder_that_do_not_fit_are_refused_in_one_sentence(tmp_path):
    algorithm, problem = METHODS["FedSGM"]
    refuses("Job: rounds must be", job_of, algorithm, problem, 0)
    job = job_of(algorithm, problem, 1)
    Server(job, Wires(job, tmp_path, 4), tmp_path).run()
    other = job_of(replace(algorithm, lr=0.2), problem, 1)
    with pytest.raises(ValueError, match="folder must hold the files of run"):
        Server(other, Wires(job, tmp_path, 4), tmp_path)


def test_a_method_that_needs_everybody_stops_without_one(tmp_path):
    job = job_of(NaiveFW(), METHODS["FedFW"][1], ROUNDS)
    wires = Wires(job, tmp_path, 8, {(1, 2): "gone"})
    with pytest.raises(RuntimeError, match="a round must have all clients"):
        Server(job, wires, tmp_path).run()


def test_what_a_client_cannot_do_stands_in_the_sentence_of_the_round_that_is_not_done(tmp_path):
    job = job_of(NaiveFW(), METHODS["FedFW"][1], ROUNDS)
    wires = Wires(job, tmp_path, 8, {(1, 2): "fails"})
    with pytest.raises(RuntimeError, match=r"round 1 has 7 \(1: no space left\)"):
        Server(job, wires, tmp_path).run()
