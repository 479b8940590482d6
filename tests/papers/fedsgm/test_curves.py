"""What is read off the curves of a constrained run, on curves written down by hand."""

import numpy as np
import pytest

import fedlib as fl
from papers.fedsgm.curves import band, excess, oscillation
from papers.fedsgm.np_unified import STUDY
from papers.fedsgm.np_unified.numbers import _of_three, _right, _spreads


def trace(f, g):
    """Rounds 0 .. T of some seeds; the last column is the final model."""
    curves = {"f": np.array(f, float), "g": np.array(g, float)}
    seeds, rounds = curves["f"].shape
    return fl.Trace(curves, {}, np.arange(rounds), tuple(range(seeds)), {})


def flat(f, g, rounds=11):
    return trace(*(np.repeat(np.array(x, float)[:, None], rounds, 1) for x in (f, g)))


def test_the_band_is_the_distance_from_the_median_curve():
    curves = [[1, 1, 0], [2, 4, 0], [4, 5, 0]]
    np.testing.assert_allclose(band(trace(curves, curves), "f"), [2000, 0, 1500])


def test_excess_counts_what_is_above_in_the_second_half():
    g = [[1, 1, 0.06, 0.04, 0], [1, 1, 0.05, 0.05, 0]]
    np.testing.assert_allclose(excess(trace(g, g), 0.05), [5, 0], atol=1e-12)


def test_oscillation_of_either_curve():
    zigzag, line = [[0, 1, 0, 1, 0, 1, 9]], [[3, 3, 3, 3, 3, 3, 9]]
    assert oscillation(trace(zigzag, line), "f") == [1000]
    assert oscillation(trace(zigzag, line)) == [0]


def test_means_over_three_seeds():
    late = flat([1] * 4, [0.03, 0.05, 0.05, 0.09])  # 3 of 4 means exceed 1.05 times 0.05
    assert _of_three(late, 0.05).value == 0.25
    assert _of_three(late, 0.06).value == 0.75
    assert _of_three(flat([1] * 2, [0.05, 0.05]), 0.05).value == 1  # of two seeds, their mean


def test_a_penalty_is_right_if_feasible_and_nearly_as_good():
    p = {"rhos": (0.5, 20.0), "tolerance": 0.05}
    best = {
        "soft_tuned": flat([1, 1, 1], [0.05] * 3),
        "penalty_rho0.5": flat([0.5, 0.5, 1.2], [0.06, 0.06, 0.05]),
        "penalty_rho20": flat([1.2, 1.3, 1.3], [0.02] * 3),
    }
    found = _right(best, p)
    assert found["penalty_rho0.5.right"].per_seed == (0, 0, 1)
    assert found["penalty_rho20.right"].per_seed == (1, 0, 0)
    assert found["penalty.right"].value == pytest.approx(1 / 3)


def test_spreads_are_over_grids_of_equal_width():
    p = STUDY.resolve("full")
    names = STUDY.specs(p)
    traces = {n: flat([1, 1], [0.05, 0.05]) for n in names}
    traces["penalty_rho0.001_lr0.3"] = flat([9, 9], [9, 9])  # too far from the others
    traces["penalty_rho100_lr0.3"] = flat([1.5, 2], [0.01, 0.02])
    traces["soft_beta20"] = flat([1.1, 1], [0.04, 0.05])
    found = _spreads(traces, p)
    assert found["spread.rho_f"].per_seed == (0.5, 1)
    assert found["spread.beta_f"].per_seed == pytest.approx((0.1, 0))
    assert found["spread.rho_g"].per_seed == pytest.approx((0.04, 0.03))
