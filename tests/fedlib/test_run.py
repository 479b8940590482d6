"""The loop: seeds and grids together and alone, resuming, stopping, bad input."""

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
from fedlib.core.floats import fill, floats
from fedlib.core.sampling import draw_round
from fedlib.data.split import padded
from fedlib.engine import batch
from fedlib.problems import quadratics
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


def quiet(algorithm, problem=np_problem, **options):
    options.setdefault("rounds", 30)
    return fl.run(algorithm, problem, progress=False, **options)


def test_metrics_stand_at_the_start_of_their_rounds():
    trace = quiet(SGM, rounds=7, evaluate_every=3)
    assert trace.rounds.tolist() == [0, 3, 6, 7]
    assert trace.metrics["f"][0, 0] == pytest.approx(math.log(2))
    all_rounds = quiet(SGM, rounds=7)
    np.testing.assert_allclose(
        trace.metrics["f"], all_rounds.metrics["f"][:, [0, 3, 6, 7]], atol=1e-13
    )
    frame = all_rounds.to_frame()
    assert frame.shape[0] == 8
    assert frame["round"].tolist() == list(range(8))


def test_divergence_stops_and_says_where():
    a = torch.full((2, 1), 1.0, dtype=torch.float64)
    problem = quadratics(a, a, level=1.0)
    wild = fl.FedAvg(lr=1e100, local_steps=1, participants=2)
    tame = fl.FedAvg(lr=0.1, local_steps=1, participants=2)
    with pytest.raises(
        fl.Diverged, match=r"not finite after round 3 \(seed 5.*lr=1e\+100"
    ) as caught:
        quiet([tame, wild], problem, seeds=[5, 6], rounds=70)
    assert caught.value.round == 3
    assert caught.value.seed == 5
    assert torch.isfinite(caught.value.state.w).all()
    step = 1e100 * (caught.value.state.w - 1)
    assert not torch.isfinite(caught.value.state.w - step).all()


def test_the_last_finite_state_has_the_memories_of_its_round():
    tame = replace(SGM, uplink=fl.TopK(0.5), downlink=fl.Identity())
    wild = replace(tame, lr=1e20)
    a = torch.tensor([1.0, -0.7]).double().expand(20, 2)
    problem = quadratics(a.abs(), a, level=1.0)
    with pytest.raises(fl.Diverged) as caught:
        quiet([wild, tame], problem, rounds=20)
    trace, _ = quiet([wild, tame], problem, rounds=caught.value.round)
    assert caught.value.round > 0
    for a, b in zip(caught.value.state, trace.state, strict=True):
        assert torch.equal(a, b[0])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rounds": 0}, "run: rounds must"),
        ({"rounds": 5, "evaluate_every": 0}, "run: evaluate_every must"),
        ({"rounds": 5, "evaluate_every": "often"}, "run: evaluate_every must"),
        ({"rounds": 5, "seeds": []}, "seeds must not be empty"),
        ({"rounds": 5, "seeds": [-1]}, r"run: seeds\[0\] must"),
        ({"rounds": 5, "device": "tpu"}, "device must"),
        ({"rounds": 5, "device": "cuda:99"}, "device must be one of"),
    ],
)
def test_bad_input_is_refused_before_the_first_round(options, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        quiet(SGM, np_problem(), **options)


def test_a_grid_of_different_methods_is_refused():
    with pytest.raises(ValueError, match="must differ in float parameters only"):
        quiet([SGM, replace(SGM, local_steps=2)], np_problem())
    with pytest.raises(ValueError, match="must differ in float parameters only"):
        quiet([SGM, replace(SGM, uplink=fl.TopK(0.2))], np_problem())


def test_seeds_of_different_shapes_are_refused():
    with pytest.raises(
        ValueError,
        match=r"num_clients of neyman_pearson with seed 1 must be 20 .*got 19",
    ):
        quiet(SGM, lambda seed: np_problem(clients=20 - seed), seeds=[0, 1])


def test_the_callers_number_of_threads_is_restored():
    threads = torch.get_num_threads()
    quiet(SGM, np_problem(), rounds=2)
    assert torch.get_num_threads() == threads


def test_fill_and_floats_know_the_ingredients_but_not_what_decides_shapes():
    assert floats(SGM) == {
        "lr": 0.3,
        "tolerance": 0.05,
        "level": 0.0,
        "switch.beta": 40.0,
    }
    assert fill(SGM, {"switch.beta": 7.0, "lr": 1.0}) == replace(SGM, lr=1.0, switch=fl.Soft(7.0))


class Branching(fl.FedAvg):
    def round(self, fed, state, draw):
        next_state, info = super().round(fed, state, draw)
        return (state if next_state.w.norm() > 1 else next_state), info


class Reading(fl.FedAvg):
    def round(self, fed, state, draw):
        next_state, info = super().round(fed, state, draw)
        return next_state._replace(w=next_state.w * float(next_state.w[0] > 0)), info


class Rolling(fl.FedAvg):
    def local_update(self, client, w):
        return super().local_update(client, w) + torch.randn_like(w)


@pytest.mark.parametrize(
    ("method", "seeds", "sentence"),
    [
        (Branching, [0, 1], "Branching: a round must not branch on a tensor's value .*torch.where"),
        (Reading, [0, 1], "Reading: a round must not branch on a tensor's value or read it"),
        (Rolling, [0, 1], r"Rolling: a round must not draw random numbers; .*in draw\(\)"),
        (Rolling, [0], r"Rolling: a round must not draw random numbers; .*in draw\(\)"),
    ],
)
def test_a_round_that_no_map_can_follow_is_one_sentence(method, seeds, sentence):
    with pytest.raises(ValueError, match=sentence):
        quiet(method(0.1, 1, 3), seeds=seeds, rounds=2)


def unequal(seed):
    """Five clients with 7 rows each, or 1 to 13, or 3 to 10; float64."""
    sizes = ((7,) * 5, (1, 3, 7, 11, 13), (3, 6, 7, 9, 10))[seed]
    points = normal(35, 3, seed=seed)
    rows, sizes = padded(torch.arange(35).split(sizes))
    return replace(quadratics(points, points, level=1.0), rows=rows, sizes=sizes)


def test_a_seed_alone_is_the_seed_among_others_where_clients_have_unequal_rows():
    method = fl.FedAvg(lr=0.1, local_steps=2, participants=3)
    together = quiet(method, unequal, seeds=range(3))
    for seed in range(3):
        alone = quiet(method, unequal, seeds=[seed])
        np.testing.assert_allclose(together.state.w[seed], alone.state.w[0], rtol=0, atol=1e-15)


@dataclass(frozen=True)
class Loose:
    """Fields that a whole number may stand in."""

    rate: float = 1
    power: checks.Positive = 2
    bound: checks.Positive | None = 3
    either: int | float = 4
    steps: int = 5
    flag: bool = True
    never: float | None = None
    listed: float | tuple[float, ...] = (1, 2)
    wide: float = field(default=1, metadata={"shape": True})


def test_a_field_that_is_declared_a_float_is_one_whatever_number_stands_in_it():
    assert floats(Loose()) == {"rate": 1, "power": 2, "bound": 3}
    assert floats(Loose(rate=0.5, either=0.5, listed=6)) == {
        **{
            "rate": 0.5,
            "power": 2,
            "bound": 3,
            "either": 0.5,
            "listed": 6,
        }
    }


class Start(NamedTuple):
    w: torch.Tensor
    y: torch.Tensor


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
        return drawn._replace(chance=self.noise * torch.randn(2, generator=rng), downlink=active)

    def step(self, client, w):
        gradient = client.gradient(w, client.batch(0), client.objective_weights(w))
        return gradient + client.chance

    def round(self, fed, state, draw):
        mean = fed.ask(self.step, fed.clients(draw), state.w).mean(0)
        step = self.lr * state.y * draw.downlink * mean
        return Start(state.w - step, 0.9 * state.y), fed.info(y=state.y)

    def output(self, state):
        return self.first * state.w


STARTS = [Personal(0.1, first=y) for y in (0.5, 1.0, 2.0)]
NOISES = [Personal(0.1, noise=size) for size in (1.0, 100.0)]
SHARES = [Personal(0.1, share=p) for p in (0.5, 0.51)]  # the first draws are equal
ALL = [Personal(0.1, 2.0, 0.1, 0.5), Personal(0.2, 1.0, 0.3, 0.9)]


@pytest.mark.parametrize(
    ("grid", "rounds", "engine"),
    [
        *product((STARTS, NOISES, SHARES, ALL), [3], [fl.Vectorized, fl.Sequential]),
        (SHARES, 40, fl.Vectorized),  # captured, as below
        (ALL, 40, fl.Vectorized),
        (ALL, 40, fl.Sequential),
    ],
)
def test_a_point_of_a_grid_has_its_own_start_draws_and_output(grid, rounds, engine, monkeypatch):
    monkeypatch.setattr(batch, "CAPTURE", 40)
    options = {
        "seeds": (0, 3),
        "rounds": rounds,
        "engine": engine,
        "evaluate_every": rounds,
    }
    together = quiet(grid, quadratics(), **options)
    for algorithm, trace in zip(grid, together, strict=True):
        alone = quiet(algorithm, quadratics(), **options)
        np.testing.assert_allclose(trace.state.w, alone.state.w, rtol=1e-5)
        np.testing.assert_allclose(trace.info["y"], alone.info["y"], rtol=1e-6)
        np.testing.assert_allclose(trace.output, alone.output, rtol=1e-5)


def test_a_draw_that_reads_a_scheduled_field_is_refused():
    with pytest.raises(ValueError, match="that the method's draw does not read, got 'noise'"):
        quiet(Personal(0.1), quadratics(), schedules={"noise": lambda t: 1 / t})


class Widening(fl.FedAvg):
    def init(self, problem):
        return Start(problem.w0, problem.w0.new_zeros(int(10 * self.lr)))


def test_starts_of_several_shapes_are_refused_in_one_sentence():
    with pytest.raises(ValueError, match="init of Widening must return tensors of shapes"):
        quiet([Widening(0.1, 1, 2), Widening(0.3, 1, 2)], quadratics())


def test_a_divergence_can_be_pickled():
    with pytest.raises(fl.Diverged) as caught:
        quiet(fl.FedAvg(1e9, 2, 4), quadratics())
    error = caught.value
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(error, protocol))
        assert type(again) is fl.Diverged
        assert str(again) == str(error)
        assert again.round == error.round
        assert again.seed == error.seed
        assert torch.equal(again.state.w, error.state.w)
    assert torch.equal(copy.copy(error).state.w, error.state.w)
