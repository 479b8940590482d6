"""The study of SSCA's Figures 2 and 3: problems, what it measures, numbers, counts, figures."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedlib.core import Trace
from fedlib.core.describe import describe
from fedlib.steps import PowerLaw
from papers.kit import plot
from papers.ssca import common
from papers.ssca.common import SPLITS, STEPS
from papers.ssca.convergence import STUDY, counts, he_problem
from papers.ssca.convergence.numbers import HE, area, chosen, derive, halves, measures

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


def all_runs(params):
    """Traces of every run of the study, made up: larger batches and SSCA are faster."""
    rng = np.random.default_rng(0)
    found = {}
    p = {k: int(params[k]) for k in ("clients", "hidden")}
    for name, spec in STUDY.specs(params).items():
        t = np.array(sorted({*range(0, spec.rounds, spec.evaluate_every), spec.rounds}))
        own = describe(spec.algorithm)
        speed = 0.01 * (1 + np.log10(own["batch_size"])) * (1 + ("ssca" in name))
        curve = 0.2 + 2.1 * np.exp(-speed * t) + 0.01 * rng.random((len(spec.seeds), len(t)))
        trace = run(curve, t, spec.seeds, **own)
        split, limited = name.removeprefix(HE).split("_")[0], "_limit_" in name
        rows = own["batch_size"] if split == "features" else 0
        bits = counts.up_and_down(split, limited, params, rows)
        told = {"bits": dict(zip(("bits_up", "bits_down"), bits, strict=True)), "problem": p}
        trace = replace(trace, config={**trace.config, **told})
        found[name] = trace
    return found


@pytest.fixture(scope="module")
def traces():
    return all_runs(FULL)


@pytest.fixture(scope="module")
def numbers(traces):
    return derive(traces, FULL)


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
    t = [0, 30, 100]
    grid = {
        "samples_sgd_B10_a1_p0": run([[2.3, 0.4, 0.3], [2.3, 0.6, 0.5]], t, (0, 1)),
        "samples_sgd_B10_a0.1_p0": run([[2.3, 0.3, 0.1], [2.3, 0.4, 0.3]], t, (0, 1)),
        "samples_sgd_B10_a3_p0": run([[2.3, 0.1, 0.1], [2.3, np.nan, np.nan]], t, (0, 1)),
        "samples_sgd_B100_a1_p0": run([[0, 0, 0]], t),
    }
    assert chosen(grid, "samples_sgd_B10") == "samples_sgd_B10_a0.1_p0"


def test_halves():
    assert halves((1, 10, 100)) == (5, 50)
    assert halves((1,)) == ()


def test_differences_are_paired_by_seed(traces):
    a, b = "samples_ssca_B10", "features_ssca_B10"
    some = {a: traces[a], b: traces[b]}  # numbers that need other runs are left out
    base = np.linspace(2, 1, 21)
    up = np.arange(20.0)[:, None]
    some[a] = replace(some[a], metrics=run(base + up, some[a].rounds).metrics)
    some[b] = replace(some[b], metrics=run(base + up - 0.25, some[b].rounds).metrics)
    x = derive(some, FULL)["features_vs_samples_ssca_B10.cost_50"]
    assert (x.low, x.high) == pytest.approx((-0.25, -0.25))


def test_numbers_of_all_runs(numbers):
    assert numbers["samples_sgd_B10.lr"].value in FULL["rates"]
    assert numbers["features_ssca_B100.between"].value == pytest.approx(32 * 90 * 1000 * 128 / 1e6)
    assert numbers["samples_ssca_B1.up"].value == pytest.approx(32 * 10 * 101632 / 1e6)
    for pair in ("samples_ssca_B100_vs_B10", "samples_ssca_B10_debiased_vs_plain"):
        assert f"{pair}.area" in numbers


def test_runs_from_he_start_are_compared_among_themselves():
    t = [0, 30, 100]
    some = {
        f"{HE}features_ssca_B1": run([2.3, 0.5, 0.3], t, batch_size=10),
        f"{HE}features_sgd_B1_a1_p0": run([2.3, 0.9, 0.4], t, lr={"scale": 1.0, "exponent": 0.0}),
        "features_ssca_B1": run([2.3, 2.0, 2.0], t, batch_size=10),
    }
    n = derive(some, FULL)
    assert n[f"{HE}features_ssca_B1_vs_sgd.cost_30"].value == pytest.approx(-0.4)
    assert n[f"{HE}features_sgd_B1.lr"].value == 1
    assert n["features_ssca_B1.cost_30"].value == 2
    assert "features_ssca_B1_vs_sgd.cost_30" not in n


@pytest.mark.parametrize(
    "changes",
    [
        {"batches": (10,)},
        {"batches": (1,), "rates": (0.3,), "falls": (0.0,)},
        {"rounds": 7},
        {"levels": (0.5,)},
        {"seeds": (4,)},
        {"clients": 5, "hidden": 8},
    ],
)
def test_changed_parameters_give_numbers(changes):
    params = {**FULL, "seeds": (0, 1), **changes}
    found = derive(all_runs(params), params)
    runs = (
        f"{s}_{x}" for s in SPLITS for b in params["batches"] for x in (f"ssca_B{b}", f"sgd_B{b}")
    )
    assert {f"{run}.area" for run in runs} <= found.keys()


def test_quick_needs_no_download_and_has_every_kind_of_run():
    kinds = {n.split("_B")[0] for n in STUDY.specs(QUICK)}
    assert kinds == {n.split("_B")[0] for n in STUDY.specs(FULL)}
    assert QUICK["data"] == "digits"


@pytest.mark.parametrize("figure", STUDY.figures)
def test_figures_of_a_shortened_study_can_be_drawn(figure):
    params = {**QUICK, "batches": (1,)}
    assert len(plot.render(STUDY.figures[figure](all_runs(params)))) > 3000


@pytest.mark.parametrize("batch", [2, 101])
def test_a_batch_for_which_the_paper_prints_no_steps_is_refused(batch):
    with pytest.raises(ValueError, match=f"batch must be one of 1, 10, 100, .* got {batch}"):
        common.ssca("samples", batch)
