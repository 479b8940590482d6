"""Longer SSCA runs: what they measure, and quantities by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.func import grad

import fedlib as fl
from papers.kit import store
from papers.kit.quantities import Query
from papers.ssca.checks import conditions
from papers.ssca.common import RIDGE, constrained, digits_problem
from papers.ssca.long import STUDY
from papers.ssca.long.claims import THIRDS
from papers.ssca.long.problem import OneConstraint, long_problem
from papers.ssca.long.quantities import derive
from papers.ssca.long.runs import VALID

FULL = STUDY.resolve("full")
SIZES = {"data": "digits", "clients": 4, "hidden": 5, "evaluate": 50, "wide": True}


# What is measured


def test_one_constraint_is_the_method_with_numbers_that_can_be_stored(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    made = constrained("samples", 10, 0.9, clients=4)
    spec = store.Spec(OneConstraint(made), lambda s: digits_problem(s, **SIZES), 6, (0, 1))
    spec = replace(spec, keep=("cost", "nu", "slack", "penalty"))
    trace = store.compute_or_load("toy", "quick", {"run": spec}, store=True, progress=False)["run"]
    alone = fl.run(made, spec.problem, rounds=6, seeds=[0, 1], progress=False)
    for name in ("nu", "slack"):
        assert trace.info[name].shape == (2, 6)
        np.testing.assert_allclose(trace.info[name], alone.info[name][:, 0], rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(trace.metrics["cost"], alone.metrics["cost"], rtol=1e-5)
    again = store.compute_or_load("toy", "quick", {"run": spec}, progress=False)["run"]
    np.testing.assert_array_equal(again.info["nu"], trace.info["nu"])


def test_the_whole_cost_and_the_whole_gradient_are_those_of_all_pictures():
    plain = digits_problem(2, **SIZES)
    w = plain.w0 + 0.2 * torch.randn(plain.dim, generator=torch.Generator().manual_seed(0)).double()
    cost, gradient = (long_problem(2, also=k, **SIZES) for k in ("cost_all", "gradient"))
    base, value = plain.metrics(w, plain), cost.metrics(w, cost)
    assert float(value["cost_all"]) == pytest.approx(float(plain.mean_losses(w)[0]), rel=1e-12)
    assert float(base["cost"]) != pytest.approx(float(value["cost_all"]), rel=1e-3)  # 50 pictures
    g = grad(lambda u: plain.mean_losses(u)[0] + RIDGE * u @ u)(w)
    found = gradient.metrics(w, gradient)
    assert float(found["gradient"]) == pytest.approx(float(g.norm()), rel=1e-10)
    assert {k: float(v) for k, v in base.items()} == {k: float(found[k]) for k in base}
    assert cost.config["also"] == "cost_all"


def test_the_valid_step_sizes_are_valid():
    assert all(c.holds for c in conditions(**VALID))


# Quantities


def test_quantities_by_hand():
    traces = STUDY.load()
    quantities = STUDY.numbers(traces)
    run = traces["ssca_valid_B10"]
    norms = run.metrics["gradient"]
    mean = norms.mean(0)
    assert run.rounds.tolist() == [*range(0, 1001, 50)]
    thirds = [quantities[f"ssca_valid_B10.gradient_{third}"].value for third in THIRDS]
    assert thirds == pytest.approx([mean[1:7].mean(), mean[7:14].mean(), mean[14:].mean()])
    late = np.log(run.rounds[10:])
    slopes = [np.polyfit(late, np.log(norm[10:]), 1)[0] for norm in norms]
    assert quantities["ssca_valid_B10.fall"].per_seed == pytest.approx(slopes)
    run = traces["limit_c30_U0.6"]
    violation = quantities[Query.of("violation_early", method="limit", c=30.0, U=0.6)]
    assert violation.per_seed == pytest.approx(run.metrics["cost_all"][:, 2] - 0.6)
    slack = quantities[Query.of("slack_first", method="limit", c=30.0, U=0.6)]
    assert slack.per_seed == pytest.approx(run.info["slack"][:, :50].mean(1))
    assert "limit_paper_U0.3.penalty_end" not in quantities


def test_every_run_keeps_what_its_quantities_need():
    for spec in STUDY.specs(FULL).values():
        also = spec.problem.keywords["also"]
        assert also == ("cost_all" if spec.labels["method"] == "limit" else "gradient")
        assert ("penalty" in spec.keep) == ("c" in spec.labels)


def test_a_shortened_sweep_still_gives_quantities():
    p = STUDY.resolve("full", penalties=[30.0], batches=[10], levels=[0.6])
    runs = STUDY.specs(p)
    traces = {name: trace for name, trace in STUDY.load().items() if name in runs}
    assert len(traces) == 2 + 3
    assert "ssca_valid_B10.fall" in derive(traces, p)
