"""Longer SSCA runs: what they measure, and quantities by hand."""

import numpy as np
import pytest
import torch
from torch.func import grad

import fedlib as fl
from papers.ssca.common import RIDGE, constrained, digits_problem
from papers.ssca.long.problem import OneConstraint, long_problem
from tests.helpers.expect import near

SIZES = {"data": "digits", "clients": 4, "hidden": 5, "evaluate": 50, "wide": True}


# What is measured


def test_one_constraint_is_the_method_with_numbers_in_place_of_lists():
    method = constrained("samples", 10, 0.9, clients=4)
    problem = digits_problem(0, **SIZES)
    ours = fl.run(
        OneConstraint(method),
        problem,
        rounds=6,
        progress=False,
    )
    alone = fl.run(
        method,
        problem,
        rounds=6,
        progress=False,
    )
    for name in ("nu", "slack"):
        assert ours.info[name].shape == (1, 6)
        np.testing.assert_array_equal(ours.info[name], alone.info[name][:, 0])
    np.testing.assert_array_equal(ours.metrics["cost"], alone.metrics["cost"])


def test_the_whole_cost_and_the_whole_gradient_are_those_of_all_pictures():
    plain = digits_problem(2, **SIZES)
    w = plain.w0 + 0.2 * torch.randn(plain.dim, generator=torch.Generator().manual_seed(0)).double()
    cost, gradient = (long_problem(2, also=k, **SIZES) for k in ("cost_all", "gradient"))
    base = plain.metrics(w, plain)
    value = cost.metrics(w, cost)
    expected = float(plain.mean_losses(w)[0])
    near(float(value["cost_all"]), expected, rel=1e-12)
    assert float(base["cost"]) != pytest.approx(float(value["cost_all"]), rel=1e-3)  # 50 pictures
    g = grad(lambda u: plain.mean_losses(u)[0] + RIDGE * u @ u)(w)
    metrics = gradient.metrics(w, gradient)
    expected = float(g.norm())
    near(float(metrics["gradient"]), expected, rel=1e-10)
    for name, value_of_plain in base.items():
        assert float(metrics[name]) == float(value_of_plain)
    assert cost.config["also"] == "cost_all"


# Quantities
