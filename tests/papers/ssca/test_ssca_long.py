"""Longer SSCA runs: what they measure, numbers by hand, rules in both directions."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.func import grad

import fedlib as fl
from fedlib.core import Trace
from papers.kit import store
from papers.ssca.checks import conditions
from papers.ssca.common import RIDGE, constrained, digits_problem
from papers.ssca.long import STUDY, VALID
from papers.ssca.long.claims import BATCHES, LEVELS, PENALTIES
from papers.ssca.long.numbers import FIGURES, derive, firsts, levels
from papers.ssca.long.problem import OneConstraint, long_problem
from tests.helpers.planted import drawn

FULL = STUDY.resolve("full")
SIZES = {"data": "digits", "clients": 4, "hidden": 5, "evaluate": 50, "wide": True}
ROUNDS = np.arange(0, 1001, 50)


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


# Numbers


def free(end=0.2, fall=-0.5, start=0.4, first=0.2):
    """A run without constraint: its last cost; the gradient is first * t ** fall after round 0."""
    cost = np.where(ROUNDS == 1000, end, 1.0) * np.ones((2, 1))
    gradient = np.concatenate([[start], first * ROUNDS[1:] ** float(fall)]) * np.ones((2, 1))
    metrics = {"cost": cost, "accuracy": 1 - cost, "norm": 50 * cost, "gradient": gradient}
    return Trace(metrics, {}, ROUNDS, (0, 1), {"problem": {"rows": 60_000}})


def limit(level, early=0.02, end=-0.01, slack=0.0, penalty=None):
    """A constrained run: F - U at round 100 and at the end, slack of the last 50 rounds."""
    above = np.where(ROUNDS == 1000, end, np.where(ROUNDS == 100, early, 1.0)) * np.ones((2, 1))
    t = np.arange(1000)
    info = {"slack": np.where(t < 50, 2.0, np.where(t < 950, 9.0, slack)) * np.ones((2, 1))}
    info["nu"] = np.where(t < 950, 1e5, 40.0) * np.ones((2, 1))
    if penalty:
        info["penalty"] = np.where(t < 999, 1.0, penalty) * np.ones((2, 1))
    cost = level + above
    metrics = {"cost": cost, "accuracy": 1 - cost, "norm": cost, "cost_all": cost}
    config = {"algorithm": {"method": {"levels": level, "tolerance": 1e-3}}, "problem": {}}
    return Trace(metrics, info, ROUNDS, (0, 1), config)


def whole(fall=-0.5, start=0.4, early=-0.02, end=-0.01, slack=0.0, printed=None):
    """All runs; `printed`: F - U at round 100 and at the end with the experiments' steps."""
    traces = {}
    for b in BATCHES:
        traces[f"ssca_paper_B{b}"] = free(0.2 + b / 1000)
        traces[f"ssca_valid_B{b}"] = free(0.3, fall, start)
    for u in LEVELS:
        traces[f"limit_valid_U{u:g}"] = limit(u, early, end)
        traces[f"limit_paper_U{u:g}"] = limit(u, *(printed or (early, end)))
        for c in PENALTIES:
            traces[f"limit_c{c:g}_U{u:g}"] = limit(u, slack=slack, penalty=1e3)
    return traces


def numbers(**changes):
    return derive(whole(**changes), FULL)


def test_numbers_by_hand():
    n = numbers(slack=0.25)
    assert n["ssca_paper_B100.cost"].value == pytest.approx(0.3)
    assert n["ssca_valid_B10.fall"].value == pytest.approx(-0.5)
    assert n["ssca_valid_B10.gradient_share"].value == pytest.approx(0.2 * 1000**-0.5 / 0.4)
    thirds = [n[f"ssca_valid_B10.gradient_{k}"].value for k in ("first", "middle", "last")]
    ranges = (range(50, 301, 50), range(350, 651, 50), range(700, 1001, 50))
    assert thirds == pytest.approx([np.mean([0.2 * t**-0.5 for t in some]) for some in ranges])
    assert n["limit_paper_U0.3.violation_early"].value == pytest.approx(-0.02)
    assert n["limit_paper_U0.3.violation_end"].value == pytest.approx(-0.01)
    assert n["limit_c30_U0.6.violation_patience"].value == pytest.approx(1)
    assert n["limit_c30_U0.6.slack_first"].value == 2
    assert n["limit_c30_U0.6.slack_end"].value == 0.25
    assert n["limit_c1_U0.6.nu_end"].value == 40
    assert n["limit_c1_U0.6.penalty_end"].value == 1000
    assert "limit_paper_U0.3.penalty_end" not in n


def test_the_slope_is_that_of_the_second_half():
    trace = free()
    trace.metrics["gradient"][:, ROUNDS < 500] = 7.0
    n = derive({**whole(), "ssca_valid_B10": trace}, FULL)
    assert n["ssca_valid_B10.fall"].value == pytest.approx(-0.5)


def test_every_run_keeps_what_its_numbers_need():
    for name, spec in STUDY.specs(FULL).items():
        also = spec.problem.keywords["also"]
        assert also == ("cost_all" if name.startswith("limit_") else "gradient")
        assert ("penalty" in spec.keep) == name.startswith("limit_c")


def test_a_shortened_sweep_still_gives_numbers_and_figures():
    changes = {"batches": [10], "levels": [0.6]}
    p = STUDY.resolve("full", penalties=[30.0], **changes)
    some = {n: t for n, t in whole().items() if n in STUDY.specs(p)}
    assert len(some) == 2 + 3
    assert "ssca_valid_B10.fall" in derive(some, p)
    assert (levels(some), firsts(some)) == (["0.6"], ["30"])
    for make in FIGURES.values():
        assert all(ax.lines for ax in drawn(make, some))
