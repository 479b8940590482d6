"""FedSGM: by hand, against its plain twin, its reductions, its invariants, its convergence."""

from dataclasses import replace

import pytest
import torch

import fedlib as fl
from fedlib.core.problem import Draw
from fedlib.core.sampling import seeded
from fedlib.problems import quadratics
from fedlib.sets import Ball, Box
from tests.helpers import plain
from tests.helpers.expect import close
from tests.helpers.problems import np_problem
from tests.helpers.rounds import walk

BASE = fl.FedSGM(
    lr=0.3,
    local_steps=3,
    participants=10,
    tolerance=0.05,
)
FEEDBACK = replace(BASE, uplink=fl.TopK(0.1), downlink=fl.TopK(0.2))


def steps(*arguments):
    """States, infos and draws of some rounds."""
    return [(state, info, draw) for _, draw, state, info in walk(*arguments)]


def test_one_round_by_hand():
    # Two clients, d = 1: f_j = (w - a_j)^2 / 2 with a = (4, 2), g = w^2 / 2 - 1/2 with b = 0.
    a = torch.tensor([[4.0], [2.0]]).double()
    b = torch.zeros(2, 1).double()
    problem = replace(quadratics(a, b, level=0.5), w0=torch.tensor([0.5]).double())
    sgm = fl.FedSGM(
        lr=0.5,
        local_steps=2,
        participants=2,
        tolerance=0.0,
    )
    state, info = sgm.round(fl.Vectorized(problem), sgm.init(problem), Draw(torch.tensor([0, 1])))
    # g(0.5) = 0.125 - 0.5 < 0, so both steps work on f: w <- w - 0.5 (w - a).
    # Client 0: 0.5 -> 2.25 -> 3.125; client 1: 0.5 -> 1.25 -> 1.625; mean 2.375.
    assert info["g_hat"] == pytest.approx(-0.375)
    assert info["sigma"] == 0
    assert state.w.item() == pytest.approx(2.375)
    # Next round: g(2.375) > 0, both steps shrink w by a half: 2.375 / 4.
    state, info = sgm.round(fl.Vectorized(problem), state, Draw(torch.tensor([1, 0])))
    assert info["sigma"] == 1
    assert state.w.item() == pytest.approx(0.59375)
    assert sgm.output(state).item() == pytest.approx(0.5)  # only round 0 counts, at its start


def test_one_compressed_round_by_hand():
    a = torch.tensor([[4.0, 1.0], [2.0, 3.0]]).double()
    problem = quadratics(a, torch.zeros(2, 2).double(), level=50.0)
    sgm = fl.FedSGM(
        lr=0.5,
        local_steps=1,
        participants=2,
        tolerance=0.0,
        uplink=fl.TopK(0.5),
        downlink=fl.TopK(0.5),
    )
    state, _ = sgm.round(fl.Vectorized(problem), sgm.init(problem), Draw(torch.tensor([0, 1])))
    # Directions -a_j: (-4, -1), (-2, -3). Sent: (-4, 0), (0, -3); kept: (0, -1), (-2, 0).
    assert state.residual.tolist() == [[0, -1], [-2, 0]]
    assert state.x.tolist() == [1.0, 0.75]  # 0 - 0.5 * mean of what was sent
    assert state.w.tolist() == [1.0, 0.0]  # the larger coordinate of x - w


@pytest.mark.parametrize("beta", [None, 40.0])
@pytest.mark.parametrize("k", [(30, 30), (3, 6)])
def test_equals_the_plain_twin(problem, beta, k):
    switch = fl.Hard() if beta is None else fl.Soft(beta)
    sgm = replace(
        BASE,
        switch=switch,
        level=0.01,
        uplink=fl.TopK(k[0] / 30),
        downlink=fl.TopK(k[1] / 30),
    )
    path = steps(sgm, problem, 25)
    X, y, shares = problem.data
    clients = [(X[r], y[r], shares[r]) for r in problem.rows]
    twin, sigmas, e, average = plain.fedsgm(
        clients,
        [d.participants.tolist() for *_, d in path],
        lr=0.3,
        steps=3,
        tolerance=0.05,
        level=0.01,
        switch=beta,
        k_up=k[0],
        k_down=k[1],
        w=torch.zeros(30).double(),
    )
    assert any(s == 0 for s in sigmas) or beta is None or any(0 < s < 1 for s in sigmas)
    for (state, info, _), w, sigma in zip(path, twin, sigmas, strict=True):
        close(state.w, w, 1e-11)
        assert float(info["sigma"]) == pytest.approx(sigma, abs=1e-10)
    end_state = path[-1][0]
    close(end_state.residual, torch.stack(e), 1e-11)
    if average is not None:
        close(sgm.output(end_state), average, 1e-11)


def test_one_client_identity_is_the_centralized_method():
    problem = np_problem(clients=1)
    for switch in (fl.Hard(), fl.Soft(40.0)):
        fed = fl.FedSGM(
            lr=0.3,
            local_steps=1,
            participants=1,
            tolerance=0.05,
            switch=switch,
        )
        central = fl.SGM(lr=0.3, tolerance=0.05, switch=switch)
        a = steps(fed, problem, 60)
        b = steps(central, problem, 60)
        close(a[-1][0].w, b[-1][0].w)


def test_an_infinite_threshold_is_fedavg(problem):
    sgm = replace(BASE, tolerance=float("inf"))
    avg = fl.FedAvg(lr=0.3, local_steps=3, participants=10)
    a = steps(sgm, problem, 10)[-1]
    b = steps(avg, problem, 10)[-1]
    close(a[0].w, b[0].w)


def test_what_was_sent_and_what_is_left_is_what_was_to_be_sent(problem):
    kept = torch.zeros(20, 30).double()
    sent = torch.zeros(20, 30).double()
    rng = seeded(0, "rounds")
    state = FEEDBACK.init(problem)
    for _ in range(30):
        draw = FEEDBACK.draw(problem, rng)
        fed = fl.Vectorized(problem)
        clients = fed.clients(draw, model=state.w, memory=state.residual)
        g = fed.ask(FEEDBACK.constraint_value, clients).mean()
        sigma = FEEDBACK.switch(g - 0.05)
        v, _ = fed.ask(FEEDBACK.local_update, clients, sigma, wire=FEEDBACK.uplink)
        plainly = replace(FEEDBACK, uplink=fl.Identity())
        delta = fed.ask(plainly.local_update, clients, sigma)
        sent[draw.participants] += v
        kept[draw.participants] += delta
        state, _ = FEEDBACK.round(fl.Vectorized(problem), state, draw)
    close(sent + state.residual, kept, 1e-11)
    assert state.residual.abs().max() > 0


def test_the_virtual_iterate_moves_by_the_mean_direction(problem):
    sgm = replace(FEEDBACK, participants=20)
    path = steps(sgm, problem, 25)
    previous = sgm.init(problem)
    for state, info, _ in path:
        X, y, shares = problem.data
        moved = torch.zeros(30).double()
        for r in problem.rows:
            u = previous.w
            for _ in range(3):
                s = info["sigma"]
                d = (1 - s) * plain.gradient(u, X[r], y[r], shares[r], 0)
                d = d + s * plain.gradient(u, X[r], y[r], shares[r], 1)
                u = u - 0.3 * d
                moved = moved + d / 20
        old_iterate = previous.x - 0.3 * previous.residual.mean(0)
        new_iterate = state.x - 0.3 * state.residual.mean(0)
        close(new_iterate, old_iterate - 0.3 * moved)
        previous = state


def test_the_bits_of_a_round_by_hand(problem):
    *_, (_, info, _) = steps(FEEDBACK, problem, 1)
    assert info["bits_up"] == 10 * (32 + 3 * (32 + 5))  # g_j, and 3 of 30 with positions
    assert info["bits_down"] == 10 * 32 + 20 * 6 * (32 + 5)  # sigma to 10, 6 of 30 to all 20


@pytest.mark.parametrize(("mode", "k"), [(fl.Hard(), 0.5), (fl.Soft(200.0), 1.0)])
def test_reaches_the_known_constrained_optimum(mode, k):
    rng = torch.Generator().manual_seed(2)
    a = 3 + torch.randn(6, 4, generator=rng, dtype=torch.float64)
    b = torch.randn(6, 4, generator=rng, dtype=torch.float64)
    problem = quadratics(a, b, level=0.5)
    sgm = fl.FedSGM(
        lr=0.006,
        local_steps=2,
        participants=6,
        tolerance=0.0,
        switch=mode,
        uplink=fl.TopK(k),
        downlink=fl.TopK(k),
    )
    trace = fl.run(sgm, problem, rounds=800, evaluate_every=400)
    assert trace.metrics["distance"][0, 0] > 0.5
    assert trace.metrics["distance"][0, -1] < 0.05
    assert abs(trace.metrics["g"][0, -1]) < 0.03


@pytest.mark.parametrize("set_", [Ball(0.3), Box(0.05)], ids=["ball", "box"])
def test_projection_keeps_the_servers_model_inside(problem, set_):
    inside = replace(problem, set=set_)
    for state, *_ in steps(FEEDBACK, inside, 40):
        assert set_.contains(state.x)
        if isinstance(set_, Box):  # every coordinate of w is one of x or of the old w
            assert set_.contains(state.w)


def test_the_average_is_undefined_until_a_round_works_on_the_objective(problem):
    sgm = replace(BASE, tolerance=-10.0)
    state = steps(sgm, problem, 3)[-1][0]
    assert torch.isnan(sgm.output(state)).all()
