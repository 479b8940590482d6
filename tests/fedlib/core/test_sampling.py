"""The randomness of a round is part of the format of stored runs: pinned, without any data set."""

from dataclasses import replace

import pytest
import torch

import fedlib as fl
from fedlib.compress import RandK
from fedlib.core.sampling import draw_coins, draw_many, draw_round, sample, seeded
from fedlib.problems import pareto, quadratics
from fedlib.work.samples import distinct

SIZES = (7, 3, 9, 4, 6)
#: Five clients with so many rows in tables of nine, padded with their first.
ROWS = torch.stack([torch.arange(9).where(torch.arange(9) < m, 0) for m in SIZES])
WHOLE = pareto(torch.zeros(5, 9, 2, 4).double())
PROBLEM = replace(WHOLE, rows=ROWS + 9 * torch.arange(5).unsqueeze(1), sizes=SIZES)
SEVEN = quadratics(torch.ones(7, 2), torch.zeros(7, 2), level=0.5)


def rounds_of(seed=1):
    return seeded(seed, "rounds")


@pytest.mark.parametrize(
    ("seed", "stream", "pinned"),
    [
        (0, "split", [136044, 248239, 714933]),
        (0, "rounds", [95845, 876139, 770124]),
        (3, "split", [805130, 378761, 842403]),
        (3, "rounds", [741615, 413892, 725721]),
    ],
)
def test_the_streams_of_a_seed_are_pinned(seed, stream, pinned):
    assert torch.randint(10**6, (3,), generator=seeded(seed, stream)).tolist() == pinned


def test_no_two_seeds_and_purposes_share_a_stream():
    starts = {seeded(s, name).initial_seed() for s in range(50) for name in ("split", "rounds")}
    assert starts == set(range(100))


PINNED = {
    "participants": [1, 0, 3],
    "value_clients": [0, 1, 2],
    "batches": [[[2, 1], [0, 1]], [[2, 5], [1, 4]], [[1, 1], [3, 0]]],
    "values": [[0, 3, 6], [0, 1, 1], [0, 2, 3]],
    "uplink": [[3, 0], [3, 0], [2, 0]],
    "downlink": [1],
}


def test_the_draw_of_a_round_is_pinned():
    draw = draw_round(
        PROBLEM,
        rounds_of(),
        participants=3,
        local_steps=2,
        batch_size=2,
        value_batch_size=3,
        uplink=RandK(0.5),
        downlink=RandK(0.25),
        resample=True,
    )
    assert {name: getattr(draw, name).tolist() for name in PINNED} == PINNED


def test_values_alone_are_pinned():
    draw = draw_round(PROBLEM, rounds_of(), participants=3, value_batch_size=2)
    assert draw.participants.tolist() == PINNED["participants"]
    assert draw.values.tolist() == [[2, 0], [5, 4], [0, 1]]
    assert (draw.value_clients, draw.batches, draw.uplink, draw.downlink) == ((), (), (), ())


def test_the_coins_of_a_round_are_pinned():
    draw = draw_coins(PROBLEM, rounds_of(), batch_size=2)
    assert draw.participants.tolist() == [0, 1, 2, 3, 4]
    assert draw.chance.dtype == torch.float64
    coins = [round(coin, 6) for coin in draw.chance.tolist()]
    assert coins == [0.034108, 0.28674, 0.772915, 0.174927, 0.75537]
    assert draw.batches.tolist() == [[[4, 1]], [[1, 1]], [[7, 1]], [[2, 1]], [[2, 5]]]


@pytest.mark.parametrize(
    ("size", "shape", "pinned"),
    [
        (12, (2, 2, 3), [[[10, 8, 1], [3, 4, 0]], [[0, 5, 1], [7, 10, 3]]]),  # few
        (11, (2, 3), [[9, 0, 3], [8, 2, 4]]),  # many
    ],
)
def test_distinct_numbers_are_pinned_on_both_of_its_ways(size, shape, pinned):
    assert distinct(size, shape, rounds_of()).tolist() == pinned


def test_distinct_numbers_are_distinct_and_as_likely():
    crowded = distinct(40, (2000, 10), rounds_of())
    assert (crowded.sort(-1).values.diff() > 0).all()
    assert (crowded.flatten().bincount(minlength=40) - 500).abs().max() < 100


@pytest.mark.parametrize(
    ("size", "count"),
    [(1001, 250), (1001, 251), (5000, 3), (10**9, 4)],
)
def test_a_few_of_many_are_distinct_and_in_the_order_in_which_they_were_drawn(size, count):
    numbers = sample(size, count, rounds_of()).tolist()
    plain = rounds_of()
    if 4 * count > size:
        assert numbers == torch.randperm(size, generator=plain)[:count].tolist()
    else:
        drawn = torch.randint(size, (3 * count,), generator=plain).tolist()
        assert numbers == list(dict.fromkeys(drawn))[:count]


class Renamed(fl.FedAvg):
    """Changes its sampling."""

    def sampling(self):
        return {**super().sampling(), "participants": 2}


@pytest.mark.parametrize(
    "method",
    [
        fl.FedSGM(0.1, 2, 3, 0.05),
        fl.FedSGM(
            0.1,
            2,
            3,
            0.05,
            resample_for_update=True,
        ),
        Renamed(0.1, 2, 3),
    ],
)
def test_the_draws_of_many_rounds_are_those_of_one_after_another(method):
    seeds = (0, 1)
    together = draw_many(method, [SEVEN] * 2, [rounds_of(seed) for seed in seeds], 5)
    for seed in seeds:
        rng = rounds_of(seed)
        for t in range(5):
            alone = method.draw(SEVEN, rng)
            assert torch.equal(together.participants[t, seed], alone.participants)
            if alone.value_clients == ():
                assert together.value_clients == ()
            else:
                assert torch.equal(together.value_clients[t, seed], alone.value_clients)


class OtherDraw(fl.FedAvg):
    def draw(self, problem, rng):
        return super().draw(problem, rng)._replace(participants=torch.tensor([0]))


@pytest.mark.parametrize(
    "method",
    [
        fl.FedAvg(0.1, 2, 3, batch_size=1),
        fl.FedSGM(
            0.1,
            2,
            3,
            0.05,
            uplink=fl.RandK(0.5),
            error_feedback=False,
        ),
        OtherDraw(0.1, 2, 3),
    ],
)
def test_methods_that_draw_more_or_otherwise_are_drawn_round_by_round(method):
    assert draw_many(method, [SEVEN], [rounds_of()], 5) is None
