"""Frank-Wolfe methods in which only those who take part compute."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import scipy.stats
import torch

import fedlib as fl
from fedlib.core import sampling
from fedlib.core.sampling import draw_coins, draw_some_coins, most_active, seeded
from fedlib.problems import pareto
from tests.helpers.weekly import further_weekly

CLIENTS = 400
METHODS = {
    "FedFW": fl.FedFW(0.1, participation=0.02),
    "FedFWPlus": fl.FedFWPlus(0.1, participation=0.02),
    "FedFWSto": fl.FedFWSto(0.1, batch_size=2, participation=0.02),
}


def problem(rows=3, clients=CLIENTS):
    rng = seeded(0, "split")
    centres = torch.randn(clients, rows, 1, 6, generator=rng, dtype=torch.float64)
    corner = 2 * torch.eye(6, dtype=torch.float64)[0]
    return pareto(centres, w0=corner).within(fl.L1Ball(2.0))


@pytest.mark.parametrize("name", ["FedFW", "FedFWPlus"])
def test_the_run_is_that_in_which_all_clients_compute(name):
    sparse = replace(METHODS[name], measure_all=False)
    everyone = replace(METHODS[name], measure_all=True)
    settings = {"rounds": 30, "seeds": [0, 1], "progress": False}
    actual = fl.run(sparse, problem(), **settings)
    expected = fl.run(everyone, problem(), **settings)
    for name in actual.state._fields:
        torch.testing.assert_close(getattr(actual.state, name), getattr(expected.state, name))
    np.testing.assert_array_equal(actual.info["bits_up"], expected.info["bits_up"])
    assert (actual.info["gap"] < expected.info["gap"]).all()  # of fewer clients, none negative


def test_the_measures_are_of_those_that_take_part():
    method = replace(METHODS["FedFW"], measure_all=False)
    task = problem()
    draw = method.draw(task, seeded(3, "rounds"))
    state = method.init(task)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(state.x.shape, generator=generator, dtype=torch.float64) / 10
    _, info = method.round(fl.core.federation.Vectorized(task), state._replace(x=x), draw)
    active = draw.participants[draw.chance < method.participation]
    assert 0 < len(active) < len(draw.participants) < CLIENTS
    expected = torch.linalg.vector_norm(x[active] - state.w)
    torch.testing.assert_close(info["distance"], expected)


@pytest.mark.parametrize("name", further_weekly(METHODS, ["FedFWSto"]))
def test_the_contract_holds(name):
    method = replace(METHODS[name], participation=0.1, measure_all=False)
    task = problem(clients=100)
    assert len(method.draw(task, seeded(0, "rounds")).participants) < 100
    fl.check_algorithm(method, task)


def test_minibatches_are_rows_of_the_clients_that_compute():
    task = problem(rows=5)
    draw = METHODS["FedFWSto"].draw(task, seeded(0, "rounds"))
    assert draw.batches.shape[0] == CLIENTS  # all compute, since they are few
    sparse = replace(METHODS["FedFWSto"], measure_all=False).draw(task, seeded(0, "rounds"))
    assert sparse.batches.shape[0] == len(sparse.participants) == most_active(CLIENTS, 0.02)
    assert int(sparse.batches.max()) < 5


def test_the_coins_are_those_of_all_clients():
    task = problem()
    everyone = draw_coins(task, seeded(5, "rounds"))
    drawn = draw_some_coins(task, seeded(5, "rounds"), 0.02)
    torch.testing.assert_close(drawn.chance, everyone.chance[drawn.participants])
    active = (everyone.chance < 0.02).nonzero().flatten()
    assert set(active.tolist()) <= set(drawn.participants.tolist())
    assert drawn.participants.tolist() == sorted(drawn.participants.tolist())


def test_the_room_is_almost_surely_enough():
    for clients, share in product((50, 1000, 100_000), (1e-4, 0.001, 0.02, 0.5, 0.97, 1.0)):
        bound = most_active(clients, share)
        assert bound == clients or scipy.stats.binom.sf(bound, clients, share) < 1e-12


def test_too_many_participants_are_not_dropped(monkeypatch):
    monkeypatch.setattr(sampling, "most_active", lambda *_: 2)
    task = problem()
    with pytest.raises(RuntimeError, match="participants of a round must be at most 2 of"):
        draw_some_coins(task, seeded(0, "rounds"), 0.1)


def test_all_clients_compute_where_they_are_few_or_have_sets_of_their_own():
    method = METHODS["FedFW"]
    assert len(method.draw(problem(), seeded(0, "rounds")).participants) == CLIENTS
    sets = fl.PerClient((fl.L1Ball(2.0), fl.Ball(2.0)), tuple(j % 2 for j in range(CLIENTS)))
    split = replace(method, measure_all=False, split=sets)
    assert len(split.draw(problem(), seeded(0, "rounds")).participants) == CLIENTS
