"""The randomness of a round is part of the format of stored runs: pinned, without any data set."""

from dataclasses import replace

import pytest
import torch

import fedlib as fl
from fedlib.compress import RandK
from fedlib.core.sampling import (
    draw_coins,
    draw_many,
    draw_round,
    sample,
    seeded,
)
from fedlib.problems import pareto, quadratics
from fedlib.work.samples import distinct

SIZES = (7, 3, 9, 4, 6)
#: Five clients with so many rows in tables of nine, padded with their first.
ROWS = torch.stack([torch.arange(9).where(torch.arange(9) < m, 0) for m in SIZES])
WHOLE = pareto(torch.zeros(5, 9, 2, 4).double())
PROBLEM = replace(WHOLE, rows=ROWS + 9 * torch.arange(5).unsqueeze(1), sizes=SIZES)

PINNED = {
    "split of 0": [136044, 248239, 714933],
    "rounds of 0": [95845, 876139, 770124],
    "split of 3": [805130, 378761, 842403],
    "rounds of 3": [741615, 413892, 725721],
    "round": {
        "participants": [1, 0, 3],
        "value_clients": [0, 1, 2],
        "batches": [[[2, 1], [0, 1]], [[2, 5], [1, 4]], [[1, 1], [3, 0]]],
        "values": [[0, 3, 6], [0, 1, 1], [0, 2, 3]],
        "uplink": [[3, 0], [3, 0], [2, 0]],
        "downlink": [1],
    },
    "values alone": [[2, 0], [5, 4], [0, 1]],
    "coins": [0.034108, 0.28674, 0.772915, 0.174927, 0.75537],
    "batches after coins": [[[4, 1]], [[1, 1]], [[7, 1]], [[2, 1]], [[2, 5]]],
    "few": [[[10, 8, 1], [3, 4, 0]], [[0, 5, 1], [7, 10, 3]]],
    "many": [[9, 0, 3], [8, 2, 4]],
}


def test_a_seed_has_a_stream_for_each_purpose_and_no_two_share_one():
    def first(seed, stream):
        return torch.randint(10**6, (3,), generator=seeded(seed, stream)).tolist()

    assert first(0, "split") == PINNED["split of 0"]
    assert first(0, "rounds") == PINNED["rounds of 0"]
    assert first(3, "split") == PINNED["split of 3"]
    assert first(3, "rounds") == PINNED["rounds of 3"]
    starts = {seeded(s, name).initial_seed() for s in range(50) for name in ("split", "rounds")}
    assert starts == set(range(100))


def test_the_draw_of_a_round_is_pinned():
    draw = draw_round(
        PROBLEM,
        seeded(1, "rounds"),
        participants=3,
        local_steps=2,
        batch_size=2,
        value_batch_size=3,
        uplink=RandK(0.5),
        downlink=RandK(0.25),
        resample=True,
    )
    for name, pinned in PINNED["round"].items():
        assert getattr(draw, name).tolist() == pinned, name
    alone = draw_round(PROBLEM, seeded(1, "rounds"), participants=3, value_batch_size=2)
    assert alone.participants.tolist() == PINNED["round"]["participants"]
    assert alone.values.tolist() == PINNED["values alone"]
    single = draw_round(PROBLEM, seeded(1, "rounds"), participants=3, batch_size=2)
    assert single.batches.shape == (3, 1, 2)
    assert (alone.value_clients, alone.batches, alone.uplink, alone.downlink) == ((), (), (), ())


def test_minibatches_cover_the_rows_of_their_own_client_and_no_others():
    rng = seeded(2, "rounds")
    sizes = torch.tensor(PROBLEM.sizes)
    draws = [
        draw_round(
            PROBLEM,
            rng,
            participants=5,
            local_steps=40,
            batch_size=2,
            value_batch_size=60,
        )
        for _ in range(3)
    ]
    for draw in draws:
        most = sizes[draw.participants] - 1
        assert torch.equal(draw.batches.amax((1, 2)), most)
        assert torch.equal(draw.values.amax(1), most)
        assert draw.batches.min() == draw.values.min() == 0
        assert draw.batches.shape == (5, 40, 2)
        assert draw.values.shape == (5, 60)


def test_the_coins_of_a_round_are_pinned():
    draw = draw_coins(PROBLEM, seeded(1, "rounds"), batch_size=2)
    assert draw.participants.tolist() == [0, 1, 2, 3, 4]
    assert draw.chance.dtype == torch.float64
    assert [round(p, 6) for p in draw.chance.tolist()] == PINNED["coins"]
    assert draw.batches.tolist() == PINNED["batches after coins"]


def test_distinct_numbers_are_pinned_on_both_of_its_ways():
    sparse = distinct(12, (2, 2, 3), seeded(1, "rounds"))
    dense = distinct(11, (2, 3), seeded(1, "rounds"))
    assert sparse.tolist() == PINNED["few"]
    assert dense.tolist() == PINNED["many"]
    crowded = distinct(40, (2000, 10), seeded(1, "rounds"))
    assert (crowded.sort(-1).values.diff() > 0).all()
    assert (crowded.flatten().bincount(minlength=40) - 500).abs().max() < 100


@pytest.mark.parametrize(("size", "count"), [(1001, 250), (1001, 251), (5000, 3), (10**9, 4)])
def test_a_few_of_many_are_distinct_and_in_the_order_in_which_they_were_drawn(size, count):
    rng = seeded(3, "rounds")
    plain = seeded(3, "rounds")
    numbers = sample(size, count, rng).tolist()
    assert len(set(numbers)) == count
    assert 0 <= min(numbers) <= max(numbers) < size
    if 4 * count > size:
        assert numbers == torch.randperm(size, generator=plain)[:count].tolist()
    else:
        drawn = torch.randint(size, (3 * count,), generator=plain).tolist()
        assert numbers == list(dict.fromkeys(drawn))[:count]


@pytest.mark.parametrize("resample", [False, True])
def test_the_draws_of_many_rounds_are_those_of_one_after_another(resample):
    method = fl.FedSGM(0.1, 2, 3, 0.05, resample_for_update=resample)
    problem = quadratics(torch.ones(7, 2), torch.zeros(7, 2), level=0.5)
    together = draw_many(method, [problem] * 2, [seeded(s, "rounds") for s in (0, 1)], 5)
    for seed in (0, 1):
        rng = seeded(seed, "rounds")
        for t in range(5):
            alone = method.draw(problem, rng)
            assert torch.equal(together.participants[t, seed], alone.participants)
            if resample:
                assert torch.equal(together.value_clients[t, seed], alone.value_clients)
    assert isinstance(together.value_clients, torch.Tensor) is resample


class Renamed(fl.FedAvg):
    def sampling(self):
        return {**super().sampling(), "participants": 2}


def test_a_class_that_changes_sampling_changes_both_ways_of_drawing():
    problem = quadratics(torch.ones(7, 2), torch.zeros(7, 2), level=0.5)
    together = draw_many(Renamed(0.1, 2, 3), [problem], [seeded(0, "rounds")], 1)
    alone = Renamed(0.1, 2, 3).draw(problem, seeded(0, "rounds"))
    assert together.participants[0, 0].tolist() == alone.participants.tolist()
    assert len(alone.participants) == 2


class OtherDraw(fl.FedAvg):
    def draw(self, problem, rng):
        return super().draw(problem, rng)._replace(participants=torch.tensor([0]))


@pytest.mark.parametrize(
    "method",
    [
        fl.FedAvg(0.1, 2, 3, batch_size=1),
        fl.FedSGM(0.1, 2, 3, 0.05, uplink=fl.RandK(0.5), error_feedback=False),
        OtherDraw(0.1, 2, 3),
    ],
)
def test_methods_that_draw_more_or_otherwise_are_drawn_round_by_round(method):
    problem = quadratics(torch.ones(7, 2), torch.zeros(7, 2), level=0.5)
    assert draw_many(method, [problem], [seeded(0, "rounds")], 5) is None
