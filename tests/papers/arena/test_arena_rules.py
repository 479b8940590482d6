"""The arena's rules by hand: budgets, tuning, three outcomes, Holm."""

import numpy as np
import pytest
from scipy import stats

from papers.arena.quantities import (
    TOLERANCE,
    difference,
    holm,
    kept,
    standings,
)
from papers.kit.numbers import mean
from tests.helpers.expect import near

# Budgets


# Tuning


# Keeping the constraint


@pytest.mark.parametrize(
    ("violations", "verdict"),
    [
        ([4.8, 4.9, 4.85], True),
        ([-40.0, -35.0, -50.0], True),
        ([5.2, 5.4, 5.3], False),
        ([-40.0, 5.3, 80.0], None),
        ([3.0, 4.9, 6.0], None),  # a mean below the tolerance is not enough
        ([4.0, 6.0, 9.0], None),
        ([TOLERANCE] * 3, True),
        ([1.0], None),  # a single seed decides nothing
    ],
)
def test_a_constraint_is_kept_violated_or_not_decided(violations, verdict):
    assert kept(mean(violations)) is verdict


# Who wins

TEN = np.random.default_rng(0).normal(size=10)
NARROW = 0.01 * TEN


def test_first_is_the_smallest_objective_of_those_that_are_shown_to_keep():
    gaps = {
        "soft": 5 + NARROW,
        "hard": 9 + NARROW[::-1],
        "fedavg": -30 + NARROW,
        "ssca": NARROW,
    }
    keeps = {"soft": True, "hard": True, "fedavg": False, "ssca": None}
    words = standings(gaps, keeps)
    assert words == {
        "soft": "winner",
        "hard": "behind",
        "fedavg": "violates",
        "ssca": "unclear",
    }
    assert standings(gaps, keeps | {"ssca": True})["ssca"] == "winner"
    nobody = standings(gaps, dict.fromkeys(gaps))
    assert set(nobody.values()) == {"unclear"}


def test_the_test_is_that_of_scipy():
    d = 0.4 + 0.5 * TEN
    expected = stats.ttest_rel(d + TEN, TEN).pvalue
    near(difference(d), expected)
    assert difference(np.zeros(3)) == 1
    assert difference(np.ones(3)) == 0


def test_holm_by_hand():
    near(holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
