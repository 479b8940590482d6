"""Local steps: Adam against torch's own, step by step, and whole rounds by hand on all engines."""

from dataclasses import replace
from functools import partial

import pytest
import torch

import fedlib as fl
from fedlib.core.describe import describe
from fedlib.problems import quadratics
from fedlib.steps.local import SGD, Adam
from tests.helpers.expect import close
from tests.helpers.problems import objectives, three_objectives
from tests.helpers.randoms import numbers
from tests.helpers.rounds import walk

PROBLEM = three_objectives()
CENTRES = PROBLEM.data[0]
WORK = {
    "lr": 0.05,
    "local_steps": 3,
    "participants": 4,
    "batch_size": 2,
    "local": Adam(betas=(0.7, 0.9)),
}


def torch_adam(start, gradients, lr=0.05, betas=(0.7, 0.9)):
    """The points after every step of torch's optimizer, which is told the gradients."""
    u = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([u], lr=lr, betas=betas, foreach=False)
    for gradient in gradients:
        u.grad = gradient(u.detach())
        optimizer.step()
        yield u.detach().clone()


@pytest.mark.parametrize(
    ("dtype", "tol"),
    [(torch.float32, 1e-6), (torch.float64, 1e-12)],
)
@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.0, 0.5), (0.5, 0.0)])
def test_every_step_is_that_of_torch(dtype, tol, betas):
    start, *shift = numbers(21, 7).to(dtype)
    scale = (10.0 ** torch.arange(-4, 3)).to(dtype)  # gradients of very different sizes

    def gradient(u, step):
        return scale * (u - shift[step])

    gradients = [partial(gradient, step=step) for step in range(20)]
    expected = torch_adam(start, gradients, 0.03, betas)
    for steps, point in enumerate(expected, start=1):
        u = Adam(betas)(start, gradient, steps, 0.03)
        torch.testing.assert_close(u, point, atol=tol, rtol=tol)
    assert (point - start).abs().min() > 0.01


def weighted_gradient(u, rows, lam):
    """The gradient of the weighted objectives on some rows."""
    return sum(lam[k] * (u - CENTRES[rows, k].mean(0)) for k in range(3))


def client_batches(draw):
    """The rows of every participant's batches."""
    pairs = zip(draw.participants, draw.batches, strict=True)
    return [PROBLEM.rows[j][rows] for j, rows in pairs]


def end(w, lam, batches, first_gradient=None):
    """Where a client ends: torch's Adam on the weighted quadratics, batch after batch."""
    gradients = [partial(weighted_gradient, rows=rows, lam=lam) for rows in batches]
    if first_gradient is not None:
        gradients.insert(0, lambda _: first_gradient)
    *_, u = torch_adam(w, gradients)
    return u


@pytest.mark.parametrize(("shared_batch", "count"), [(False, 3), (True, 1)])
def test_rounds_of_fedcmoo_by_hand(shared_batch, count):
    """The first gradients are made of `count` batches."""
    method = fl.FedCMOO(
        **WORK,
        server_lr=1.3,
        gram=fl.OneWay(fl.Exact()),
        shared_batch=shared_batch,
    )
    w = PROBLEM.w0
    for _, draw, state, _ in walk(method, PROBLEM, 3, seed=5):
        ends = []
        for batches in client_batches(draw):
            assert len(batches) == count + 2
            first_batches = batches[:count].expand(3, -1)
            H = torch.stack([w - CENTRES[first_batches[k], k].mean(0) for k in range(3)])
            lam = state.weights
            ends.append(end(w, lam, batches[count:], lam @ H))
        w = w + 1.3 * (sum(ends) / 4 - w)
        close(state.w, w)


def test_moments_start_anew_in_every_round():
    problem = objectives(tasks=1, clients=3, spread=0.2)
    method = fl.FedCMOO(
        lr=0.05,
        local_steps=1,
        participants=3,
        gram=fl.MeanOfGrams(),
        local=Adam(),
    )
    u = problem.w0
    for _, _, state, _ in walk(method, problem, 3):
        # the first step of a fresh Adam is lr times the sign
        g = u - problem.data[0][problem.rows[:, 0], 0]
        u = u - 0.05 * (g / (g.abs() + 1e-8)).mean(0)
        close(state.w, u)


@pytest.mark.parametrize("make", [fl.FedSGM, partial(fl.PenaltyFedAvg, rho=2.0)])
def test_with_a_constraint_the_first_step_is_that_of_adam_too(make):
    problem = quadratics(torch.tensor([[1.0, -3.0]] * 4), torch.zeros(4, 2), level=9.0)
    method = make(
        lr=0.05,
        local_steps=1,
        participants=4,
        tolerance=0.1,
        local=Adam(),
    )
    ((_, _, state, info),) = walk(method, problem, 1)
    assert info["sigma"] == 0  # the step is on the objective, |w - (1, -3)|^2 / 2
    close(state.w, problem.w0 + 0.05 * torch.tensor([1.0, -1.0]), 1e-7)


def test_plain_steps_by_hand():
    u = SGD()(torch.tensor([1.0, 2.0]), lambda u, t: u * t, 3, 0.5)
    assert u.tolist() == [0.0, 0.0]  # times 1, 1/2, 0


def test_a_run_of_plain_steps_has_the_key_that_it_had_before_there_were_others():
    method = fl.FedAvg(lr=0.1, local_steps=2, participants=2)
    key = {
        "type": "FedAvg",
        "lr": 0.1,
        "local_steps": 2,
        "participants": 2,
        "batch_size": None,
    }
    assert describe(method) == key
    assert describe(replace(method, local=SGD())) == key
    local = {"type": "Adam", "betas": [0.9, 0.999], "eps": 1e-8}
    assert describe(replace(method, local=Adam())) == {**key, "local": local}
