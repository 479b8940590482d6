"""Other people's packages beside ours, where they are installed; the table of what was stored."""

import json

import numpy as np
import pytest
import torch

from papers.arena import outside, outside_report
from papers.arena.problems import arena_problem


def test_the_dual_cone_by_hand():
    """Two gradients that agree stay what they are; of two that do not, both are projected."""
    agree = torch.tensor([[1.0, 0.5], [0.5, 1.0]], dtype=torch.float64)
    assert outside.dual_cone_mean(agree).tolist() == pytest.approx([0.5, 0.5])
    apart = torch.tensor([[1.0, -0.5], [-0.5, 1.0]], dtype=torch.float64)  # each gains 0.5 of it
    assert outside.dual_cone_mean(apart).tolist() == pytest.approx([0.75, 0.75])


def test_weights_of_gradients_are_those_of_torchjd(monkeypatch):
    pytest.importorskip("torchjd")
    pytest.importorskip("quadprog")
    monkeypatch.setattr(outside, "MATRICES", 8)
    found = outside.weights()
    assert found["mgda_two"] < 1e-9
    assert found["find_two"] < 1e-9
    assert found["upgrad"] < 1e-5
    assert found["mgda_more"] < 0.01


def test_switching_is_that_of_humancompatible_train(monkeypatch):
    pytest.importorskip("humancompatible.train")
    monkeypatch.setattr(outside, "SEEDS", (0,))
    monkeypatch.setattr(outside, "ROUNDS", 50)
    monkeypatch.setattr(outside, "arena_problem", generated)
    found = outside.switching()
    assert found["apart"] < 1e-9
    assert found["same_switches"] == 1
    assert 0 < found["switched"] < 1


def generated(seed, **form):
    """The problem on generated people."""
    return arena_problem(seed, **form, stand_in=2000)


def test_a_run_of_cooper_is_plain_descent_ascent(monkeypatch):
    pytest.importorskip("cooper")
    monkeypatch.setattr(outside, "PASSES", 20)
    found = outside.descent_ascent("pair", 0, 0.3, 0.5)
    problem, y = arena_problem(0, name="pair", form="pooled"), 0.0
    w, rows = problem.w0, outside.every_row(problem)
    for _ in range(20):
        step = problem.gradient(w, rows, torch.tensor([1.0, y]))
        y = max(0.0, y + 0.5 * float(problem.losses(w, rows)[1] - 0.6))
        w = w - 0.3 * step
    assert y > 0
    for k, v in problem.metrics(w, problem).items():
        assert found[k] == pytest.approx(float(v), abs=1e-5)


def test_what_is_stored_is_told_with_the_packages_versions():
    held = json.loads(outside.path().read_text(encoding="utf-8"))
    assert set(held["packages"]) == set(outside.PACKAGES.values())
    assert set(held["found"]) == set(outside.CHECKS)
    table = outside_report.table()
    assert len(table) == len(outside.CHECKS) == len(outside_report.OUTSIDE)
    assert "torchjd 0.18.0" in set(table["package"])
    found = held["found"]
    assert found["switching"]["apart"] < 1e-9
    assert found["weights"]["mgda_two"] < 1e-9
    assert np.isfinite([v for one in found.values() for v in one.values()]).all()


def test_nothing_stored_is_an_empty_table(monkeypatch, tmp_path):
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    assert outside_report.table().empty
