"""The loop: seeds and grids together and alone, stopping, bad input."""

import copy
import math
import pickle
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib import checks
from fedlib.core.floats import floats
from fedlib.core.sampling import draw_round
from fedlib.data.split import padded
from fedlib.engine import batch
from fedlib.problems import quadratics
from tests.helpers.expect import refuses
from tests.helpers.problems import np_problem
from tests.helpers.randoms import normal

SGM = fl.FedSGM(
    lr=0.3,
    local_steps=3,
    participants=10,
    tolerance=0.05,
    switch=fl.Soft(40.0),
    uplink=fl.TopK(0.1),
    downlink=fl.TopK(0.1),
)
FEDAVG = fl.FedAvg(lr=0.1, local_steps=1, participants=2)


def quiet(algorithm, problem=np_problem, rounds=30, **options):
    return fl.run(algorithm, problem, rounds=rounds, progress=False, **options)


def test_metrics_stand_at_the_start_of_their_rounds():
    trace = quiet(SGM, rounds=7, evaluate_every=3)
    assert trace.rounds.tolist() == [0, 3, 6, 7]
    assert trace.metrics["f"][0, 0] == pytest.approx(math.log(2))
    all_rounds = quiet(SGM, rounds=7)
    curve = all_rounds.metrics["f"][:, [0, 3, 6, 7]]
    np.testing.assert_allclose(trace.metrics["f"], curve, atol=1e-13)
    assert all_rounds.to_frame()["round"].tolist() == list(range(8))


def diverged(algorithms, problem, **options):
    """The error of runs that diverge."""
    with pytest.raises(fl.Diverged) as caught:
        quiet(algorithms, problem, **options)
    return caught.value


def test_divergence_stops_and_says_where():
    ones = torch.ones(2, 1, dtype=torch.float64)
    grid = [FEDAVG, replace(FEDAVG, lr=1e100)]
    error = diverged(grid, quadratics(ones, ones, level=1.0), seeds=[5, 6])
    assert "not finite after round 3 (seed 5" in str(error)
    assert "lr=1e+100" in str(error)
    assert error.round == 3
    assert error.seed == 5
    w = error.state.w
    assert torch.isfinite(w).all()
    assert not torch.isfinite(w - 1e100 * (w - 1)).all()


def test_the_last_finite_state_has_the_memories_of_its_round():
    tame = replace(SGM, uplink=fl.TopK(0.5), downlink=fl.Identity())
    wild = replace(tame, lr=1e20)
    a = torch.tensor([1.0, -0.7]).double().expand(20, 2)
    problem = quadratics(a.abs(), a, level=1.0)
    error = diverged([wild, tame], problem)
    assert error.round > 0
    trace = quiet(wild, problem, rounds=error.round)
    for tensor, seeds in zip(error.state, trace.state, strict=True):
        assert torch.equal(tensor, seeds[0])


def test_a_divergence_can_be_copied_and_pickled():
    error = diverged(fl.FedAvg(1e9, 2, 4), quadratics())
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(again) is fl.Diverged
        assert str(again) == str(error)
        assert again.round == error.round
        assert again.seed == error.seed
        assert torch.equal(again.state.w, error.state.w)


def smaller(seed):
    return np_problem(clients=20 - seed)


class Start(NamedTuple):
    w: torch.Tensor
    y: torch.Tensor


class Widening(fl.FedAvg):
    def init(self, problem):
        return Start(problem.w0, problem.w0.new_zeros(int(10 * self.lr)))


WIDENING = [Widening(0.1, 1, 2), Widening(0.3, 1, 2)]
REFUSED = [
    ("run: rounds must", SGM, {"rounds": 0}),
    ("run: evaluate_every must", SGM, {"evaluate_every": "often"}),
    ("seeds must not be empty", SGM, {"seeds": []}),
    ("run: seeds[0] must", SGM, {"seeds": [-1]}),
    ("device must be one of", SGM, {"device": "cuda:99"}),
    ("must differ in float parameters only", [SGM, replace(SGM, local_steps=2)], {}),
    (
        "must differ in float parameters only",
        [SGM, replace(SGM, uplink=fl.TopK(0.2))],
        {},
    ),
    (
        "num_clients of neyman_pearson with seed 1 must be 20 *got 19",
        SGM,
        {"problem": smaller, "seeds": [0, 1]},
    ),
    (
        "schedules of FedAvg must be one of *, got 'rate'",
        FEDAVG,
        {"schedules": {"rate": lambda t: 1 / t}},
    ),
    ("init of Widening must return tensors of shapes", WIDENING, {}),
]


@pytest.mark.parametrize(("words", "algorithm", "options"), REFUSED)
def test_bad_input_is_refused_before_the_first_round(words, algorithm, options):
    with pytest.raises((TypeError, ValueError)) as caught:
        quiet(algorithm, **options)
    for fragment in words.split("*"):
        assert fragment in str(caught.value)


def test_the_callers_number_of_threads_is_restored():
    threads = torch.get_num_threads()
    quiet(SGM, rounds=2)
    assert torch.get_num_threads() == threads


class Rolling(fl.FedAvg):
    def local_update(self, client, w):
        return super().local_update(client, w) + torch.randn_like(w)


@pytest.mark.parametrize("seeds", [[0], [0, 1]])
def test_a_round_that_draws_random_numbers_is_refused(seeds):
    words = "Rolling: a round must not draw random numbers; *in draw()"
    refuses(words, quiet, Rolling(0.1, 1, 3), seeds=seeds)


def unequal(seed):
    """Five clients with 7 rows each, or 1 to 13, or 3 to 10; float64."""
    sizes = ([7] * 5, [1, 3, 7, 11, 13], [3, 6, 7, 9, 10])[seed]
    points = normal(35, 3, seed=seed)
    rows, sizes = padded(torch.arange(35).split(sizes))
    return replace(quadratics(points, points, level=1.0), rows=rows, sizes=sizes)


def test_a_seed_alone_is_the_seed_among_others_where_clients_have_unequal_rows():
    method = fl.FedAvg(lr=0.1, local_steps=2, participants=3)
    together = quiet(method, unequal, seeds=range(3))
    for seed in range(3):
        alone = quiet(method, unequal, seeds=[seed])
        np.testing.assert_allclose(together.state.w[seed], alone.state.w[0], atol=1e-15)


@dataclass(frozen=True)
class Loose:
    """Fields that a whole number may stand in."""

    rate: float = 1
    bound: checks.Positive | None = 3
    either: int | float = 4
    steps: int = 5
    never: float | None = None
    wide: float = field(default=1, metadata={"shape": True})


def test_a_field_that_is_declared_a_float_is_one_whatever_number_stands_in_it():
    assert floats(Loose()) == {"rate": 1, "bound": 3}
    assert "either" in floats(Loose(either=0.5))


@dataclass(frozen=True)
class Personal:
    """A step whose multiplier starts at `first`, with noise of size `noise`, and an output."""

    lr: float
    first: float = 1.0
    noise: float = 0.0
    share: float = 1.0

    def init(self, problem):
        return Start(problem.w0, problem.w0.new_full((), self.first))

    def draw(self, problem, rng):
        drawn = draw_round(problem, rng, participants=2)
        active = torch.rand(1, generator=rng) < self.share
        noise = self.noise * torch.randn(2, generator=rng)
        return drawn._replace(chance=noise, downlink=active)

    def step(self, client, w):
        gradient = client.gradient(w, client.batch(0), client.objective_weights(w))
        return gradient + client.chance

    def round(self, fed, state, draw):
        mean = fed.ask(self.step, fed.clients(draw), state.w).mean(0)
        step = self.lr * state.y * draw.downlink * mean
        return Start(state.w - step, 0.9 * state.y), fed.info(y=state.y)

    def output(self, state):
        return self.first * state.w


GRIDS = {
    "starts": [Personal(0.1, first=y) for y in (0.5, 1.0, 2.0)],
    "noises": [Personal(0.1, noise=size) for size in (1.0, 100.0)],
    "shares": [Personal(0.1, share=p) for p in (0.5, 0.51)],  # the first draws are equal
    "all": [Personal(0.1, 2.0, 0.1, 0.5), Personal(0.2, 1.0, 0.3, 0.9)],
}


FURTHER = [
    ("shares", fl.Vectorized, 40),  # captured, as below
    ("all", fl.Vectorized, 40),
    ("all", fl.Sequential, 40),
]


@pytest.mark.parametrize(
    ("name", "engine", "rounds"),
    [*product(GRIDS, [fl.Vectorized, fl.Sequential], [3]), *FURTHER],
)
def test_a_point_of_a_grid_has_its_own_start_draws_and_output(name, engine, rounds, monkeypatch):
    monkeypatch.setattr(batch, "CAPTURE", 40)
    options = {"seeds": (0, 3), "engine": engine, "evaluate_every": rounds}
    together = quiet(GRIDS[name], quadratics(), rounds, **options)
    for algorithm, trace in zip(GRIDS[name], together, strict=True):
        alone = quiet(algorithm, quadratics(), rounds, **options)
        np.testing.assert_allclose(trace.state.w, alone.state.w, rtol=1e-5)
        np.testing.assert_allclose(trace.info["y"], alone.info["y"], rtol=1e-6)
        np.testing.assert_allclose(trace.output, alone.output, rtol=1e-5)


def test_a_draw_that_reads_a_scheduled_field_is_refused():
    words = "that the method's draw does not read, got 'noise'"
    schedules = {"noise": lambda t: 1 / t}
    refuses(words, quiet, Personal(0.1), quadratics(), schedules=schedules)
