"""Rates of Federated Frank-Wolfe: problems, their constants, oracles with errors."""

from functools import partial

import pytest
import torch
from torch.func import grad, jacrev
from torch.testing import assert_close

import fedlib as fl
from fedlib.algorithms import FedFW
from fedlib.core.problem import Batch
from fedlib.steps import Fixed
from papers.fedfw.rates.oracles import InexactFW, NoisyFW, Towards
from papers.fedfw.rates.problems import (
    convex_problem,
    convex_reference,
    nonconvex_problem,
    nonconvex_reference,
)
from tests.helpers.expect import close, near
from tests.helpers.problems import batches
from tests.helpers.randoms import normal

SMALL = {"norm": "l2", "rows": 120}


def random_points(problem, count, seed=0):
    """Points of the set, some on its boundary."""
    raw = 3 * normal(count, problem.dim, seed=seed)
    return [problem.set.project(x) for x in raw]


def test_the_least_value_is_the_least_and_is_certified():
    problem = convex_problem(0, **SMALL)
    for x in random_points(problem, 5):
        assert problem.metrics(x, problem)["excess"] > 0
    best = problem.heldout[1]
    metrics = problem.metrics(best, problem)
    assert 0 <= float(metrics["fw_gap"]) <= 1e-8
    near(float(metrics["excess"]), 0, abs=1e-12)
    assert bool(problem.set.contains(best))


def client_slopes(problem, w):
    """The gradients of all clients by autograd."""
    slopes = [grad(lambda u, b=batch: problem.losses(u, b)[0])(w) for batch in batches(problem)]
    return torch.stack(slopes)


def test_the_constants_are_those_of_autograd():
    problem = convex_problem(1, **SMALL)
    reference = convex_reference(1, **SMALL)
    known = reference.metrics(problem.w0, reference)
    slopes = client_slopes(problem, problem.heldout[1])
    near(known["slope"], float(slopes.norm() / 10))
    apart = slopes - slopes.mean(0)
    near(known["dual"], float(apart.norm() / 10))
    at_start = client_slopes(problem, problem.w0)
    near(known["first"], float(at_start.norm() / 10))


def test_no_client_bends_more_than_its_smoothness_constant():
    problem = nonconvex_problem(0, **SMALL)
    reference = nonconvex_reference(0, **SMALL)
    known = reference.metrics(problem.w0, reference)
    limit = float(known["smooth"]) * (1 + 1e-9)
    smallest = []
    for point in [problem.w0, *random_points(problem, 2)]:
        for batch in batches(problem):
            H = jacrev(grad(lambda w, b=batch: problem.losses(w, b)[0]))(point)
            values = torch.linalg.eigvalsh(H)
            smallest.append(float(values[0]))
            assert float(values.abs().max()) <= limit
    assert min(smallest) < -1e-3  # not convex
    near(float(known["spread"]), 0.5)


def test_the_closed_gradient_of_the_sigmoid_loss():
    problem = nonconvex_problem(2, **SMALL)
    (batch, *_) = batches(problem)
    (w, *_) = random_points(problem, 1)
    ours = problem.gradient(w, batch, torch.tensor([2.0]).double())
    expected = 2 * grad(lambda u: problem.losses(u, batch)[0])(w)
    assert_close(ours, expected)


@pytest.mark.parametrize(("quality", "slip"), [(1.0, 0.0), (0.4, 0.0), (1.0, 0.3), (0.5, 0.3)])
def test_a_wrong_oracle_attains_what_it_may(quality, slip):
    x = torch.tensor([0.5, -0.2, 0.1])
    g = torch.tensor([1.0, 2.0, -3.0])
    inner = fl.L1Ball(1.0)
    wrong = Towards(inner, x, quality, slip)
    gap = g @ (x - inner.lmo(g))
    s = wrong.lmo(g)
    expected = float(quality * gap - slip)
    near(float(g @ (x - s)), expected, rel=1e-5)
    assert bool(wrong.contains(s))
    far = Towards(inner, x, quality, 100.0)
    assert_close(far.lmo(g), x)


def test_an_oracle_without_error_gives_fedfw_and_a_share_slows_the_step():
    problem = nonconvex_problem(0, **SMALL)
    short = {"rounds": 3, "progress": False}
    plain = fl.run(FedFW(0.1), problem, **short)
    exact = fl.run(InexactFW(0.1), problem, **short)
    close(plain.state.w, exact.state.w, 1e-12)
    step = Fixed(0.4)
    half = fl.run(
        InexactFW(0.1, schedule=step, quality=0.5),
        problem,
        **short,
    )
    slow = fl.run(FedFW(0.1, schedule=Fixed(0.2)), problem, **short)
    close(half.state.w, slow.state.w, 1e-12)
    never = fl.run(InexactFW(0.1, slip=1e9), problem, **short)
    assert_close(never.state.w[0], problem.w0)


def test_a_falling_error_is_the_step_size_times_the_other():
    problem = nonconvex_problem(0, **SMALL)

    def model(slip, fall):
        method = InexactFW(
            0.1,
            schedule=Fixed(0.25),
            slip=slip,
            fall=fall,
        )
        return fl.run(
            method,
            problem,
            rounds=2,
            progress=False,
        ).state.w

    close(model(0.04, 0.0), model(0.16, 1.0), 1e-12)
    assert not torch.allclose(model(0.04, 0.0), model(0.16, 0.0))


def test_a_question_without_noise_gives_fedfw_and_noise_misses_something():
    def trained(method):
        return fl.run(
            method,
            partial(convex_problem, **SMALL),
            rounds=6,
            progress=False,
        )

    plain = trained(FedFW(0.1))
    silent = trained(NoisyFW(0.1, noise=0.0))
    close(silent.metrics["excess"], plain.metrics["excess"])
    near(silent.info["gap"], 0, abs=1e-12)
    noisy = trained(NoisyFW(0.1, noise=0.1))
    assert (noisy.info["gap"] > 0).all()
    assert (noisy.metrics["excess"][:, 1:] != plain.metrics["excess"][:, 1:]).all()


def test_the_noise_of_single_rows_is_at_most_its_constant():
    problem = convex_problem(1, **SMALL)
    reference = convex_reference(1, **SMALL)
    known = reference.metrics(problem.w0, reference)
    client = batches(problem)[0]
    real = torch.nonzero(client.weight > 0).flatten()
    weight = torch.ones(1, dtype=torch.float64)
    for point in random_points(problem, 2):
        slopes = []
        for k in real.tolist():
            row = Batch(tuple(x[k : k + 1] for x in client.data), weight)
            slopes.append(problem.gradient(point, row, weight))
        slopes = torch.stack(slopes)
        variance = (slopes - slopes.mean(0)).square().sum(1).mean()
        assert float(variance) <= float(known["noise"])
