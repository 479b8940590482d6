"""Rules do what they say: every condition at its border, its words, what decides."""

from dataclasses import replace
from math import nan

import numpy as np
import pytest

from papers.kit.numbers import Number, mean, seeds_for
from papers.kit.rules import (
    Control,
    Rule,
    Size,
    alike,
    all_of,
    any_of,
    between,
    falls,
    least,
    most,
    near,
    of,
    rises,
    stat,
    stat_value,
    value,
)

N = {
    "a": Number(1.0, 0.5, 1.5, (), "rounds"),
    "b": Number(2.0, 1.75, 2.5, ()),
    "c": Number(3.0, 3.0, 3.0, ()),
    "one seed": Number(1.0, nan, nan, (1.0,)),
    # the same seeds, which differ far more from one another than the two methods do
    "x": Number(2.5, 0.0, 5.0, (1.0, 2.0, 3.0, 4.0)),
    "y": Number(2.65, 0.1, 5.2, (1.1, 2.2, 3.1, 4.2)),
    "ratio": Number(1.0, 0.9, 1.1, (0.5, 2.5)),  # of means: not the mean of its values per seed
}


@pytest.mark.parametrize(
    ("condition", "holds", "words"),
    [
        (of("a") < 1.5, None, "`a` below 1.5"),
        (of("a") <= 1.5, True, "`a` at most 1.5"),
        (of("a") < 0.5, False, "`a` below 0.5"),
        (of("a") <= 0.5, None, "`a` at most 0.5"),
        (of("a") <= 0.4, False, "`a` at most 0.4"),
        (of("a") > 0.5, None, "`a` above 0.5"),
        (of("a") > 1.5, False, "`a` above 1.5"),
        (of("a") >= 0.5, True, "`a` at least 0.5"),
        (of("a") >= 1.6, False, "`a` at least 1.6"),
        (of("a") < of("b"), True, "`a` below `b`"),
        (of("b") < of("a"), False, "`b` below `a`"),
        (of("b") < 2 * of("a"), None, "`b` below 2 times `a`"),
        (of("x") < of("y"), True, "`x` below `y`"),  # seed by seed, though the intervals overlap
        (of("y") < of("x"), False, "`y` below `x`"),
        (of("y") <= 1.05 * of("x"), None, "`y` at most 1.05 times `x`"),
        (of("y") <= 1.3 * of("x"), True, "`y` at most 1.3 times `x`"),
        (of("x") < of("ratio"), None, "`x` below `ratio`"),
        (of("one seed") < 100, None, "`one seed` below 100"),
        (value("one seed") < 100, True, "value of `one seed` below 100"),
        (value("a") > value("b"), False, "value of `a` above value of `b`"),
        (value("a") < 2 * (value("b") - value("a")), True,
         "value of `a` below 2 times (value of `b` minus value of `a`)"),
        (abs(of("x") - of("y")) <= 0.3, True, "size of `x` minus `y` at most 0.3"),
        (abs(of("a") - of("b")) > 0, True, "size of `a` minus `b` above 0"),
        (abs(of("a") - of("c")) >= 1.6, None, "size of `a` minus `c` at least 1.6"),
        (most("x") <= 4.0, True, "largest `x` of any seed at most 4"),
        (most("x") <= 3.9, False, "largest `x` of any seed at most 3.9"),
        (least("x") >= 1.0, True, "smallest `x` of any seed at least 1"),
        (between("b", 1.75, 2.5), True, "`b` between 1.75 and 2.5"),
        (between("b", 1.8, 2.5), None, "`b` between 1.8 and 2.5"),
        (between("b", 2.6, 3), False, "`b` between 2.6 and 3"),
        (near("b", 2.2, 0.5), True, "`b` within 0.5 of 2.2"),
        (near("b", 2.2, 0.1), None, "`b` within 0.1 of 2.2"),
        (near("b", 4, 0.1), False, "`b` within 0.1 of 4"),
        (all_of(of("a") > 0, of("b") > 0), True, "`a` above 0 and `b` above 0"),
        (rises("a", "b", "c"), True, "values rise: `a`, `b`, `c`"),
        (rises("a", "c", "c"), False, "values rise: `a`, `c`, `c`"),
        (rises("x", "y", "a"), None, "values rise: `x`, `y`, `a`"),
        (falls("c", "a", "b"), False, "values fall: `c`, `a`, `b`"),
        (falls("y", "x"), True, "values fall: `y`, `x`"),
        (all_of(of("a") > 0, of("a") < 1), None, "`a` above 0 and `a` below 1"),
        (all_of(of("a") < 1, of("b") < 1), False, "`a` below 1 and `b` below 1"),
        (any_of(of("a") > 0, of("a") < 1), True, "`a` above 0 or `a` below 1"),
        (any_of(of("b") < 1, of("a") < 1), None, "`b` below 1 or `a` below 1"),
        (any_of(of("b") < 1, of("a") < 0), False, "`b` below 1 or `a` below 0"),
    ],
)  # fmt: skip
def test_a_condition_holds_fails_or_is_undecided_as_its_words_say(condition, holds, words):
    assert condition.holds(N) is holds
    assert condition.words == words


GOOD, BAD, OPEN = of("a") < of("b"), of("b") < of("a"), of("a") < 1


@pytest.mark.parametrize(
    ("parts", "verdict", "reason"),
    [
        ({"x": GOOD, "y": GOOD}, "reproduced", ""),
        ({"x": BAD, "y": BAD}, "not reproduced", "does not hold: x; y"),
        ({"x": GOOD, "y": BAD}, "partly", "does not hold: y"),
        ({"x": GOOD, "y": OPEN}, "undecided", "undecided: y"),
        ({"x": BAD, "y": OPEN}, "not reproduced", "does not hold: x. Undecided: y"),
        ({"x": GOOD, "y": BAD, "z": OPEN}, "partly", "does not hold: y. Undecided: z"),
        ({"x": GOOD, "cells": {"one": BAD, "two": GOOD, "three": BAD}}, "partly",
         "does not hold: cells (one; three)"),
    ],
)  # fmt: skip
def test_primary_parts_decide(parts, verdict, reason):
    found = Rule(parts, "")(N)
    assert (found.verdict, found.reason) == (verdict, reason)


def test_partly_never_stands_without_its_share():
    rule = Rule({"x": GOOD, "cells": {"one": BAD, "two": GOOD}}, "")
    assert rule(N).label == "partly (2 of 3)"
    assert Rule({"x": GOOD}, "")(N).label == "reproduced"


def test_a_rule_that_no_run_could_break_judges_nothing():
    rule = Rule({"kept": of("a") < 9}, "", proviso={"it is vacuous": of("b") < 1}, note="Why.")
    found = rule(N)
    assert (found.verdict, found.reason) == ("not judged", "not judged, because it is vacuous")
    assert found.parts == {"kept": "holds"}
    assert rule.words == "`a` below 9. Judged only given that `b` below 1. Why."
    biting = rule({**N, "b": Number(0.5, 0.4, 0.6, ())})
    assert (biting.verdict, biting.reason) == ("reproduced", "")


def test_what_was_measured_is_filled_in():
    rule = Rule({"x": of("a") > 0}, f"a {stat('a')}, b {stat_value('b', '.0%')}")
    assert rule(N).measured == "a 1 [0.5, 1.5] rounds, b 200%"
    assert Rule({"x": of("a") > 0}, lambda n: str(len(n)))(N).measured == str(len(N))


def test_a_rule_is_told_part_by_part():
    rule = Rule({"x": of("a") > 0, "y": {"one": of("b") < 9, "two": of("c") < 9}}, "", note="Why.")
    assert rule.words == "(1) `a` above 0; (2) `b` below 9; `c` below 9. Why."
    assert rule.keys() == {"a", "b", "c"}


def test_a_rule_is_read_on_its_control_and_loses_its_word_where_that_passes_too():
    numbers = {"soft.f": N["a"], "hard.f": N["c"], "ratio": N["b"], "idle": N["c"]}
    rule = Rule(
        {"f is small": of("soft.f") < 2}, "", control=Control("hard for soft", {"soft": "hard"})
    )
    assert rule(numbers).verdict == "reproduced"
    assert rule(numbers).control == "hard for soft: not reproduced"
    weak = Rule({"f is small": of("soft.f") < 5}, "", control=rule.control)
    assert weak(numbers).verdict == "not judged"
    assert "negative control passes" in weak(numbers).reason
    alone = {key: x for key, x in numbers.items() if key != "hard.f"}
    assert rule(alone).control == "hard for soft: not among these runs"
    by_key = Rule({"far": of("ratio") < 2.9}, "", control=Control("none", {"ratio": "idle"}))
    assert by_key(numbers).control == "none: not reproduced"


def test_the_size_of_an_effect_has_a_word_of_its_own():
    def size(*printed, key="b"):
        sizes = tuple(Size(key, x, "Table 1") for x in printed)
        return Rule({"x": of("b") > 1}, "", sizes=sizes)(N).size

    start = "The printed size lies in our interval: the paper prints 2.1 (Table 1), and ours is 2 ["
    assert size(2.1).startswith(start)
    assert size(3.0).startswith("The printed size lies outside our interval")
    assert size(1.0, key="one seed").startswith("One seed cannot test the printed size")
    assert size(2.1, 3.0) == "1 of 2 printed sizes lie in our intervals"
    assert size() == ""


def test_no_difference_is_a_quarter_of_the_effect_at_most():
    assert alike(of("x"), of("y"), of("c")).holds(N) is True  # 0.15 beside 3
    assert alike(of("a"), of("c"), of("c")).holds(N) is False


def test_an_undecided_difference_says_how_many_seeds_would_decide_it():
    x = mean([0.5, -0.3, 0.4, -0.2])
    rule = Rule({"above": of("x") > 0}, "")
    assert rule({"x": x}).seeds == seeds_for(np.array(x.per_seed), 0.1)
    printed = replace(rule, sizes=(Size("x", 0.5, "Table 1"),))
    assert printed({"x": x}).seeds == seeds_for(np.array(x.per_seed), 0.5)
    assert rule({"x": mean([0.5, 0.3, 0.4])}).seeds == 0  # decided
