"""The arena's problems in their forms, the optimum, and what the methods are charged for."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

import fedlib as fl
from fedlib import data
from fedlib.core.problem import Batch
from papers.arena import STUDY
from papers.arena import methods as arena_units
from papers.arena.methods import METHODS, applies, form_of, grid, units
from papers.arena.problems import BATCHES, LEVELS, NAMES, SETS, arena_problem
from papers.arena.reference import doubled, residual, slope, solved
from papers.arena.runs import specs
from tests.helpers.expect import near
from tests.helpers.problems import batches, double, slope_of
from tests.helpers.randoms import normal

STAND_IN = 2000
E = 3  # local steps of the small runs
CELLS = [(m, p) for p in NAMES for m in METHODS if applies(m, p)]


def problem_of(name, form="constraint", seed=0, **options):
    return arena_problem(
        seed,
        name=name,
        form=form,
        stand_in=STAND_IN,
        **options,
    )


def some_point(problem, seed=3):
    return 0.3 * normal(problem.dim, seed=seed)


@pytest.mark.parametrize("name", NAMES)
def test_closed_gradients_are_those_of_the_losses(name):
    problem = doubled(problem_of(name))
    batch = batches(problem)[1]
    weights = double(0.7, -1.3)[: 1 + problem.num_constraints]
    w = some_point(problem)
    gradient = problem.gradient(w, batch, weights)
    assert_close(gradient, slope_of(problem, w, batch, weights))


@pytest.mark.parametrize("name", NAMES)
def test_all_forms_have_the_same_losses(name):
    problem = problem_of(name)
    w = some_point(problem).float()
    exact = problem.metrics(w, problem)
    both = torch.stack([exact["f"], exact["g"]])
    expected = problem_of(name, "objectives").mean_losses(w)
    assert_close(both, expected)
    assert problem_of(name, "objectives").num_objectives == 2


def test_two_objectives_in_a_ratio_have_a_convex_combination_as_their_mean():
    problem = problem_of("pair")
    weighted = problem_of("pair", "objectives", ratio=3.0)
    w = some_point(problem).float()
    f, g = problem.mean_losses(w)
    assert_close(weighted.mean_losses(w).mean(), 0.25 * f + 0.75 * g)
    batch = batches(problem)[0]
    plain = problem.gradient(w, batch, torch.tensor([0.25, 0.75]))
    assert_close(weighted.gradient(w, batch, torch.tensor([0.5, 0.5])), plain)


@pytest.mark.parametrize("name", SETS)
def test_a_set_is_the_constraint(name):
    inside = problem_of(name, "set")
    for seed in range(4):
        w = 0.6 * some_point(inside, seed).float()
        g = inside.metrics(w, inside)["g"]
        assert bool(inside.set.contains(w)) == bool(g <= LEVELS[name])
    edge = inside.set.project(10 * w)
    near(inside.metrics(edge, inside)["g"], 1, abs=1e-4)


def sides_of(problem):
    """The rows for training, for validation and for the test."""
    count = len(problem.data)
    return problem.data, problem.heldout[:count], problem.heldout[count:]


def test_rows_of_training_validation_and_test_are_apart():
    """In the other problems there are people, or pictures, that are alike."""
    rows = [side[0] for side in sides_of(problem_of("sparse"))]
    together = torch.cat(rows)
    assert len(together.unique(dim=0)) == len(together)


@pytest.mark.parametrize("name", NAMES)
def test_validation_takes_a_share_of_the_rows_and_training_has_the_others(name):
    problem = problem_of(name)
    training, validation, test = (len(side[0]) for side in sides_of(problem))
    if name in ("pair", "sparse"):
        near(validation / (training + validation), 0.2, abs=0.02)
    else:
        assert test > training / 10  # all other people
    assert problem.rows.flatten().tolist() == [*range(training)]


@pytest.mark.parametrize("name", NAMES)
def test_validation_and_test_are_measured_on_their_own_rows(name):
    """A choice by validation must not have seen a row of the test."""
    problem = problem_of(name)
    w = some_point(problem).float()
    metrics = problem.metrics(w, problem)
    assert metrics["val_f"] != metrics["test_f"]
    _, validation, test = sides_of(problem)
    for side, rows in (("val", validation), ("test", test)):
        count = len(rows[-1])
        batch = Batch(rows, torch.full((count,), 1 / count))
        f, g = problem.losses(w, batch)
        assert_close((metrics[f"{side}_f"], metrics[f"{side}_g"]), (f, g))


# The optimum


@pytest.mark.parametrize("name", NAMES)
def test_the_solver_ends_where_nothing_feasible_is_better(name):
    problem = solved(0, name=name, stand_in=STAND_IN)
    w = problem.w0
    optimum = problem.metrics(w, problem)
    assert abs(optimum["residual"]) < 1e-5
    assert optimum["g"] <= LEVELS[name] + 1e-7
    rng = torch.Generator().manual_seed(0)
    for size in (1e-3, 1e-2):
        for _ in range(10):
            step = torch.randn(problem.dim, generator=rng, dtype=torch.float64)
            near = problem.metrics(w + size * step / step.norm(), problem)
            assert near["f"] > optimum["f"] or near["g"] > LEVELS[name]


def test_the_residual_tells_another_point():
    problem = solved(0, name="pair")
    assert residual(problem, problem.w0 + 0.01) > 1e-3
    free = torch.zeros_like(problem.w0)
    for _ in range(3000):
        free = free - 0.5 * slope(problem, free, [1.0, 0.0])
    assert residual(problem, free) < 1e-4  # of f alone: no multiplier is needed


# The methods


@pytest.mark.parametrize(("method", "name"), CELLS)
def test_a_round_costs_the_gradients_and_bits_that_are_charged(method, name):
    entry = METHODS[method]
    problem = problem_of(name, form_of(method, name))
    rows = []

    def counted(w, batch, weights):
        rows.append(batch.weight.numel())
        return problem.gradient(w, batch, weights)

    settings = grid(entry, 1)[0]
    algorithm = entry.make(units(name, 0, E, 64, STAND_IN), *settings)
    trace = fl.run(
        algorithm,
        replace(problem, gradient=counted),
        rounds=2,
        progress=False,
        engine=fl.Loop,
    )
    base = problem_of(name)
    size = BATCHES[name] or base.rows.shape[1]
    assert sum(rows) == 2 * entry.passes(E) * size * base.num_clients
    charged = 32 * base.num_clients * entry.sent(E, problem.dim)
    bits = trace.info["bits_up"] + trace.info["bits_down"]
    near(float(bits.mean()), charged, rel=0.3)


def test_every_method_gets_the_passes_of_all_others():
    p = STUDY.resolve("quick", passes=60, seeds=[0])
    runs = specs({**p, "methods": tuple(METHODS), "problems": tuple(NAMES)})
    for spec in runs.values():
        method = spec.labels["method"]
        if method in METHODS:
            passes = 30 if spec.labels["problem"] == "np" else 60
            of_round = METHODS[method].passes(p["local_steps"])
            assert passes - of_round < spec.rounds * of_round <= passes


@pytest.mark.skipif(not data.available("adult"), reason="needs the files of Adult")
def test_recorded_units_are_those_of_the_files():
    assert arena_units.of_data("np", 0, 0) == arena_units.ADULT
