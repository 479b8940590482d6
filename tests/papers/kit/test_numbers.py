"""Numbers with intervals, the rules of claims, and the paper's values beside ours."""

import numpy as np
import pytest

from fedlib.core import Trace
from papers.fedsgm.curves import after_feasible, first_round, jitter, oscillation, violations
from papers.kit.claims import Outcome, PaperValue, check, judge
from papers.kit.numbers import Number, mean, ratio, significant

G = np.array([[0.9, 0.4, 0.6, 0.5, 0.7, 0.2], [0.9, 0.8, 0.7, 0.6, 0.6, 0.1]])
TRACE = Trace({"g": G, "f": 1 - G}, {}, np.arange(6), (0, 1), {})


def test_the_interval_covers_the_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(1)
    hits = [
        abs(n.value) <= 9 and n.low <= 0 <= n.high
        for n in (mean(rng.normal(size=30)) for _ in range(120))
    ]
    assert 0.86 <= np.mean(hits) <= 1.0


def test_the_mean_of_equal_values_has_a_point_as_interval():
    assert mean([3.0, 3.0, 3.0]) == Number(3.0, 3.0, 3.0, (3.0, 3.0, 3.0))


def test_a_ratio_is_that_of_the_means_resampled_in_pairs():
    a = np.array([10.0, 20.0, 60.0])
    n = ratio(a, a / 4)
    assert (n.value, n.low, n.high) == (4.0, 4.0, 4.0)
    assert n.per_seed == (4.0, 4.0, 4.0)


def test_six_digits_and_null():
    assert significant(0.123456789) == 0.123457
    assert significant(float("nan")) is None


def test_what_is_read_off_the_curves():
    assert violations(TRACE, 0.5).tolist() == [3, 5]
    assert after_feasible(TRACE, 0.5).tolist() == [2, 0]
    assert first_round(TRACE, f=0.6, g=0.5).tolist() == [1, 5]
    assert oscillation(TRACE) == pytest.approx([150.0, 50.0])
    assert jitter(TRACE, 2) == pytest.approx([100.0, 0.0])
    assert TRACE.late("g", 0.4).tolist() == pytest.approx([0.6, 0.6])


def test_verdicts_follow_the_parts():
    assert judge({"a": True, "b": True}, "m") == Outcome("reproduced", "m")
    assert judge({"a": True, "b": False}, "m") == Outcome("partly", "m", "does not hold: b")
    assert judge({"a": False}, "m").verdict == "not reproduced"


def test_the_papers_value_agrees_inside_the_interval_or_the_tolerance():
    ours = Number(5.0, 4.2, 5.8, (5.0,))
    value = PaperValue("ratio", "r", 4.0, "about 4", "W", rtol=0.1)
    assert value.status(ours) == "differs"
    assert value.status(Number(5.0, 3.9, 5.8, ())) == "agrees"
    assert PaperValue("r", "r", 4.0, "", "W", 0.25).status(ours) == "agrees"
    assert PaperValue("r", "r", None, "curve", "W").status(ours) == "not printed"
    bound = PaperValue("r", "r", 4.9, "at most", "W", 0.05, at_most=True)
    assert bound.status(ours) == "agrees"
    assert bound.status(Number(5.2, 4.2, 5.8, ())) == "differs"


def test_check_prints_one_stable_line(capsys):
    assert check("it holds", np.bool_(True))
    assert not check("it holds", 0 > 1, "0 of 3")
    assert capsys.readouterr().out == "it holds: yes\nit holds: NO (0 of 3)\n"
