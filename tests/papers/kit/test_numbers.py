"""Numbers with intervals, the rules of claims, and the paper's values beside ours."""

import numpy as np
import pytest
from scipy import stats

from fedlib.core import Trace
from papers.fedsgm.curves import after_feasible, jitter, oscillation, violations
from papers.kit.claims import PaperValue, check
from papers.kit.numbers import (
    Number,
    exact,
    mean,
    over_seeds,
    ratio,
    ratio_ends,
    seeds_for,
    share,
)

G = np.array([[0.9, 0.4, 0.6, 0.5, 0.7, 0.2], [0.9, 0.8, 0.7, 0.6, 0.6, 0.1]])
TRACE = Trace(
    {"g": G, "f": 1 - G},
    {},
    np.arange(6),
    (0, 1),
    {},
)


DRAWS = {
    "normal": lambda rng, shape: rng.normal(1, 0.25, shape),
    "exponential": lambda rng, shape: rng.exponential(1, shape),
}


def coverage(distribution, seeds, samples=20_000):
    """The share of simulated samples whose interval of a ratio of means covers 1, the true one."""
    rng = np.random.default_rng(seeds)
    draw = DRAWS[distribution]
    a = draw(rng, (samples, seeds))
    b = draw(rng, (samples, seeds))
    low, high = ratio_ends(a, b)
    covers = (low <= 1) & (high >= 1)
    return float(covers.mean())


@pytest.mark.parametrize("seeds", [3, 5, 10, 20])
def test_ratios_of_normal_data_are_covered_and_of_skewed_data_not_far_less(seeds):
    assert 0.93 <= coverage("normal", seeds) <= 0.98
    assert coverage("exponential", seeds) >= 0.87


class TestTheIntervalIsThatOfScipy:
    A = np.array([1.0, 4.0, 2.0, 2.5])

    def test_of_a_mean(self):
        n = mean(self.A)
        expected = stats.ttest_1samp(self.A, 0).confidence_interval()
        assert (n.low, n.high) == pytest.approx((expected.low, expected.high))

    def test_of_a_share(self):
        n = share([1, 0, 1, 1])
        expected = stats.binomtest(3, 4).proportion_ci(method="exact")
        assert n.value == 0.75
        assert (n.low, n.high) == pytest.approx((expected.low, expected.high))


class TestWithoutAnInterval:
    def test_equal_values_have_a_point(self):
        assert mean([3.0, 3.0, 3.0]) == Number(3.0, 3.0, 3.0, (3.0, 3.0, 3.0))
        assert mean([0.1] * 7).low == mean([0.1] * 7).high

    def test_a_single_seed_has_none(self):
        for n in (mean([0.82]), ratio([0.82], [1.0])):
            assert n.once
            assert np.isnan([n.low, n.high]).all()
            assert n.text() == "0.82 (one seed)"

    def test_nor_has_a_value_that_is_not_finite(self):
        n = mean([np.inf, 1.0, 2.0])
        assert np.isnan([n.low, n.high]).all()
        assert not n.once
        assert not mean([np.nan]).once

    def test_what_no_seed_changes_is_a_point(self):
        n = exact(2, "d")
        assert n == Number(2.0, 2.0, 2.0, (2.0,), "d")
        assert not n.once
        assert n.text() == "2 d"

    def test_it_survives_being_stored(self):
        n = mean([0.82], "%")
        assert Number.from_json(n.to_json()).once
        assert n.to_json()["low"] is None


class TestRatios:
    def test_a_ratio_is_that_of_the_means_in_pairs(self):
        a = np.array([10.0, 20.0, 60.0])
        n = ratio(a, a / 4)
        assert (n.value, n.low, n.high) == (4.0, 4.0, 4.0)
        assert n.per_seed == (4.0, 4.0, 4.0)

    def test_it_stays_positive_and_its_inverse_has_the_inverse_interval(self):
        a = np.array([1.0, 9.0, 2.0])
        b = np.array([3.0, 1.0, 2.0])
        n = ratio(a, b)
        inverse = ratio(b, a)
        assert n.low > 0
        expected = (1 / inverse.high, 1 / inverse.low)
        assert (n.low, n.high) == pytest.approx(expected)

    def test_of_a_negative_mean_it_lies_about_the_value(self):
        n = ratio([-1.0, -2.0, -3.0], [2.0, 3.0, 3.0])
        assert n.value - n.low == pytest.approx(n.high - n.value)


class TestShares:
    def test_in_percent(self):
        n = share([True, False], "%")
        assert (n.value, n.per_seed) == (50.0, (100.0, 0.0))
        expected = 100 * share([True, False]).high
        assert n.high == pytest.approx(expected)

    def test_all_of_three_seeds_still_has_a_width(self):
        assert share([1, 1, 1]).low == pytest.approx(0.2924, abs=1e-4)


def test_a_measure_gives_values_or_truth_values_or_a_number():
    assert over_seeds([1, 0]) == mean([1.0, 0.0])
    assert over_seeds([False, True], "%") == share([False, True], "%")
    assert over_seeds(exact(5, "rounds")) == exact(5, "rounds")


def test_what_is_read_off_the_curves():
    assert violations(TRACE, 0.5).tolist() == [3, 5]
    assert after_feasible(TRACE, 0.5).tolist() == [2, 0]
    assert oscillation(TRACE) == pytest.approx([150.0, 50.0])
    assert jitter(TRACE, 2) == pytest.approx([100.0, 0.0])
    assert TRACE.late("g", 0.4).tolist() == pytest.approx([0.6, 0.6])


def test_the_papers_value_agrees_within_the_tolerance_and_not_by_a_wide_interval():
    ours = Number(5.0, 4.2, 5.8, (5.0,))
    value = PaperValue(
        "ratio",
        "r",
        4.0,
        "about 4",
        "W",
        rtol=0.1,
    )
    assert value.status(ours) == "differs"
    assert value.status(Number(5.0, 3.9, 5.8, ())) == "open"
    assert value.status(Number(4.3, 3.9, 4.7, ())) == "agrees"
    assert (
        PaperValue(
            "r",
            "r",
            4.0,
            "",
            "W",
            0.25,
        ).status(ours)
        == "agrees"
    )
    bound = PaperValue(
        "r",
        "r",
        4.9,
        "at most",
        "W",
        0.05,
        at_most=True,
    )
    assert bound.status(ours) == "agrees"
    assert bound.status(Number(5.2, 4.2, 5.8, ())) == "differs"
    uncertain = PaperValue(
        "ratio",
        "r",
        4.0,
        "4 ± 0.3",
        "W",
        rtol=0.1,
        spread=0.3,
    )
    assert uncertain.status(Number(4.6, 4.5, 4.9, ())) == "agrees"
    assert uncertain.status(Number(5.0, 4.3, 5.7, ())) == "open"
    assert uncertain.status(Number(5.0, 4.4, 5.7, ())) == "differs"


def test_check_prints_one_stable_line(capsys):
    check("it holds", np.bool_(True))
    check("it holds", 0 > 1, "0 of 3")
    assert capsys.readouterr().out == "it holds: yes\nit holds: NO (0 of 3)\n"


def test_the_seeds_for_an_effect_are_those_of_the_noncentral_t():
    x = np.array([0.0, 1.0, 2.0])  # scatter 1; tables of the power of a paired t test say 12.6
    assert seeds_for(x, 1.0) == 13
    assert seeds_for(x, 10.0) == 3
    assert seeds_for(np.ones(4), 1.0) == 3
