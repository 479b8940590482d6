"""Rates of Federated Frank-Wolfe: problems, their constants, oracles with errors."""

import pytest
import torch
from torch.func import grad, jacrev

import fedlib as fl
from fedlib.algorithms import FedFW, NaiveFW
from fedlib.core.problem import Batch
from fedlib.steps import Fixed
from papers.fedfw.rates.data import tasks
from papers.fedfw.rates.oracles import InexactFW, Towards
from papers.fedfw.rates.problems import (
    SIGMOID,
    convex_problem,
    convex_reference,
    nonconvex_problem,
    nonconvex_reference,
    pair,
)
from papers.fedfw.rates.quantities import ENTRIES, MOST
from tests.helpers.problems import batches
from tests.helpers.randoms import normal

SMALL = {"norm": "l2", "rows": 120}


def random_points(problem, count, seed=0):
    """Points of the set, some on its boundary."""
    raw = 3 * normal(count, problem.dim, seed=seed)
    return [problem.set.project(x) for x in raw]


@pytest.mark.parametrize("schedule", [fl.Convex(), Fixed(0.1)])
def test_the_naive_scheme_goes_to_zero_and_fedfw_does_not(schedule):
    naive = fl.run(NaiveFW(schedule=schedule), pair, rounds=200, seeds=(0, 1, 2), progress=False)
    assert naive.metrics["x"][:, -1] == pytest.approx(0, abs=1e-6)
    assert naive.metrics["x"][1, 0] != naive.metrics["x"][2, 0]
    ours = fl.run(FedFW(1.0), pair, rounds=200, seeds=(0, 1), progress=False)
    assert (ours.metrics["x"][:, -1] > 0.5).all()
    assert ours.metrics["excess"] == pytest.approx((ours.metrics["x"] - 1) ** 2)


def test_the_least_value_is_the_least_and_is_certified():
    problem = convex_problem(0, **SMALL)
    assert all(problem.metrics(x, problem)["excess"] > 0 for x in random_points(problem, 5))
    best = problem.heldout[1]
    found = problem.metrics(best, problem)
    assert 0 <= float(found["fw_gap"]) <= 1e-8
    assert float(found["excess"]) == pytest.approx(0, abs=1e-12)
    assert bool(problem.set.contains(best))


def test_the_problems_of_all_seeds_have_equal_shapes():
    for maker in (convex_problem, nonconvex_problem, convex_reference):
        shapes = set()
        for seed in range(4):
            made = maker(seed, **SMALL)
            assert sum(made.sizes) == SMALL["rows"]
            shapes.add(tuple(x.shape for x in (*made.data, *made.heldout, made.w0)))
        assert len(shapes) == 1


def test_the_constants_are_those_of_autograd():
    problem = convex_problem(1, **SMALL)
    made = convex_reference(1, **SMALL)
    known = made.metrics(problem.w0, made)
    best = problem.heldout[1]
    parts = batches(problem)
    gradients = torch.stack([grad(lambda w, b=b: problem.losses(w, b)[0])(best) for b in parts])
    assert float(known["slope"]) == pytest.approx(float(gradients.norm() / 10))
    apart = (gradients - gradients.mean(0)).norm() / 10
    assert float(known["dual"]) == pytest.approx(float(apart))
    start = torch.stack([grad(lambda w, b=b: problem.losses(w, b)[0])(problem.w0) for b in parts])
    assert float(known["first"]) == pytest.approx(float(start.norm() / 10))
    X, y = parts[0].data
    for point in random_points(problem, 2):
        rows = torch.stack(
            [
                problem.gradient(point, Batch((X[k : k + 1], y[k : k + 1]), one), one)
                for k, one in enumerate(torch.ones(len(y), 1).double())
            ]
        )
        real = parts[0].weight > 0
        spread = (rows[real] - rows[real].mean(0)).square().sum(1).mean()
        assert float(spread) <= float(known["noise"])


def test_no_client_bends_more_than_its_smoothness_constant():
    problem = nonconvex_problem(0, **SMALL)
    made = nonconvex_reference(0, **SMALL)
    known = made.metrics(problem.w0, made)
    least = []
    for point in [problem.w0, *random_points(problem, 3)]:
        for batch in batches(problem):
            H = jacrev(grad(lambda w, b=batch: problem.losses(w, b)[0]))(point)
            values = torch.linalg.eigvalsh(H)
            least.append(float(values[0]))
            assert float(values.abs().max()) <= float(known["smooth"]) * (1 + 1e-9)
    assert min(least) < -1e-3  # not convex
    assert float(known["spread"]) == pytest.approx(0.5)


def test_the_sigmoids_curvature_is_at_most_its_constant():
    z = torch.linspace(-8, 8, 4001, dtype=torch.float64)
    s = torch.sigmoid(z)
    assert float((s * (1 - s) * (1 - 2 * s)).abs().max()) == pytest.approx(SIGMOID, rel=1e-5)


def test_the_closed_gradient_of_the_sigmoid_loss():
    problem = nonconvex_problem(2, **SMALL)
    (batch, *_), (w, *_) = batches(problem), random_points(problem, 1)
    ours = problem.gradient(w, batch, torch.tensor([2.0]).double())
    torch.testing.assert_close(ours, 2 * grad(lambda u: problem.losses(u, batch)[0])(w))


def test_few_steps_of_lanczos_change_the_oracle_and_not_the_measure():
    few, many = tasks(0, steps=1), tasks(0, steps=40)
    w = many.set.lmo(torch.randn(many.dim, generator=torch.Generator().manual_seed(0)).double())
    assert float(few.metrics(w, few)["fw_gap"]) == float(many.metrics(w, many)["fw_gap"])
    g = fl.metrics.mean_gradient(few, w)
    assert float(g @ few.set.lmo(g)) > float(g @ many.set.lmo(g))


@pytest.mark.parametrize(("quality", "slip"), [(1.0, 0.0), (0.4, 0.0), (1.0, 0.3), (0.5, 0.3)])
def test_a_wrong_oracle_attains_what_it_may(quality, slip):
    x, g = torch.tensor([0.5, -0.2, 0.1]), torch.tensor([1.0, 2.0, -3.0])
    inner = fl.L1Ball(1.0)
    wrong = Towards(inner, x, quality, slip)
    gap = g @ (x - inner.lmo(g))
    s = wrong.lmo(g)
    assert float(g @ (x - s)) == pytest.approx(float(quality * gap - slip), rel=1e-5)
    assert bool(wrong.contains(s))
    far = Towards(inner, x, quality, 100.0)
    torch.testing.assert_close(far.lmo(g), x)


def test_an_oracle_without_error_gives_fedfw_and_a_share_slows_the_step():
    problem = nonconvex_problem(0, **SMALL)
    first = {"rounds": 3, "progress": False}
    plain, exact = (fl.run(a, problem, **first) for a in (FedFW(0.1), InexactFW(0.1)))
    torch.testing.assert_close(plain.state.w, exact.state.w, atol=1e-12, rtol=0)
    step = Fixed(0.4)
    half = fl.run(InexactFW(0.1, schedule=step, quality=0.5), problem, **first)
    slow = fl.run(FedFW(0.1, schedule=Fixed(0.2)), problem, **first)
    torch.testing.assert_close(half.state.w, slow.state.w, atol=1e-12, rtol=0)
    never = fl.run(InexactFW(0.1, slip=1e9), problem, **first)
    torch.testing.assert_close(never.state.w[0], problem.w0)


def test_a_falling_error_is_the_step_size_times_the_other():
    problem = nonconvex_problem(0, **SMALL)
    runs = [
        fl.run(InexactFW(0.1, schedule=Fixed(0.25), slip=a, fall=b), problem, rounds=2,
               progress=False).state.w
        for a, b in ((0.04, 0.0), (0.16, 1.0), (0.16, 0.0))
    ]  # fmt: skip
    torch.testing.assert_close(runs[0], runs[1], atol=1e-12, rtol=0)
    assert not torch.allclose(runs[0], runs[2])


@pytest.mark.parametrize(
    "bad", [{"quality": 0.0}, {"quality": 1.1}, {"slip": -1.0}, {"fall": -1.0}]
)
def test_wrong_errors_are_refused(bad):
    with pytest.raises(ValueError, match=f"InexactFW: {next(iter(bad))} must"):
        InexactFW(0.1, **bad)


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_no_model_exceeds_the_most_that_a_set_allows(norm):
    convex, bumpy = (make(0, norm=norm, rows=120) for make in (convex_problem, nonconvex_problem))
    worst = max(float(convex.metrics(x, convex)["excess"]) for x in corners(convex))
    assert 1 < worst < MOST["convex"][norm]
    widest = max(float(bumpy.metrics(x, bumpy)["fw_gap"]) for x in corners(bumpy))
    assert 0.1 < widest < MOST["nonconvex"][norm]
    with_bias = torch.cat([bumpy.data[0], torch.ones_like(bumpy.data[0][:, :1])], 1)
    assert with_bias.shape[1] == ENTRIES
    assert float(with_bias.abs().max()) <= 1
    assert float(convex.data[0].abs().max()) <= 1


def corners(problem):
    """Where the set's oracle sends gradients of single clients and random directions."""
    rng = torch.Generator().manual_seed(1)
    ways = [torch.randn(problem.dim, generator=rng, dtype=torch.float64) for _ in range(20)]
    ways += [-grad(lambda w, b=b: problem.losses(w, b)[0])(problem.w0) for b in batches(problem)]
    return [problem.set.lmo(g) for g in ways]
