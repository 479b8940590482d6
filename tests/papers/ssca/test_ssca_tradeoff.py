"""SSCA's norm against cost and Theorem 5: gradients, numbers by hand, rules both ways."""

import numpy as np
import pytest
import torch
from torch.func import grad

import fedlib as fl
from fedlib.core import Trace
from fedlib.core.sampling import seeded
from papers.kit.numbers import Number
from papers.ssca.long.problem import one_constraint
from papers.ssca.tradeoff import C6, C9, LEVELS, RIDGES, STUDY
from papers.ssca.tradeoff.numbers import FIGURES, derive, relative_gradient, sweep
from papers.ssca.tradeoff.theorem import STEPS, theorem_problem
from tests.helpers.planted import drawn

FULL = STUDY.resolve("full")
SMALL = {"pictures": 40, "clients": 4, "hidden": 5}


def test_the_gradients_parts_are_those_of_autograd():
    problem = theorem_problem(1, **SMALL)
    w = problem.w0 + 0.3 * torch.randn(problem.dim, generator=seeded(1, "split")).double()
    found = problem.metrics(w, problem)
    g = grad(lambda u: problem.mean_losses(u)[0])(w)
    assert float(found["cost"]) == pytest.approx(float(problem.mean_losses(w)[0]))
    assert float(found["slope"]) == pytest.approx(float(g.norm()))
    for ridge in (0.0, 0.02, 3.0):
        whole = torch.hypot(found["across"], found["along"] + 2 * ridge * found["norm"].sqrt())
        assert float(whole) == pytest.approx(float((g + 2 * ridge * w).norm()), rel=1e-9)


def test_solving_with_the_constraint_makes_the_ridges_gradient_small():
    problem = theorem_problem(0, **SMALL)
    method = one_constraint(100, 0.9, **STEPS)
    trace = fl.run(method, problem, rounds=200, evaluate_every=20, progress=False)
    _, gradient = relative_gradient(trace)
    assert gradient[0, -1] < 0.1 < gradient[0, 0]
    assert trace.metrics["cost"][0, -1] == pytest.approx(0.9, abs=0.01)


# Numbers


def swept(cost, norm, accuracy, seeds=(0, 1)):
    """A run of Figure 4 with these final values for all seeds, but for small differences."""
    ends = {"cost": cost, "norm": norm, "accuracy": accuracy}
    away = 1 + 1e-3 * np.arange(len(seeds))
    metrics = {k: np.stack([np.full(len(seeds), 9.0), v * away], 1) for k, v in ends.items()}
    return Trace(metrics, {}, np.array([0, 100]), seeds, {"problem": {"rows": 60_000}})


def path(share, nu=50.0, level=0.6, seeds=(0, 1)):
    """A run of Theorem 5 whose gradient of (27) is `share` of that of F from the start on."""
    rounds, many = np.arange(0, 3001, 20), len(seeds)
    flat = np.ones((many, len(rounds)))
    metrics = {"cost": level * flat, "norm": 25 * flat, "slope": 2 * flat}
    metrics |= {"across": 2 * share * flat, "along": -2 * 5 / nu * flat}
    return Trace(metrics, {"nu": np.full((many, 3000), nu)}, rounds, seeds, {"problem": {}})


def whole(norm=lambda cost: 20 / cost, excess=0.0, accuracy=lambda u: 1 - u / 10, **theorem):
    """All runs of the full profile, two seeds."""
    traces = {}
    for split in ("samples", "features"):
        for i, x in enumerate(RIDGES):
            cost = 0.25 + 0.15 * i
            traces[f"{split}_ssca_ridge{x:g}"] = swept(cost, norm(cost), 0.9)
        for u in LEVELS:
            cost = u * (1 + excess / 100)
            traces[f"{split}_limit_U{u:g}"] = swept(cost, norm(cost), accuracy(u))
    for u in FULL["theorem_levels"]:
        traces[f"theorem_U{u:g}"] = path(**{"share": 0.05, **theorem})
    return traces


def numbers(**changes):
    return derive(whole(**changes), {**FULL, "seeds": (0, 1)})


def test_numbers_by_hand():
    n = numbers(excess=5.0)
    assert n["samples_limit_U0.4.cost"].per_seed == pytest.approx((0.42, 0.42042))
    assert n["samples_limit_U0.4.excess"].per_seed == pytest.approx((5.0, 5.105))
    assert n["features_ssca.order"].value == -1
    assert n["features_limit.accuracy_order"].value == -1
    assert n["theorem_U0.3.gradient"].value == pytest.approx(0.05)
    assert n["theorem_U0.3.half_gradient"].value == pytest.approx(0.05)
    assert n["theorem_U0.6.nu"].value == 50


def test_the_gradient_takes_the_multiplier_of_its_own_round():
    trace = path(share=0.0)
    trace.info["nu"][0, :39] = 25.0  # twice the ridge up to round 39
    rounds, gradient = relative_gradient(trace)
    assert rounds[0] == 20
    assert gradient[0, :2] == pytest.approx([2 * 5 / 50 / 2, 0])
    assert gradient[1] == pytest.approx(0)


def test_the_runs_of_a_curve_come_in_order():
    assert list(sweep(whole(), "samples", "ssca")) == sorted(RIDGES)
    assert list(sweep(whole(), "features", "limit")) == list(LEVELS)


# Rules

RISING = {"norm": lambda cost: 20 * cost}
CLIMBING = {"accuracy": lambda u: u / 2}


@pytest.mark.parametrize(
    ("rule", "changes", "verdict", "named"),
    [
        (C6, {"excess": 8.0}, "reproduced", ""),
        (C6, RISING, "mixed", "squared norm and the cost is at most -0.9"),
        (C6, {"excess": 11.0}, "mixed", "within 10 % of U for every U"),
        (C6, {"excess": -11.0}, "mixed", "within 10 % of U for every U"),
        (C6, CLIMBING, "mixed", "U and the accuracy is at most -0.9"),
        (C6, {**RISING, "excess": 20.0, **CLIMBING}, "not reproduced", "U and the accuracy"),
        (C9, {}, "reproduced", ""),
        (C9, {"share": 0.11}, "not reproduced", "(27) is at most a tenth of that of F"),
    ],
)
def test_every_primary_part_can_fail(rule, changes, verdict, named):
    found = rule(numbers(**changes))
    assert found.verdict == verdict
    assert named in found.reason


@pytest.mark.parametrize(
    ("rule", "key", "number", "verdict"),
    [
        (C6, "samples_ssca.order", Number(-0.943, -0.943, -0.943, (-0.943,)), "reproduced"),
        (C6, "samples_ssca.order", Number(-0.886, -0.886, -0.886, (-0.886,)), "mixed"),
        (C6, "features_limit.order", Number(-0.93, -0.95, -0.88, (-0.93,)), "mixed"),
        (C9, "theorem_U0.3.gradient", Number(0.09, 0.07, 0.11, (0.09,)), "mixed"),
        (C9, "theorem_U0.6.gradient", Number(0.2, 0.19, 0.21, (0.2,)), "mixed"),
    ],
)
def test_one_swap_of_neighbours_is_allowed_and_intervals_count(rule, key, number, verdict):
    assert rule({**numbers(), key: number}).verdict == verdict


# The study


def test_a_shortened_sweep_still_gives_numbers_and_figures():
    p = STUDY.resolve("full", seeds=[0, 1], ridges=[1e-3], levels=[0.4], theorem_levels=[0.6])
    some = {n: t for n, t in whole().items() if n in STUDY.specs(p)}
    assert len(some) == 5
    n = derive(some, p)
    assert "samples_ssca.order" not in n
    for make in FIGURES.values():
        assert all(ax.lines for ax in drawn(make, some))
