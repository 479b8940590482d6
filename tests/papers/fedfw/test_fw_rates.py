"""Rates of Federated Frank-Wolfe: problems, their constants, oracles with errors."""

from functools import partial

import pytest
import torch
from torch.func import grad, jacrev

import fedlib as fl
from fedlib.algorithms import FedFW, NaiveFW
from fedlib.core.problem import Batch
from fedlib.steps import Fixed
from papers.fedfw.rates.data import tasks
from papers.fedfw.rates.oracles import InexactFW, NoisyFW, Towards
from papers.fedfw.rates.problems import (
    SIGMOID,
    convex_problem,
    convex_reference,
    nonconvex_problem,
    nonconvex_reference,
    pair,
)
from tests.helpers.expect import close
from tests.helpers.problems import batches
from tests.helpers.randoms import normal

SMALL = {"norm": "l2", "rows": 120}


def random_points(problem, count, seed=0):
    """Points of the set, some on its boundary."""
    raw = 3 * normal(count, problem.dim, seed=seed)
    return [problem.set.project(x) for x in raw]


@pytest.mark.parametrize("schedule", [fl.Convex(), Fixed(0.1)])
def test_the_naive_scheme_goes_to_zero_and_fedfw_does_not(schedule):
    naive = fl.run(
        NaiveFW(schedule=schedule),
        pair,
        rounds=200,
        seeds=(0, 1, 2),
        progress=False,
    )
    assert naive.metrics["x"][:, -1] == pytest.approx(0, abs=1e-6)
    assert naive.metrics["x"][1, 0] != naive.metrics["x"][2, 0]
    ours = fl.run(FedFW(1.0), pair, rounds=200, seeds=(0, 1), progress=False)
    assert (ours.metrics["x"][:, -1] > 0.5).all()
    expected = (ours.metrics["x"] - 1) ** 2
    assert ours.metrics["excess"] == pytest.approx(expected)


def test_the_least_value_is_the_least_and_is_certified():
    problem = convex_problem(0, **SMALL)
    for x in random_points(problem, 5):
        assert problem.metrics(x, problem)["excess"] > 0
    best = problem.heldout[1]
    metrics = problem.metrics(best, problem)
    assert 0 <= float(metrics["fw_gap"]) <= 1e-8
    assert float(metrics["excess"]) == pytest.approx(0, abs=1e-12)
    assert bool(problem.set.contains(best))


@pytest.mark.parametrize("make", [convex_problem, nonconvex_problem, convex_reference])
def test_the_problems_of_all_seeds_have_equal_shapes(make):
    shapes = set()
    for seed in range(3):
        problem = make(seed, **SMALL)
        assert sum(problem.sizes) == SMALL["rows"]
        tensors = (*problem.data, *problem.heldout, problem.w0)
        shapes.add(tuple(x.shape for x in tensors))
    assert len(shapes) == 1


def client_slopes(problem, w):
    """The gradients of all clients by autograd."""
    slopes = [grad(lambda u, b=batch: problem.losses(u, b)[0])(w) for batch in batches(problem)]
    return torch.stack(slopes)


def test_the_constants_are_those_of_autograd():
    problem = convex_problem(1, **SMALL)
    reference = convex_reference(1, **SMALL)
    known = reference.metrics(problem.w0, reference)
    slopes = client_slopes(problem, problem.heldout[1])
    expected = float(slopes.norm() / 10)
    assert float(known["slope"]) == pytest.approx(expected)
    apart = (slopes - slopes.mean(0)).norm() / 10
    assert float(known["dual"]) == pytest.approx(float(apart))
    at_start = client_slopes(problem, problem.w0)
    expected = float(at_start.norm() / 10)
    assert float(known["first"]) == pytest.approx(expected)
    client = batches(problem)[0]
    X, y = client.data
    weight = torch.ones(1, dtype=torch.float64)
    for point in random_points(problem, 2):
        rows = []
        for k in torch.nonzero(client.weight > 0).flatten().tolist():
            row = Batch((X[k : k + 1], y[k : k + 1]), weight)
            rows.append(problem.gradient(point, row, weight))
        rows = torch.stack(rows)
        spread = (rows - rows.mean(0)).square().sum(1).mean()
        assert float(spread) <= float(known["noise"])


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
    assert float(known["spread"]) == pytest.approx(0.5)


def test_the_sigmoids_curvature_is_at_most_its_constant():
    z = torch.linspace(-8, 8, 4001, dtype=torch.float64)
    s = torch.sigmoid(z)
    assert float((s * (1 - s) * (1 - 2 * s)).abs().max()) == pytest.approx(SIGMOID, rel=1e-5)


def test_the_closed_gradient_of_the_sigmoid_loss():
    problem = nonconvex_problem(2, **SMALL)
    (batch, *_) = batches(problem)
    (w, *_) = random_points(problem, 1)
    ours = problem.gradient(w, batch, torch.tensor([2.0]).double())
    expected = 2 * grad(lambda u: problem.losses(u, batch)[0])(w)
    torch.testing.assert_close(ours, expected)


def test_few_steps_of_lanczos_change_the_oracle_and_not_the_measure():
    rough = tasks(0, steps=1)
    exact = tasks(0, steps=40)
    w = exact.set.lmo(normal(exact.dim))
    assert float(rough.metrics(w, rough)["fw_gap"]) == float(exact.metrics(w, exact)["fw_gap"])
    g = fl.metrics.mean_gradient(rough, w)
    assert float(g @ rough.set.lmo(g)) > float(g @ exact.set.lmo(g))


@pytest.mark.parametrize(("quality", "slip"), [(1.0, 0.0), (0.4, 0.0), (1.0, 0.3), (0.5, 0.3)])
def test_a_wrong_oracle_attains_what_it_may(quality, slip):
    x = torch.tensor([0.5, -0.2, 0.1])
    g = torch.tensor([1.0, 2.0, -3.0])
    inner = fl.L1Ball(1.0)
    wrong = Towards(inner, x, quality, slip)
    gap = g @ (x - inner.lmo(g))
    s = wrong.lmo(g)
    expected = float(quality * gap - slip)
    assert float(g @ (x - s)) == pytest.approx(expected, rel=1e-5)
    assert bool(wrong.contains(s))
    far = Towards(inner, x, quality, 100.0)
    torch.testing.assert_close(far.lmo(g), x)


def test_an_oracle_without_error_gives_fedfw_and_a_share_slows_the_step():
    problem = nonconvex_problem(0, **SMALL)
    short = {"rounds": 3, "progress": False}
    plain = fl.run(FedFW(0.1), problem, **short)
    exact = fl.run(InexactFW(0.1), problem, **short)
    close(plain.state.w, exact.state.w, 1e-12)
    step = Fixed(0.4)
    half = fl.run(InexactFW(0.1, schedule=step, quality=0.5), problem, **short)
    slow = fl.run(FedFW(0.1, schedule=Fixed(0.2)), problem, **short)
    close(half.state.w, slow.state.w, 1e-12)
    never = fl.run(InexactFW(0.1, slip=1e9), problem, **short)
    torch.testing.assert_close(never.state.w[0], problem.w0)


def test_a_falling_error_is_the_step_size_times_the_other():
    problem = nonconvex_problem(0, **SMALL)

    def model(slip, fall):
        method = InexactFW(0.1, schedule=Fixed(0.25), slip=slip, fall=fall)
        return fl.run(method, problem, rounds=2, progress=False).state.w

    close(model(0.04, 0.0), model(0.16, 1.0), 1e-12)
    assert not torch.allclose(model(0.04, 0.0), model(0.16, 0.0))


@pytest.mark.parametrize(
    "bad", [{"quality": 0.0}, {"quality": 1.1}, {"slip": -1.0}, {"fall": -1.0}]
)
def test_wrong_errors_are_refused(bad):
    with pytest.raises(ValueError, match=f"InexactFW: {next(iter(bad))} must"):
        InexactFW(0.1, **bad)


def test_a_question_without_noise_gives_fedfw_and_noise_misses_something():
    def trained(method):
        return fl.run(method, partial(convex_problem, **SMALL), rounds=6, progress=False)

    plain = trained(FedFW(0.1))
    silent = trained(NoisyFW(0.1, noise=0.0))
    close(silent.metrics["excess"], plain.metrics["excess"])
    assert silent.info["gap"] == pytest.approx(0, abs=1e-12)
    noisy = trained(NoisyFW(0.1, noise=0.1))
    assert (noisy.info["gap"] > 0).all()
    assert (noisy.metrics["excess"][:, 1:] != plain.metrics["excess"][:, 1:]).all()
