"""Rates of Federated Frank-Wolfe: problems, their constants, oracles with errors."""

import pytest
import torch
from torch.func import jacrev
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
from tests.helpers.problems import batches, double, slope_of
from tests.helpers.randoms import normal
from tests.helpers.rounds import final_model

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
    unit = torch.ones(1, dtype=torch.float64)
    return torch.stack([slope_of(problem, w, batch, unit) for batch in batches(problem)])


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
    unit = torch.ones(1, dtype=torch.float64)
    curvatures = []
    for point in [problem.w0, *random_points(problem, 2)]:
        for batch in batches(problem):
            hessian = jacrev(lambda w, b=batch: slope_of(problem, w, b, unit))(point)
            curvatures.append(torch.linalg.eigvalsh(hessian))
    curvatures = torch.stack(curvatures)
    assert float(curvatures.abs().max()) <= float(known["smooth"]) * (1 + 1e-9)
    assert float(curvatures.min()) < -1e-3  # not convex
    near(float(known["spread"]), 0.5)


def test_the_closed_gradient_of_the_sigmoid_loss():
    problem = nonconvex_problem(2, **SMALL)
    batch = batches(problem)[0]
    (w,) = random_points(problem, 1)
    weights = double(2.0)
    gradient = problem.gradient(w, batch, weights)
    assert_close(gradient, slope_of(problem, w, batch, weights))


@pytest.mark.parametrize("quality", [1.0, 0.4])
@pytest.mark.parametrize("slip", [0.0, 0.3])
def test_a_wrong_oracle_attains_what_it_may(quality, slip):
    x = torch.tensor([0.5, -0.2, 0.1])
    g = torch.tensor([1.0, 2.0, -3.0])
    ball = fl.L1Ball(1.0)
    wrong = Towards(ball, x, quality, slip)
    gap = g @ (x - ball.lmo(g))
    s = wrong.lmo(g)
    near(float(g @ (x - s)), float(quality * gap - slip), rel=1e-5)
    assert bool(wrong.contains(s))


def test_a_large_slip_leaves_the_model_where_it_is():
    x = torch.tensor([0.5, -0.2, 0.1])
    wrong = Towards(fl.L1Ball(1.0), x, 1.0, 100.0)
    assert_close(wrong.lmo(torch.ones(3)), x)


@pytest.mark.parametrize(
    ("inexact", "exact"),
    [
        (InexactFW(0.1), FedFW(0.1)),
        (InexactFW(0.1, schedule=Fixed(0.4), quality=0.5), FedFW(0.1, schedule=Fixed(0.2))),
        (
            InexactFW(0.1, schedule=Fixed(0.25), slip=0.04),
            InexactFW(0.1, schedule=Fixed(0.25), slip=0.16, fall=1.0),
        ),
    ],
    ids=["no error", "a share slows the step", "a falling error is scaled by the step"],
)
def test_errors_of_an_oracle_that_are_the_same(inexact, exact):
    problem = nonconvex_problem(0, **SMALL)
    model = final_model(inexact, problem, 3)
    close(model, final_model(exact, problem, 3), 1e-12)
    assert (model - problem.w0).abs().max() > 1e-3


def test_a_question_without_noise_gives_fedfw_and_noise_misses_something():
    def trained(method):
        problem = convex_problem(0, **SMALL)
        return fl.run(method, problem, rounds=6, progress=False)

    plain = trained(FedFW(0.1))
    silent = trained(NoisyFW(0.1, noise=0.0))
    close(silent.metrics["excess"], plain.metrics["excess"])
    near(silent.info["gap"], 0, abs=1e-12)
    noisy = trained(NoisyFW(0.1, noise=0.1))
    assert (noisy.info["gap"] > 0).all()
    later = noisy.metrics["excess"] - plain.metrics["excess"]
    assert (later[:, 1:] != 0).all()


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
