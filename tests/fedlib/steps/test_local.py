"""Local steps: Adam against torch's own, step by step, and whole rounds by hand on all engines."""

from dataclasses import replace
from functools import partial

import pytest
import torch

import fedlib as fl
from fedlib.core.describe import describe
from fedlib.problems import quadratics
from fedlib.solvers.min_norm import minimum_norm
from fedlib.steps.local import SGD, Adam
from tests.helpers.problems import objectives, three_objectives
from tests.helpers.rounds import walk

PLAIN = {"lr": 0.05, "local_steps": 3, "participants": 4}
WORK = {**PLAIN, "local": Adam()}
EXACT = fl.OneWay(fl.Exact())


def torch_adam(start, gradient, steps, **options):
    """The points after every step of torch's optimizer, which is told the gradients."""
    u = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([u], foreach=False, **options)
    path = []
    for step in range(steps):
        u.grad = gradient(u.detach(), step)
        optimizer.step()
        path.append(u.detach().clone())
    return path


@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.0, 0.5), (0.5, 0.0)])
def test_every_step_is_that_of_torch(dtype, close, betas):
    g = torch.Generator().manual_seed(0)
    start = torch.randn(7, generator=g).to(dtype)
    scale = (10.0 ** torch.arange(-4, 3)).to(dtype)  # gradients of very different sizes
    shift = torch.randn(20, 7, generator=g).to(dtype)

    def gradient(u, step):
        return scale * (u - shift[step])

    expected = torch_adam(start, gradient, 20, lr=0.03, betas=betas, eps=1e-8)
    for steps in range(1, 21):
        u = Adam(betas)(start, gradient, steps, 0.03)
        torch.testing.assert_close(u, expected[steps - 1], atol=close, rtol=close)
    assert (expected[-1] - start).abs().min() > 0.01


def end(problem, start, batches, lam, method, first_gradient=None):
    """Where a client ends: torch's Adam on the weighted quadratics, batch after batch."""
    centres = problem.data[0]
    gradients = [] if first_gradient is None else [lambda _: first_gradient]
    gradients += [partial(weighted_gradient, centres, rows, lam) for rows in batches]

    def gradient(u, step):
        return gradients[step](u)

    options = {"lr": method.lr, "betas": method.local.betas, "eps": method.local.eps}
    return torch_adam(start, gradient, method.local_steps, **options)[-1]


def weighted_gradient(centres, rows, lam, u):
    """The gradient of the weighted objectives on some rows."""
    return sum(lam[k] * (u - centres[rows, k].mean(0)) for k in range(len(lam)))


@pytest.mark.parametrize("shared_batch", [False, True])
def test_a_round_of_fedcmoo_by_hand(shared_batch):
    problem = three_objectives()
    work = {
        **PLAIN,
        "local": Adam(betas=(0.7, 0.9)),
        "server_lr": 1.3,
        "batch_size": 2,
    }
    method = fl.FedCMOO(**work, gram=EXACT, shared_batch=shared_batch)
    w = problem.w0
    centres = problem.data[0]
    count = 1 if shared_batch else 3  # batches of which the first gradients are made
    for _, draw, state, _ in walk(method, problem, 3, seed=5):
        ends = []
        for position, j in enumerate(draw.participants):
            batches = problem.rows[j][draw.batches[position]]
            later = batches[count:]
            assert len(later) == 2
            first_batches = batches[:count].expand(3, -1)
            H = torch.stack([w - centres[first_batches[k], k].mean(0) for k in range(3)])
            lam = state.weights
            ends.append(end(problem, w, later, lam, method, first_gradient=lam @ H))
        w = w + 1.3 * (sum(ends) / 4 - w)
        torch.testing.assert_close(state.w, w, atol=1e-12, rtol=0)


@pytest.mark.parametrize("batch_size", [None, 2])
def test_a_round_of_fsmgda_by_hand(batch_size):
    problem = three_objectives()
    method = fl.FSMGDA(**WORK, server_lr=0.7, batch_size=batch_size)
    ((_, draw, state, _),) = walk(method, problem, 1, seed=1)
    w = problem.w0
    deltas = torch.zeros(3, 5, dtype=torch.float64)
    for position, j in enumerate(draw.participants):
        for k in range(3):
            if batch_size is None:
                batches = problem.rows[j].expand(3, -1)
            else:
                batches = problem.rows[j][draw.batches[position]][3 * k : 3 * k + 3]
            moved = w - end(problem, w, batches, torch.eye(3)[k], method)
            deltas[k] += moved / (3 * 0.05) / 4
    lam = torch.as_tensor(minimum_norm((deltas @ deltas.T).numpy()))
    expected = w - 0.7 * 0.05 * 3 * lam @ deltas
    torch.testing.assert_close(state.w, expected, atol=1e-10, rtol=0)


def test_moments_start_anew_in_every_round():
    problem = objectives(tasks=1, clients=3, spread=0.2)
    method = fl.FedCMOO(
        lr=0.05,
        local_steps=1,
        participants=3,
        gram=fl.MeanOfGrams(),
        local=Adam(),
    )
    w = fl.run(method, problem, rounds=3, progress=False).state.w[0]
    u = problem.w0
    for _ in range(3):  # the first step of a fresh Adam is lr times the sign
        g = u - problem.data[0][problem.rows[:, 0], 0]
        u = u - 0.05 * (g / (g.abs() + 1e-8)).mean(0)
    torch.testing.assert_close(w, u, atol=1e-12, rtol=0)


def test_plain_steps_by_hand():
    u = SGD()(torch.tensor([1.0, 2.0]), lambda u, t: u * t, 3, 0.5)
    assert torch.equal(u, torch.tensor([0.0, 0.0]))  # times 1, 1/2, 0


def test_a_run_of_plain_steps_has_the_key_that_it_had_before_there_were_others():
    method = fl.FedAvg(lr=0.1, local_steps=2, participants=2)
    assert describe(method) == {
        "type": "FedAvg",
        "lr": 0.1,
        "local_steps": 2,
        "participants": 2,
        "batch_size": None,
    }
    assert describe(replace(method, local=SGD())) == describe(method)
    with_adam = describe(replace(method, local=Adam()))
    assert with_adam.pop("local") == {"type": "Adam", "betas": [0.9, 0.999], "eps": 1e-8}
    assert with_adam == describe(method)


@pytest.mark.parametrize("make_method", [fl.FedSGM, partial(fl.PenaltyFedAvg, rho=2.0)])
def test_with_a_constraint_the_first_step_is_that_of_adam_too(make_method):
    problem = quadratics(torch.tensor([[1.0, -3.0]] * 4), torch.zeros(4, 2), level=9.0)
    method = make_method(
        lr=0.05,
        local_steps=1,
        participants=4,
        tolerance=0.1,
        local=Adam(),
    )
    ((_, _, state, info),) = walk(method, problem, 1)
    assert info["sigma"] == 0  # the step is on the objective, |w - (1, -3)|^2 / 2
    moved = (state.w - problem.w0) / 0.05
    torch.testing.assert_close(moved, torch.tensor([1.0, -1.0]).to(moved), atol=1e-6, rtol=0)
