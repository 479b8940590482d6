"""FedDR: its plain-loop twin, the constrained optimum of quadratics, participation."""

from itertools import product

import pytest
import torch

import fedlib as fl
from fedlib.core.problem import Draw
from tests.helpers.expect import close
from tests.helpers.problems import centred, double
from tests.helpers.rounds import walk
from tests.helpers.weekly import further_weekly

SETS = {"l1": fl.L1Ball(0.5), "l2": fl.Ball(0.5), "nuclear": fl.NuclearBall(0.5, 2, 3)}
PROBLEM = centred(SETS["l1"])
METHODS = {
    "all": fl.FedDR(0.1, 3),
    "relaxed": fl.FedDR(0.1, 3, eta=2.0, relaxation=1.7),
    "some": fl.FedDR(0.1, 2, participation=0.4),
    "minibatches": fl.FedDR(0.1, 2, batch_size=2, participation=0.8),
}


def centres(problem):
    return problem.data[0][problem.rows][:, :, 0]  # [N, 4, d]


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("engine", [fl.Vectorized, fl.Loop])
def test_equals_the_plain_twin(method, engine):
    """The pseudocode on lists; the server's x is the mean of all last known reflected points."""
    n = PROBLEM.num_clients
    w = PROBLEM.w0
    x = [w] * n
    y = [w] * n
    hat = [w] * n
    for _, draw, state, _ in walk(method, PROBLEM, 25, engine):
        for i in range(n):
            if draw.chance[i] >= method.participation:
                continue
            y[i] = y[i] + method.relaxation * (w - x[i])
            for e in range(method.local_steps):
                rows = draw.batches[i, e] if method.batch_size else slice(None)
                slope = x[i] - centres(PROBLEM)[i, rows].mean(0)
                x[i] = x[i] - method.lr * (slope + (x[i] - y[i]) / method.eta)
            hat[i] = 2 * x[i] - y[i]
        mean = sum(hat) / n
        w = PROBLEM.set.project(mean)
        close(state.x, mean)
        close(state.w, w)
        close(state.memory[:, 1], torch.stack(x))
    assert not PROBLEM.set.contains(state.x)  # the two server vectors differ


ALL = (1.0, 1.0)
SOME = (0.5, 1.5)  # participation, relaxation


@pytest.mark.parametrize(
    ("name", "settings"),
    further_weekly(product(SETS, [ALL, SOME]), [("l1", ALL), ("nuclear", SOME)]),
)
def test_finds_the_constrained_minimizer(name, settings):
    convex_set = SETS[name]
    participation, relaxation = settings
    problem = centred(convex_set)
    middle = centres(problem).mean((0, 1))
    assert not convex_set.contains(middle)  # the set matters
    method = fl.FedDR(
        lr=0.5,
        local_steps=12,
        eta=1.0,
        relaxation=relaxation,
        participation=participation,
    )
    trace = fl.run(method, problem, rounds=150, evaluate_every=150)
    close(trace.state.w[0], convex_set.project(middle), 1e-6)


@pytest.mark.parametrize(
    ("coins", "count"),
    [([0.9, 0.1, 0.2, 0.9, 0.7], 2), ([0.9] * 5, 0)],
)
def test_those_whose_coin_says_so_move_and_send(coins, count):
    method = fl.FedDR(0.1, 1, participation=0.5)
    state = method.init(PROBLEM)
    draw = Draw(torch.arange(5), chance=double(*coins))
    next_state, info = method.round(fl.Vectorized(PROBLEM), state, draw)
    assert info["bits_up"] == info["bits_down"] == count * 6 * 32
    moved = (next_state.memory != state.memory).any(-1).any(-1)
    assert moved.tolist() == [coin < 0.5 for coin in coins]
    assert torch.equal(next_state.w, state.w) == (count == 0)
