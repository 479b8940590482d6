"""Other people's packages beside ours, where they are installed."""

import pytest
import torch
from torch.testing import assert_close

import fedlib as fl
from fedlib.core.problem import Batch
from fedlib.weights import FindWeights, MinNorm
from papers.arena.problems import LEVELS, arena_problem
from papers.arena.reference import doubled
from tests.helpers.randoms import normal


def test_weights_of_two_gradients_are_those_of_torchjd():
    theirs = pytest.importorskip("torchjd.aggregation")
    mgda = theirs.MGDAWeighting(epsilon=1e-6, max_iters=2000)
    for seed in range(8):
        H = normal(2, 8, seed=seed)
        G = H @ H.T
        start = torch.full((2,), 0.5, dtype=torch.float64)
        exact = MinNorm()(G, start)
        assert_close(mgda(G), exact)
        assert_close(FindWeights(step=0.1, steps=5000)(G, start), exact)


def test_switching_is_that_of_humancompatible_train():
    theirs = pytest.importorskip("humancompatible.train.dual_optim")
    problem = doubled(arena_problem(0, name="np", stand_in=2000))
    lr = 1.5
    hard = fl.FedSGM(
        lr, 1, problem.num_clients, tolerance=0.0, level=LEVELS["np"], switch=fl.Hard()
    )
    ours = fl.run(hard, problem, rounds=50, progress=False)
    w = problem.w0.clone().requires_grad_()
    step = torch.optim.SGD([w], lr=lr)
    dual = theirs.SSG(m=1)
    taken = []
    share = 1 / len(problem.data[0])
    rows = Batch(problem.data, problem.w0.new_full((len(problem.data[0]),), share))
    for _ in range(50):
        f, g = problem.losses(w, rows)
        step.zero_grad()
        dual.forward_update(f, (g - LEVELS["np"]).unsqueeze(0)).backward()
        step.step()
        taken.append(dual.last_switched_to_constraints)
    assert_close(ours.state.w[0], w.detach())
    assert ours.info["sigma"][0].tolist() == taken
    assert 0 < sum(taken) < 50
