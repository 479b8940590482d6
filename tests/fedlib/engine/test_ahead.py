"""Draws of many rounds at once: the numbers, and the generators afterwards, of the plain draws."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from problems import np_problem

import fedlib as fl
from fedlib.compress import Identity, RandK, TopK
from fedlib.core import sampling
from fedlib.core.sampling import draw_round, seeded
from fedlib.engine import ahead
from fedlib.engine.batch import BatchedRuns
from fedlib.testing.examples import examples

METHOD = fl.FedAvg(lr=0.2, local_steps=2, participants=5)
EVERY = {f"{k}-{i}": e for k, those in examples().items() for i, e in enumerate(those)}


@dataclass(frozen=True)
class Own:
    """What a method of one's own may do with `draw_round`."""

    work: Any
    more: str = ""

    def draw(self, problem, rng):
        if self.more == "before":
            torch.rand(1, generator=rng)
        if self.more == "other problem":
            return draw_round(replace(problem, name="other"), rng, **self.work)
        if self.more == "other generator":
            return draw_round(problem, torch.Generator(), **self.work)
        found = draw_round(problem, rng, **self.work)
        if self.more == "twice":
            found = draw_round(problem, rng, **self.work)
        return found._replace(chance=found.participants) if self.more == "after" else found


def both(algorithm, problem, seeds=(0, 3), rounds=50):
    """The draws of some rounds as a run makes them and one by one, and the generators after."""
    loop = BatchedRuns([algorithm], problem, seeds, torch.device("cpu"), None)
    found = []
    for known in (loop.samples, None):
        loop.samples, rngs = known, [seeded(s, "rounds") for s in seeds]
        found.append((loop.draws(rngs, rounds), [rng.get_state() for rng in rngs]))
    return found


def same(one, other):
    torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize("name", EVERY)
def test_what_a_run_draws_is_what_its_method_draws(name):
    same(*both(EVERY[name].algorithm, EVERY[name].problem))


def test_methods_of_full_batches_are_drawn_ahead_and_others_are_not():
    known = {k: ahead.samples(e.algorithm, e.problem) for k, e in EVERY.items()}
    assert known["FedAvg-0"] == known["FedSGM-0"] == (20, 10, 1)
    assert known["MGDA-0"] == (8, 8, 1)
    assert known["FedAvg-1"] is None  # minibatches
    assert known["FedFW-0"] is known["SGM-0"] is None


@pytest.mark.parametrize("resample", [False, True])
def test_samples_and_second_samples_are_those_of_the_plain_draw(resample):
    work = {"participants": 4, "resample": resample, "uplink": TopK(0.5), "downlink": Identity()}
    problem = np_problem(0)
    found = ahead.samples(Own(work), problem)
    assert found == (problem.num_clients, 4, 1 + resample)
    rng, plain = seeded(5, "rounds"), seeded(5, "rounds")
    each = [draw_round(problem, plain, **work) for _ in range(40)]
    draws = found.draws([rng], 40)
    same(draws.participants[:, 0], torch.stack([d.participants for d in each]))
    if resample:
        same(draws.value_clients[:, 0], torch.stack([d.value_clients for d in each]))
    assert draws._replace(participants=(), value_clients=()) == each[0]._replace(
        participants=(), value_clients=()
    )
    same(rng.get_state(), plain.get_state())


@pytest.mark.parametrize("more", ["before", "after", "twice", "other problem", "other generator"])
def test_a_draw_that_does_more_is_drawn_one_by_one(more):
    assert ahead.samples(Own({"participants": 4}), np_problem(0)) is not None
    assert ahead.samples(Own({"participants": 4}, more), np_problem(0)) is None


@pytest.mark.parametrize("name", ["batch_size", "value_batch_size", "uplink", "downlink"])
def test_draws_that_are_more_than_samples_are_drawn_one_by_one(name):
    work = {"participants": 4, name: RandK(0.5) if "link" in name else 2}
    assert ahead.samples(Own(work), np_problem(0)) is None


def test_samples_of_many_clients_are_those_of_one_call_each():
    rngs, plain = ([seeded(s, "rounds") for s in (1, 2)] for _ in range(2))
    found = ahead.permuted(sampling.MANY + 1, 2, rngs, 20)
    each = [sampling.sample(sampling.MANY + 1, 2, rng) for rng in plain for _ in range(20)]
    same(found, torch.stack(each).view(2, 20, 2))
