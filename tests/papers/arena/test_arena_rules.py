"""The arena's rules by hand: budgets, tuning, three outcomes, Holm."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from papers.arena.quantities import (
    ROOM,
    TOLERANCE,
    best_of,
    column,
    derive,
    difference,
    holm,
    kept,
    standings,
)
from papers.arena.tables import query, standing
from papers.kit.numbers import mean
from tests.helpers.arena_runs import LEVEL, P, ending, field_of, named, trace_of

# Budgets


def test_a_budget_of_bits_counts_both_ways_and_ends_at_the_last_evaluation_it_pays_for():
    d = 4
    clients = 2
    rounds = 60
    limit = 0.4 * rounds * 32 * 2 * d * clients
    curve = [[1.0] * 7] * 3
    for cost, column_number in (
        (limit / 60, 6),
        (limit / 30, 3),
        (limit / 29.9, 2),
        (10 * limit, 0),
    ):
        for share in (0.0, 0.3, 1.0):
            run = trace_of(
                curve,
                curve,
                up=share * cost,
                down=(1 - share) * cost * 0.99999,
                d=d,
            )
            assert column(run, "bits", P) == column_number
            assert column(run, "grads", P) == 6


# Tuning


def test_tuning_takes_the_smallest_loss_with_room_below_the_tolerance():
    within, beyond = (1 + (ROOM + x) / 100 for x in (-0.1, 0.1))
    runs = {
        ("soft", 1): ending(0.4, beyond * LEVEL),  # best, but violates
        ("soft", 2): ending(0.6, within * LEVEL),
        ("soft", 3): ending(0.7, 0.5 * LEVEL),
    }
    assert field_of(runs).tuned("soft").config == 2
    noisy = runs | {("soft", 1): ending(0.4, beyond * LEVEL, spread=LEVEL)}
    assert field_of(noisy).tuned("soft").config == 2  # a large spread is no excuse
    bad = {("soft", 1): ending(0.4, 3 * LEVEL), ("soft", 2): ending(0.9, 2 * LEVEL)}
    assert field_of(bad).tuned("soft").config == 2
    assert best_of({1: 1.0, 2: 2.0}, {1: ROOM, 2: -9.0}) == 1


def test_only_validation_rows_decide_on_a_configuration():
    better = ending(0.6, LEVEL)
    two = ending(0.7, LEVEL)
    changed = {k: 9 + v for k, v in better.metrics.items() if "val_" not in k}
    runs = {("soft", 1): replace(better, metrics={**better.metrics, **changed}), ("soft", 2): two}
    assert field_of(runs).tuned("soft").config == 1


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


@pytest.mark.parametrize(
    ("apart", "spread", "standing"),
    [
        (3.0, 0.1, "behind"),
        (0.3, 5.0, "open"),  # the interval reaches 0
        (1.0, 0.3, "behind"),
    ],
)
def test_a_difference_is_shown_or_open(apart, spread, standing):
    gaps = {"soft": NARROW, "hard": NARROW + apart + spread * (TEN - TEN.mean())}
    words = standings(gaps, dict.fromkeys(gaps, True))
    assert words["hard"] == standing
    assert words["soft"] == ("winner" if standing == "behind" else "first")


def test_many_comparisons_make_each_stricter():
    """A difference that one comparison shows is not shown among twelve that show nothing."""
    late = 0.8 + TEN - TEN.mean()
    assert 0.01 < difference(late) < 0.05
    pair = {"soft": 0 * TEN, "hard": late}
    assert standings(pair, dict.fromkeys(pair, True))["hard"] == "behind"
    noise = {str(i): 9 + np.roll(30 * TEN, i) for i in range(12)}
    together = pair | noise
    assert standings(together, dict.fromkeys(together, True))["hard"] == "open"


def test_the_test_is_that_of_scipy():
    d = 0.4 + 0.5 * TEN
    expected = stats.ttest_rel(d + TEN, TEN).pvalue
    assert difference(d) == pytest.approx(expected)
    assert difference(np.zeros(3)) == 1
    assert difference(np.ones(3)) == 0


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_contest_pairs_seeds_and_tells_percent_of_the_optimum():
    runs = {
        ("soft", 1): ending(0.6, LEVEL),
        ("soft", 2): ending(0.9, 2 * LEVEL),
        ("penalty", 1): ending(0.7, LEVEL),
        ("fedavg", 1): ending(0.3, 3 * LEVEL),
    }
    numbers = derive(named(runs), P)
    words = {method: standing(numbers, "np", method) for method in ("soft", "penalty", "fedavg")}
    assert words == {"soft": "winner", "penalty": "behind", "fedavg": "violates"}
    assert numbers[query("behind", "np", "penalty")].value == pytest.approx(20)
    assert numbers[query("test_gap", "np", "soft")].value == pytest.approx(20)
    assert numbers[query("test_excess", "np", "fedavg")].value == pytest.approx(200)
    runs["soft", 1] = ending(0.8, LEVEL)
    assert standing(derive(named(runs), P), "np", "penalty") == "winner"
