"""Longer SSCA runs: what they measure, and quantities by hand."""

import numpy as np
import pytest
from torch.func import grad

import fedlib as fl
from papers.ssca.common import RIDGE, constrained, digits_problem
from papers.ssca.long.problem import OneConstraint, long_problem
from tests.helpers.expect import near
from tests.helpers.randoms import normal

SIZES = {"data": "digits", "clients": 4, "hidden": 5, "evaluate": 50, "wide": True}


# What is measured


def test_one_constraint_is_the_method_with_numbers_in_place_of_lists():
    method = constrained("samples", 10, 0.9, clients=4)
    problem = digits_problem(0, **SIZES)
    ours = fl.run(OneConstraint(method), problem, rounds=6, progress=False)
    alone = fl.run(method, problem, rounds=6, progress=False)
    for name in ("nu", "slack"):
        assert ours.info[name].shape == (1, 6)
        np.testing.assert_array_equal(ours.info[name], alone.info[name][:, 0])
    np.testing.assert_array_equal(ours.metrics["cost"], alone.metrics["cost"])


# Quantities


@pytest.fixture(scope="module")
def plain():
    """A problem, and a point apart from its start."""
    problem = digits_problem(2, **SIZES)
    return problem, problem.w0 + 0.2 * normal(problem.dim)


def test_the_whole_cost_is_that_of_all_pictures(plain):
    problem, w = plain
    longer = long_problem(2, also="cost_all", **SIZES)
    assert longer.config["also"] == "cost_all"
    metrics = longer.metrics(w, longer)
    near(float(metrics.pop("cost_all")), float(problem.mean_losses(w)[0]), rel=1e-12)
    assert metrics == problem.metrics(w, problem)


def test_the_whole_gradient_is_that_of_all_pictures(plain):
    problem, w = plain
    longer = long_problem(2, also="gradient", **SIZES)
    gradient = grad(lambda u: problem.mean_losses(u)[0] + RIDGE * u @ u)(w)
    metrics = longer.metrics(w, longer)
    near(float(metrics["gradient"]), float(gradient.norm()), rel=1e-10)
