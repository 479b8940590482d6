"""The study of SSCA's Figures 2 and 3: problems, what it measures, quantities."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedlib.core import Trace
from fedlib.steps import PowerLaw
from papers.kit.quantities import Query, labels_of
from papers.ssca import common
from papers.ssca.common import SPLITS, STEPS
from papers.ssca.convergence import STUDY
from papers.ssca.convergence.quantities import area, derive, measures, shown
from papers.ssca.convergence.runs import halves, he_problem

FULL, QUICK = (STUDY.profiles[name] for name in ("full", "quick"))

TINY = {"data": "digits", "clients": 4, "hidden": 3, "evaluate": 50}


def run(cost, rounds, seeds=(0,), **algorithm):
    """A trace with a curve of the cost, `[S, T_eval]`."""
    x = np.atleast_2d(np.asarray(cost, float))
    metrics = {"cost": x, "accuracy": 1 - x / 5, "norm": x}
    config = {
        "algorithm": algorithm,
        "problem": {"clients": 10, "hidden": 128},
        "bits": {"bits_up": 8e6, "bits_down": 8e6},
    }
    return Trace(metrics, {}, np.asarray(rounds), seeds, config, {"wall_s": 60.0})


@pytest.fixture(scope="module")
def traces():
    return STUDY.load()


@pytest.fixture(scope="module")
def quantities(traces):
    return STUDY.numbers(traces)


def test_step_sizes_are_those_of_the_paper():
    found = {b: (r.scale, g.scale, r.exponent, g.exponent) for b, (r, g) in STEPS.items()}
    assert found[1] == pytest.approx((0.4, 0.4, 0.4, 0.45))
    assert found[10] == pytest.approx((0.6, 0.9, 0.3, 0.35))
    assert found[100] == pytest.approx((0.9, 0.9, 0.3, 0.35))
    assert (common.TAU, common.PENALTY, common.RIDGE) == (0.1, 1e5, 1e-5)


@pytest.mark.parametrize("split", SPLITS)
def test_methods_know_the_split_and_the_size_of_its_batch(split):
    rows = {"samples": 10, "features": 100}[split]
    one, two = common.ssca(split, 10), common.constrained(split, 10, 0.6)
    three = common.sgd(split, 10, 1, PowerLaw(0.3))
    assert {a.batch_size for a in (one, two, three)} == {rows}
    assert ("Vertical" in type(one).__name__) == (split == "features")
    assert (two.levels, two.objective) == (0.6, "norm")
    assert one.ridge == three.ridge == 1e-5
    assert (one.rho, one.gamma) == STEPS[10]
    assert common.ssca(split, 10, debias=True) == replace(one, debias=True)


def test_both_splits_have_the_same_start_pictures_and_metrics():
    one = common.digits_problem(0, **TINY, wide=True)
    two = common.vertical_problem(0, **TINY, wide=True)
    w = one.w0 + 0.1
    assert torch.equal(one.w0, two.w0)
    for k, x in one.metrics(w, one).items():
        assert two.metrics(w, two)[k] == pytest.approx(float(x))
    other = common.digits_problem(1, **TINY, wide=True)
    assert other.data[0] is one.data[0]  # pictures are shared between seeds
    assert not torch.equal(other.w0, one.w0)


@pytest.mark.parametrize(("split", "known"), [("samples", 0), ("features", 1)])
def test_he_start_is_uniform_within_the_root_of_six_over_the_inputs(split, known):
    plain = (common.digits_problem, common.vertical_problem)[known](3, **TINY)
    wide = he_problem(3, split=split, **TINY)
    first, second = wide.w0[: 3 * 64].abs(), wide.w0[3 * 64 :].abs()
    for layer, inputs in ((first, 64), (second, 3)):
        bound = (6 / inputs) ** 0.5
        assert 0.8 * bound < float(layer.max()) <= bound * (1 + 1e-6)
    torch.testing.assert_close(wide.w0, 6**0.5 * plain.w0)
    assert wide.config == {**plain.config, "start": "He, uniform"}
    w = plain.w0 + 0.1
    assert wide.metrics(w, wide) == plain.metrics(w, plain)


def test_measures_of_one_run():
    one = run([2.0, 1.0, 0.5], [0, 10, 30])
    assert area(one) == pytest.approx([(10 * 1.5 + 20 * 0.75) / 30])
    found = measures(one)
    assert {k for k in found if k.startswith("cost_")} == {"cost_10", "cost_30"}
    assert found["cost_30"] == pytest.approx([0.5])
    assert found["accuracy"] == pytest.approx([90.0])


def test_sgd_is_chosen_by_the_mean_cost_over_the_rounds():
    rounds = [0, 30, 100]
    curves = {
        1.0: [[2.3, 0.4, 0.3], [2.3, 0.6, 0.5]],
        0.1: [[2.3, 0.3, 0.1], [2.3, 0.4, 0.3]],
        3.0: [[2.3, 0.1, 0.1], [2.3, np.nan, np.nan]],
    }
    labels = {"start": "usual", "split": "samples", "method": "sgd", "B": 10}
    grid = {}
    for a, curve in curves.items():
        trace = run(curve, rounds, (0, 1))
        grid[f"a{a}"] = replace(trace, config={"labels": {**labels, "a": a, "p": 0.0}})
    best = shown(grid)
    assert [*best] == ["samples_sgd_B10"]
    assert best["samples_sgd_B10"].metrics is grid["a0.1"].metrics
    assert labels_of(best["samples_sgd_B10"]) == labels


def test_halves():
    assert halves((1, 10, 100)) == (5, 50)
    assert halves((1,)) == ()


def test_differences_are_paired_by_seed(traces, quantities):
    costs = [traces[f"{split}_ssca_B10"].metrics["cost"][:, 10] for split in SPLITS]
    apart = quantities[Query.of("cost_50", split="features", method="ssca", B=10, minus="samples")]
    assert traces["samples_ssca_B10"].rounds[10] == 50
    assert apart.per_seed == pytest.approx(costs[1] - costs[0])


def test_quantities_of_all_runs(traces, quantities):
    assert quantities["samples_sgd_B10.lr"].value in FULL["rates"]
    between = quantities["features_ssca_B100.between"].value
    assert between == pytest.approx(32 * 90 * 1000 * 128 / 1e6)
    assert quantities["samples_ssca_B1.up"].value == pytest.approx(32 * 10 * 101632 / 1e6)
    he = Query.of("area", start="he", split="samples", method="ssca", B=1, minus="sgd")
    best = shown(traces)["he_samples_sgd_B1"]
    assert quantities[he].per_seed == pytest.approx(area(traces["he_samples_ssca_B1"]) - area(best))


def test_a_shortened_study_has_quantities(traces):
    params = STUDY.resolve("full", batches=[10], levels=[0.6])
    some_runs = {name: traces[name] for name in STUDY.specs(params) if name in traces}
    assert "samples_ssca_B10_minus_sgd.area" in derive(some_runs, params)


def test_quick_needs_no_download_and_has_every_kind_of_run():
    kinds = {n.split("_B")[0] for n in STUDY.specs(QUICK)}
    assert kinds == {n.split("_B")[0] for n in STUDY.specs(FULL)}
    assert QUICK["data"] == "digits"


@pytest.mark.parametrize("batch", [2, 101])
def test_a_batch_for_which_the_paper_prints_no_steps_is_refused(batch):
    with pytest.raises(ValueError, match=f"batch must be one of 1, 10, 100, .* got {batch}"):
        common.ssca("samples", batch)
