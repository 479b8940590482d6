"""FedSGM: by hand, against its plain twin, its reductions, its convergence."""

from dataclasses import replace

import pytest
import torch

import fedlib as fl
from fedlib.core.problem import Draw
from fedlib.problems import quadratics
from fedlib.sets import Ball, Box
from tests.helpers import plain
from tests.helpers.expect import close
from tests.helpers.problems import double, np_problem
from tests.helpers.randoms import normal
from tests.helpers.rounds import walk

BASE = fl.FedSGM(lr=0.3, local_steps=3, participants=10, tolerance=0.05)
HALVES = fl.FedSGM(lr=0.5, local_steps=2, participants=2, tolerance=0.0)
BOTH = Draw(torch.tensor([0, 1]))


def last(method, problem, rounds):
    """The state after some rounds."""
    *_, (_, _, state, _) = walk(method, problem, rounds)
    return state


def test_two_rounds_by_hand():
    # Two clients, d = 1: f_j = (w - a_j)^2 / 2 with a = (4, 2), g = w^2 / 2 - 1/2 with b = 0.
    problem = quadratics(double([4.0], [2.0]), double([0.0], [0.0]), level=0.5)
    problem = replace(problem, w0=double(0.5))
    fed = fl.Vectorized(problem)
    state, info = HALVES.round(fed, HALVES.init(problem), BOTH)
    # g(0.5) = 0.125 - 0.5 < 0, so both steps work on f: w <- w - 0.5 (w - a).
    # Client 0: 0.5 -> 2.25 -> 3.125; client 1: 0.5 -> 1.25 -> 1.625; mean 2.375.
    close(info["g_hat"], double(-0.375).squeeze())
    assert info["sigma"] == 0
    close(state.w, double(2.375))
    # Next round: g(2.375) > 0, both steps shrink w by a half: 2.375 / 4.
    state, info = HALVES.round(fed, state, BOTH)
    assert info["sigma"] == 1
    close(state.w, double(0.59375))
    close(HALVES.output(state), double(0.5))  # only round 0 counts, at its start


def test_one_compressed_round_by_hand():
    problem = quadratics(double([4.0, 1.0], [2.0, 3.0]), 0 * double([1, 1], [1, 1]), level=50.0)
    half = fl.TopK(0.5)
    sgm = replace(HALVES, local_steps=1, uplink=half, downlink=half)
    state, _ = sgm.round(fl.Vectorized(problem), sgm.init(problem), BOTH)
    # Directions -a_j: (-4, -1), (-2, -3). Sent: (-4, 0), (0, -3); kept: (0, -1), (-2, 0).
    assert state.residual.tolist() == [[0, -1], [-2, 0]]
    assert state.x.tolist() == [1.0, 0.75]  # 0 - 0.5 * mean of what was sent
    assert state.w.tolist() == [1.0, 0.0]  # the larger coordinate of x - w


@pytest.mark.parametrize("beta", [None, 40.0])
@pytest.mark.parametrize(("k_up", "k_down"), [(30, 30), (3, 6)])
def test_equals_the_plain_twin(problem, beta, k_up, k_down):
    method = replace(
        BASE,
        switch=fl.Hard() if beta is None else fl.Soft(beta),
        level=0.01,
        uplink=fl.TopK(k_up / 30),
        downlink=fl.TopK(k_down / 30),
    )
    rounds = list(walk(method, problem, 25))
    X, y, shares = problem.data
    path, sigmas, residuals, average = plain.fedsgm(
        [(X[rows], y[rows], shares[rows]) for rows in problem.rows],
        [draw.participants.tolist() for _, draw, _, _ in rounds],
        lr=0.3,
        steps=3,
        tolerance=0.05,
        level=0.01,
        switch=beta,
        k_up=k_up,
        k_down=k_down,
        w=torch.zeros(30).double(),
    )
    for (_, _, state, info), w, sigma in zip(rounds, path, sigmas, strict=True):
        close(state.w, w, 1e-11)
        assert float(info["sigma"]) == pytest.approx(sigma, abs=1e-10)
    close(state.residual, torch.stack(residuals), 1e-11)
    if average is not None:
        close(method.output(state), average, 1e-11)
    assert len(set(sigmas)) > 1


@pytest.mark.parametrize("switch", [fl.Hard(), fl.Soft(40.0)])
def test_with_one_client_and_nothing_compressed_it_is_sgm(switch):
    problem = np_problem(clients=1)
    settings = {"lr": 0.3, "tolerance": 0.05, "switch": switch}
    federated = fl.FedSGM(**settings, local_steps=1, participants=1)
    central = fl.SGM(**settings)
    close(last(federated, problem, 60).w, last(central, problem, 60).w)


@pytest.mark.parametrize(("switch", "share"), [(fl.Hard(), 0.5), (fl.Soft(200.0), 1.0)])
def test_reaches_the_known_constrained_optimum(switch, share):
    problem = quadratics(3 + normal(6, 4, seed=2), normal(6, 4, seed=3), level=0.5)
    method = replace(
        HALVES,
        lr=0.006,
        participants=6,
        switch=switch,
        uplink=fl.TopK(share),
        downlink=fl.TopK(share),
    )
    trace = fl.run(method, problem, rounds=800, evaluate_every=800)
    start, end = trace.metrics["distance"][0]
    assert start > 0.5
    assert end < 0.05
    assert abs(trace.metrics["g"][0, -1]) < 0.03


@pytest.mark.parametrize("convex_set", [Ball(0.3), Box(0.05)])
def test_projection_keeps_the_servers_model_inside(problem, convex_set):
    inside = replace(problem, set=convex_set)
    method = replace(BASE, uplink=fl.TopK(0.1), downlink=fl.TopK(0.2))
    for _, _, state, _ in walk(method, inside, 40):
        assert convex_set.contains(state.x)


def test_the_average_is_undefined_until_a_round_works_on_the_objective(problem):
    never = replace(BASE, tolerance=-10.0)
    state = last(never, problem, 3)
    assert torch.isnan(never.output(state)).all()
