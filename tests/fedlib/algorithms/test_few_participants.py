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
from tests.helpers.expect import close
from tests.helpers.randoms import normal
from tests.helpers.weekly import further_weekly

CLIENTS = 400
METHODS = {
    "FedFW": fl.FedFW(0.1, participation=0.02),
    "FedFWPlus": fl.FedFWPlus(0.1, participation=0.02),
    "FedFWSto": fl.FedFWSto(0.1, batch_size=2, participation=0.02),
}


def problem_of(clients, rows=3):
    corner = 2 * torch.eye(6).double()[0]
    centres = normal(clients, rows, 1, 6)
    return pareto(centres, w0=corner).within(fl.L1Ball(2.0))


PROBLEM = problem_of(CLIENTS)


def draw_of(method, problem=PROBLEM):
    return method.draw(problem, seeded(0, "rounds"))


@pytest.mark.parametrize("name", ["FedFW", "FedFWPlus"])
def test_the_run_is_that_in_which_all_clients_compute(name):
    def run(measure_all):
        method = replace(METHODS[name], measure_all=measure_all)
        return fl.run(method, PROBLEM, rounds=30, seeds=[0, 1])

    actual = run(measure_all=False)
    expected = run(measure_all=True)
    torch.testing.assert_close(tuple(actual.state), tuple(expected.state))
    np.testing.assert_array_equal(actual.info["bits_up"], expected.info["bits_up"])
    assert (actual.info["gap"] < expected.info["gap"]).all()  # of fewer clients, none negative


def test_the_measures_are_of_those_that_take_part():
    method = replace(METHODS["FedFW"], measure_all=False)
    draw = draw_of(method)
    state = method.init(PROBLEM)
    x = normal(*state.x.shape) / 10
    _, info = method.round(fl.Vectorized(PROBLEM), state._replace(x=x), draw)
    active = draw.participants[draw.chance < method.participation]
    assert 0 < len(active) < len(draw.participants) < CLIENTS
    close(info["distance"], torch.linalg.vector_norm(x[active] - state.w))


@pytest.mark.parametrize("name", further_weekly(METHODS, ["FedFWSto"]))
def test_the_contract_holds(name):
    method = replace(METHODS[name], participation=0.1, measure_all=False)
    problem = problem_of(100)
    assert len(draw_of(method, problem).participants) < 100
    fl.check_algorithm(method, problem)


def test_minibatches_are_rows_of_the_clients_that_compute():
    method = METHODS["FedFWSto"]
    problem = problem_of(CLIENTS, rows=5)
    assert len(draw_of(method, problem).batches) == CLIENTS  # all compute, since they are few
    draw = draw_of(replace(method, measure_all=False), problem)
    assert len(draw.batches) == len(draw.participants) == most_active(CLIENTS, 0.02)
    assert int(draw.batches.max()) < 5


@pytest.mark.parametrize(
    ("clients", "computing"),
    [(1000, 1000), (1001, most_active(1001, 0.02))],
)
def test_up_to_a_thousand_clients_all_compute(clients, computing):
    draw = draw_of(METHODS["FedFW"], problem_of(clients))
    assert len(draw.participants) == computing < 1001


def test_all_clients_compute_where_they_have_sets_of_their_own():
    groups = tuple(j % 2 for j in range(CLIENTS))
    sets = fl.PerClient((fl.L1Ball(2.0), fl.Ball(2.0)), groups)
    method = replace(METHODS["FedFW"], measure_all=False, split=sets)
    assert len(draw_of(method).participants) == CLIENTS


def test_the_coins_are_those_of_all_clients():
    everyone = draw_coins(PROBLEM, seeded(5, "rounds"))
    drawn = draw_some_coins(PROBLEM, seeded(5, "rounds"), 0.02)
    close(drawn.chance, everyone.chance[drawn.participants], 0)
    active = (everyone.chance < 0.02).nonzero().flatten()
    participants = drawn.participants.tolist()
    assert set(active.tolist()) <= set(participants)
    assert participants == sorted(participants)


def test_the_room_is_almost_surely_enough():
    for clients, share in product((50, 1000, 100_000), (1e-4, 0.001, 0.02, 0.5, 0.97, 1.0)):
        bound = most_active(clients, share)
        assert bound == clients or scipy.stats.binom.sf(bound, clients, share) < 1e-12


def test_too_many_participants_are_not_dropped(monkeypatch):
    monkeypatch.setattr(sampling, "most_active", lambda *_: 2)
    with pytest.raises(RuntimeError, match="participants of a round must be at most 2 of"):
        draw_some_coins(PROBLEM, seeded(0, "rounds"), 0.1)
