"""FedDR: its plain-loop twin, the constrained optimum of quadratics, participation."""

from itertools import product

import pytest
import torch

import fedlib as fl
from fedlib.core.problem import Draw
from tests.helpers.problems import centred
from tests.helpers.rounds import walk
from tests.helpers.weekly import further_weekly

L1 = fl.L1Ball(0.5)


def centres(problem):
    return problem.data[0][problem.rows][:, :, 0]  # [N, 4, d]


METHODS = {
    "all": fl.FedDR(0.1, 3),
    "relaxed": fl.FedDR(0.1, 3, eta=2.0, relaxation=1.7),
    "some": fl.FedDR(0.1, 2, participation=0.4),
    "minibatches": fl.FedDR(0.1, 2, batch_size=2, participation=0.8),
}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("engine", [fl.Vectorized, fl.Loop])
def test_equals_the_plain_twin(method, engine):
    """The pseudocode on lists; the server's x is the mean of all last known reflected points."""
    problem = centred(L1)
    n = problem.num_clients
    project = problem.set.project
    y, x, hat = ([problem.w0.clone() for _ in range(n)] for _ in range(3))
    w = problem.w0
    for _, draw, state, _ in walk(method, problem, 25, engine):
        for i in range(n):
            if draw.chance[i] >= method.participation:
                continue
            y[i] = y[i] + method.relaxation * (w - x[i])
            for e in range(method.local_steps):
                rows = slice(None) if draw.batches == () else draw.batches[i, e]
                slope = x[i] - centres(problem)[i, rows].mean(0)
                x[i] = x[i] - method.lr * (slope + (x[i] - y[i]) / method.eta)
            hat[i] = 2 * x[i] - y[i]
        w = project(sum(hat) / n)
        torch.testing.assert_close(state.x, sum(hat) / n, atol=1e-12, rtol=0)
        torch.testing.assert_close(state.w, w, atol=1e-12, rtol=0)
        torch.testing.assert_close(state.memory[:, 1], torch.stack(x), atol=1e-12, rtol=0)
    assert not problem.set.contains(state.x)  # the two server vectors differ
    assert problem.set.contains(state.w, 1e-9)


SETS = {"l1": fl.L1Ball(0.5), "l2": fl.Ball(0.5), "nuclear": fl.NuclearBall(0.5, 2, 3)}
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
    method = fl.FedDR(0.5, 12, eta=1.0, relaxation=relaxation, participation=participation)
    best = convex_set.project(centres(problem).mean((0, 1)))
    trace = fl.run(method, problem, rounds=150, evaluate_every=150, progress=False)
    torch.testing.assert_close(trace.state.w[0], best, atol=1e-6, rtol=0)
    assert not convex_set.contains(centres(problem).mean((0, 1)))  # the set matters
    averaging = fl.FedAvg(0.5, 12, 5)
    averaged = fl.run(averaging, problem, rounds=50, evaluate_every=50, progress=False)
    assert convex_set.contains(averaged.state.w[0], 1e-9)  # FedAvg projects too


def test_bits_and_an_empty_round():
    problem = centred(L1)
    method = fl.FedDR(0.1, 1, participation=0.5)
    state = method.init(problem)
    for coins, count in (([0.9, 0.1, 0.2, 0.9, 0.7], 2), ([0.9] * 5, 0)):
        draw = Draw(torch.arange(5), chance=torch.tensor(coins, dtype=torch.float64))
        next_state, info = method.round(fl.Vectorized(problem), state, draw)
        assert info["bits_up"] == info["bits_down"] == count * 6 * 32
        moved = (next_state.memory != state.memory).any(-1).any(-1)
        assert moved.tolist() == [c < 0.5 for c in coins]
        assert torch.equal(next_state.w, state.w) == (count == 0)
