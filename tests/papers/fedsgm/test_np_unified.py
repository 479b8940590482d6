"""The quantities of the full paper's Neyman-Pearson study, from runs written down by hand."""

import numpy as np
import pandas as pd
import pytest

import fedlib as fl
from papers.fedsgm import curves
from papers.fedsgm.np_unified import STUDY, quantities
from papers.fedsgm.np_unified.runs import defaults
from papers.kit import quantities as kit
from papers.kit.quantities import Quantities, Query

PARAMETERS = STUDY.resolve("full")
USUAL = defaults(PARAMETERS)
FEDSGM = {"method": "FedSGM", "participants": 10, "local_steps": 5, "fraction": 0.1}
FEDSGM |= {"feedback": True, "lr": 0.3, "splits": "first ten"}


def rows(*runs):
    """Late values of runs, a row a seed: labels, late f of each seed, late g."""
    parts = [
        pd.DataFrame({**labels, "seed": range(len(f)), "f": f, "g": g}) for labels, f, g in runs
    ]
    values = pd.concat(parts, ignore_index=True)
    return values.assign(infeasible=values["g"] > 0.0525)


def numbers(table):
    return Quantities.of([table], USUAL)


def random_trace(seeds=4, rounds=30):
    rng = np.random.default_rng(0)
    metrics = {name: rng.uniform(size=(seeds, rounds + 1)) for name in ("f", "g", "g_max")}
    config = {"labels": {"method": "FedSGM", "switch": "hard"}}
    return fl.Trace(metrics, {}, np.arange(rounds + 1), tuple(range(seeds)), config)


def test_measures_of_the_frame_are_those_of_the_curves():
    trace, tolerance = random_trace(), 0.5
    measured = quantities.measures(kit.curves({"hard": trace}), tolerance)
    expected = {
        "f": trace.late("f"),
        "g": trace.late("g"),
        "g_max": trace.late("g_max"),
        "f_fall": np.log(2) - trace.late("f"),
        "g_fall": np.log(2) - trace.late("g"),
        "infeasible": trace.late("g") > curves.FEASIBLE * tolerance,
        "violations": curves.violations(trace, tolerance),
        "oscillation": curves.oscillation(trace),
        "scatter": curves.jitter(trace, 30 // 5),
        "excess": 1e3 * np.maximum(trace.metrics["g"][:, 15:30] - tolerance, 0).mean(1),
        "merit": curves.over_limit(trace, tolerance, 4.0).mean(1),
        "early": curves.over_limit(trace, tolerance, 1.0)[:, :50].mean(1),
    }
    assert {*measured} == {*expected}
    for name, values in expected.items():
        np.testing.assert_allclose(measured[name].astype(float), values.astype(float), rtol=1e-12)


def test_null_data_are_disjoint_sets_of_splits_of_equal_size():
    seeds = pd.MultiIndex.from_product([["hard"], range(11)], names=["run", "seed"])
    names = ("f", "g", "merit", "early", "oscillation", "scatter")
    by_run = pd.DataFrame({name: np.arange(11.0) for name in names}, index=seeds)
    null = [row for row in quantities.null_data(by_run) if row["measure"] == "merit"]
    assert [row["part"] for row in null] == [0, 1, 2, 3, 4]
    assert [row["value"] for row in null] == [0.5, 2.5, 4.5, 6.5, 8.5]


def test_means_over_three_seeds():
    few = {**PARAMETERS, "lrs": (0.3,), "participants": 20}
    run = {**FEDSGM, "participants": 20}
    g = [0.03, 0.05, 0.05, 0.09]  # 3 of 4 means exceed 1.05 times 0.05
    values = rows(
        ({**run, "switch": "hard"}, [1] * 4, g),
        ({**run, "switch": "soft", "beta": 40.0}, [1] * 2, [0.05, 0.05]),
    )

    def share(tolerance, mode):
        table = quantities.means_of_three(values, few, tolerance, defaults(few))
        return Quantities.of([table], defaults(few))[Query.of("of_three", switch=mode)].value

    assert share(0.05, "hard") == 0.25
    assert share(0.06, "hard") == 0.75
    assert share(0.05, "soft") == 1  # of two seeds, their mean


def test_the_best_step_is_feasible_and_a_penalty_right_if_nearly_as_good():
    penalty = {"method": "Penalty-FedAvg", "participants": 10, "local_steps": 5}
    penalty |= {"splits": "first ten"}
    soft = {**FEDSGM, "switch": "soft", "beta": 40.0}
    values = rows(
        ({**FEDSGM, "switch": "hard"}, [2] * 3, [0.09] * 3),
        ({**FEDSGM, "switch": "hard", "lr": 0.1}, [3] * 3, [0.08] * 3),  # none is feasible
        (soft, [1] * 3, [0.05] * 3),
        ({**soft, "lr": 1.0}, [0.5] * 3, [0.06] * 3),  # lower, and not feasible
        ({**penalty, "rho": 0.5, "lr": 0.3}, [0.5, 0.5, 1.2], [0.06, 0.06, 0.05]),
        ({**penalty, "rho": 20.0, "lr": 0.3}, [1.2, 1.3, 1.3], [0.02] * 3),
    )
    best = quantities.tuned(values, 0.05, USUAL)
    tables = [quantities.best_settings(best), quantities.right_penalties(best)]
    known = Quantities.of(tables, USUAL)
    assert known[Query.of("lr", switch="hard", setting="tuned")].value == 0.1
    assert known[Query.of("lr", switch="soft", setting="tuned")].value == 0.3
    right = {"method": "Penalty-FedAvg", "setting": "tuned"}
    assert known[Query.of("right", rho=0.5, **right)].per_seed == (0, 0, 1)
    assert known[Query.of("right", rho=20.0, **right)].per_seed == (1, 0, 0)
    assert known[Query.of("right", **right)].value == pytest.approx(1 / 3)


def test_spreads_are_over_grids_of_equal_width():
    penalty = {"method": "Penalty-FedAvg", "participants": 10, "local_steps": 5, "lr": 0.3}
    penalty |= {"splits": "first ten"}
    soft = {**FEDSGM, "switch": "soft"}
    values = rows(
        ({**penalty, "rho": 0.001}, [9, 9], [9, 9]),  # too far from the others
        ({**penalty, "rho": 2.0}, [1, 1], [0.05, 0.05]),
        ({**penalty, "rho": 100.0}, [1.5, 2], [0.01, 0.02]),
        ({**soft, "beta": 40.0}, [1, 1], [0.05, 0.05]),
        ({**soft, "beta": 20.0}, [1.1, 1], [0.04, 0.05]),
        ({**soft, "beta": 1e9}, [7, 7], [7, 7]),  # hard switching
    )
    known = numbers(quantities.spreads(values, PARAMETERS, USUAL))
    assert known[Query.of("spread_f", knob="rho")].per_seed == (0.5, 1)
    assert known[Query.of("spread_f", knob="beta")].per_seed == pytest.approx((0.1, 0))
    assert known[Query.of("spread_g", knob="rho")].per_seed == pytest.approx((0.04, 0.03))


def test_differences_are_paired_by_seed():
    soft = {**FEDSGM, "switch": "soft"}
    values = rows(
        ({**soft, "beta": 40.0}, [1, 2], [0.5, 0.6]),
        ({**soft, "beta": 20.0}, [1.5, 2.25], [0.4, 0.3]),
        ({**soft, "beta": 1e9}, [7, 7], [7, 7]),
    )
    known = numbers(quantities.sharper(values, USUAL))
    more = Query.of("f_more", switch="soft", beta=20.0)
    assert known[more].per_seed == (0.5, 0.25)
    less = Query.of("g_more", switch="soft", beta=20.0)
    assert known[less].per_seed == pytest.approx((-0.1, -0.3))


@pytest.mark.parametrize(
    "changes", [{"participants": 20}, {"local_steps": 10}, {"beta": 20.0}, {"fraction": 1.0}]
)
def test_a_reader_may_choose_a_value_of_a_sweep(changes):
    p = STUDY.resolve("quick", **changes)
    specs = STUDY.specs(p)
    assert {"hard", "soft"} <= specs.keys()
    ((label, value),) = changes.items()
    assert specs["soft"].labels[label] == value
