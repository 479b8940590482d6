"""Longer SSCA runs: what they measure, and quantities by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.func import grad

import fedlib as fl
from papers.kit import store
from papers.ssca.checks import conditions
from papers.ssca.common import RIDGE, constrained, digits_problem
from papers.ssca.long.problem import OneConstraint, long_problem
from papers.ssca.long.runs import VALID

SIZES = {"data": "digits", "clients": 4, "hidden": 5, "evaluate": 50, "wide": True}


# What is measured


def test_one_constraint_is_the_method_with_numbers_that_can_be_stored(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    method = constrained("samples", 10, 0.9, clients=4)
    spec = store.Spec(
        OneConstraint(method),
        lambda s: digits_problem(s, **SIZES),
        6,
        (0, 1),
    )
    spec = replace(spec, keep=("cost", "nu", "slack", "penalty"))
    trace = store.compute_or_load(
        "toy",
        "quick",
        {"run": spec},
        store=True,
        progress=False,
    )["run"]
    alone = fl.run(method, spec.problem, rounds=6, seeds=[0, 1], progress=False)
    for name in ("nu", "slack"):
        assert trace.info[name].shape == (2, 6)
        np.testing.assert_allclose(
            trace.info[name],
            alone.info[name][:, 0],
            rtol=1e-5,
            atol=1e-12,
        )
    np.testing.assert_allclose(trace.metrics["cost"], alone.metrics["cost"], rtol=1e-5)
    again = store.compute_or_load("toy", "quick", {"run": spec}, progress=False)["run"]
    np.testing.assert_array_equal(again.info["nu"], trace.info["nu"])


def test_the_whole_cost_and_the_whole_gradient_are_those_of_all_pictures():
    plain = digits_problem(2, **SIZES)
    w = plain.w0 + 0.2 * torch.randn(plain.dim, generator=torch.Generator().manual_seed(0)).double()
    cost, gradient = (long_problem(2, also=k, **SIZES) for k in ("cost_all", "gradient"))
    base = plain.metrics(w, plain)
    value = cost.metrics(w, cost)
    expected = float(plain.mean_losses(w)[0])
    assert float(value["cost_all"]) == pytest.approx(expected, rel=1e-12)
    assert float(base["cost"]) != pytest.approx(float(value["cost_all"]), rel=1e-3)  # 50 pictures
    g = grad(lambda u: plain.mean_losses(u)[0] + RIDGE * u @ u)(w)
    metrics = gradient.metrics(w, gradient)
    expected = float(g.norm())
    assert float(metrics["gradient"]) == pytest.approx(expected, rel=1e-10)
    for name, value_of_plain in base.items():
        assert float(metrics[name]) == float(value_of_plain)
    assert cost.config["also"] == "cost_all"


def test_the_valid_step_sizes_are_valid():
    assert all(c.holds for c in conditions(**VALID))


# Quantities
