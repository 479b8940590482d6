"""Rules do what they say: every condition at its border, its words, what decides."""

from dataclasses import replace
from math import nan

import numpy as np
import pytest

from papers.kit.claims import Claim
from papers.kit.numbers import Number, mean, seeds_for
from papers.kit.rules import (
    STATES,
    Control,
    Rule,
    Size,
    alike,
    all_of,
    any_of,
    between,
    falls,
    given,
    least,
    most,
    near,
    of,
    part_of,
    rises,
    value,
)
from tests.helpers.unlabelled import quantities

N = {
    "a": Number(1.0, 0.5, 1.5, (), "rounds"),
    "b": Number(2.0, 1.75, 2.5, ()),
    "c": Number(3.0, 3.0, 3.0, ()),
    "one seed": Number(1.0, nan, nan, (1.0,)),
    # the same seeds, which differ far more from one another than the two methods do
    "x": Number(2.5, 0.0, 5.0, (1.0, 2.0, 3.0, 4.0)),
    "y": Number(2.65, 0.1, 5.2, (1.1, 2.2, 3.1, 4.2)),
    "ratio": Number(
        1.0,
        0.9,
        1.1,
        (0.5, 2.5),
    ),  # of means: not the mean of its values per seed
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
def test_a_condition_holds_fails_or_is_open_as_its_words_say(condition, holds, words):
    assert condition.holds(N) is holds
    assert condition.words == words


GOOD = of("a") < of("b")
BAD = of("b") < of("a")
OPEN = of("a") < 1


@pytest.mark.parametrize(
    ("primary", "verdict", "reason"),
    [
        ({"x": GOOD, "y": GOOD}, "reproduced", ""),
        ({"x": BAD, "y": BAD}, "not reproduced", "does not hold: x; y"),
        ({"x": GOOD, "y": BAD}, "mixed", "does not hold: y"),
        ({"x": GOOD, "y": OPEN}, "mixed", "open: y"),
        ({"x": OPEN, "y": OPEN}, "open", "open: x; y"),
        ({"x": BAD, "y": OPEN}, "not reproduced", "does not hold: x. Open: y"),
        ({"x": GOOD, "y": BAD, "z": OPEN}, "mixed", "does not hold: y. Open: z"),
        ({"x": GOOD, "cells": {"one": BAD, "two": GOOD, "three": BAD}}, "mixed",
         "does not hold: cells (one; three)"),
        ({"cells": {"one": OPEN, "two": OPEN}, "": {"three": BAD, "four": GOOD}}, "mixed",
         "does not hold: (three). Open: cells"),
    ],
)  # fmt: skip
def test_primary_parts_decide(primary, verdict, reason):
    outcome = Rule(primary)(N)
    assert (outcome.verdict, outcome.reason) == (verdict, reason)


def test_a_verdict_shows_its_counts():
    cells = {"one": BAD, "two": GOOD, "three": OPEN, "four": GOOD}
    assert Rule({"x": GOOD, "cells": cells})(N).label == "mixed: 3 hold, 1 fails, 1 open"
    assert Rule({"x": BAD, "y": BAD, "z": OPEN})(N).label == "not reproduced: 2 fail, 1 open"
    assert Rule({"x": GOOD})(N).label == "reproduced: 1 holds"
    assert Rule({"x": OPEN})(N).label == "open: 1 part"
    assert Rule({"x": OPEN, "y": OPEN})(N).label == "open: 2 parts"
    theorem = Claim(
        "x/C1",
        "W",
        "",
        "",
        Rule({"x": GOOD}),
        (),
        kind="proved",
    )
    assert theorem.worded(theorem.rule(N)).label == "proved"


@pytest.mark.parametrize(
    ("condition", "value", "relation", "bounds"),
    [
        (of("a") < 1.5, (1.0, 0.5, 1.5), "below", (1.5, nan)),
        (of("a") < of("c"), (-2.0, -2.5, -1.5), "below", (0.0, nan)),
        (of("y") >= of("x"), (0.15, 0.058, 0.242), "at least", (0.0, nan)),
        (2 * of("a") > of("c"), (-1.0, -2.0, 0.0), "above", (0.0, nan)),
        (most("x") <= 3.9, (4.0, 4.0, 4.0), "at most", (3.9, nan)),
        (near("b", 2.2, 0.5), (2.0, 1.75, 2.5), "between", (1.7, 2.7)),
        # of several comparisons the least clear of those that decide
        (rises("a", "b", "c"), (1.0, 0.25, 2.0), "above", (0.0, nan)),
        (all_of(of("a") > 0, of("b") < 1, of("c") < 1), (2.0, 1.75, 2.5), "below", (1.0, nan)),
        (all_of(of("b") > 0, of("a") < 1), (1.0, 0.5, 1.5), "below", (1.0, nan)),
    ],
)
def test_a_part_has_the_value_that_its_condition_compares(condition, value, relation, bounds):
    condition_part = part_of("", "", condition, N)
    number = condition_part.value
    statement = condition_part.statement
    assert (number.value, number.low, number.high) == pytest.approx(value, abs=1e-3)
    assert statement.relation == relation
    assert (statement.bound, statement.top) == pytest.approx(bounds, nan_ok=True)
    assert STATES[statement.state(N)] == condition_part.state


def test_a_part_has_unit_and_seeds_of_its_numbers():
    assert part_of("", "", of("a") < 2, N).unit == "rounds"
    assert part_of("", "", of("a") < of("b"), N).unit == ""  # of two units none
    assert part_of("", "", of("x") < of("y"), N).seeds == 4
    assert part_of("", "", of("c") < 9, N).seeds == 0  # no seed changes it
    assert part_of("", "", any_of(of("a") < 1, of("b") < 1), N).value is None


def test_a_rule_that_no_run_could_break_judges_nothing():
    rule = Rule(
        {"kept": of("a") < 9},
        proviso={"it is vacuous": of("b") < 1},
        note="Why.",
    )
    outcome = rule(N)
    assert outcome.verdict == "not judged"
    assert outcome.reason == "not judged, because it is vacuous"
    assert outcome.states == {"kept": "holds"}
    assert rule.words == "`a` below 9. Judged only given that `b` below 1. Why."
    biting = rule({**N, "b": Number(0.5, 0.4, 0.6, ())})
    assert (biting.verdict, biting.reason) == ("reproduced", "")


def test_what_was_measured_is_said_part_by_part():
    rule = Rule({"x": of("a") > 0, "y": {"one": of("b") < of("c"), "two": of("b") < 9}})
    assert rule(N).measured == (
        "x: 1 [0.5, 1.5] rounds; y, one: 2, 3 (difference -1 [-1.25, -0.5]); y, two: 2 [1.75, 2.5]"
    )


def test_a_rule_is_told_part_by_part():
    rule = Rule({"x": of("a") > 0, "y": {"one": of("b") < 9, "two": of("c") < 9}}, note="Why.")
    assert rule.words == "(1) `a` above 0; (2) `b` below 9; `c` below 9. Why."
    assert rule.keys() == {"a", "b", "c"}


def test_a_condition_whose_premise_fails_is_open_and_shows_what_it_compares():
    each = {"lead": mean([-3.0, -2.0, -1.5]), "trained": mean([0.4, 0.5, 0.6])}
    condition = given(of("trained") > 0.9, of("lead") > 0)
    part = part_of("the lead grows", "", condition, each)
    assert part.state == "open"
    assert part.value == each["lead"]
    outcome = Rule({"the lead grows": condition})(each)
    assert outcome.seeds == 0  # no number of seeds makes the premise true


def test_a_rule_is_read_on_its_control_and_loses_its_word_where_that_passes_too():
    numbers = {"soft.f": N["a"], "hard.f": N["c"], "ratio": N["b"], "idle": N["c"]}
    stored = quantities(numbers)
    control = Control("hard for soft", {"soft.f": "hard.f"})
    rule = Rule({"f is small": of("soft.f") < 2}, control=control)
    outcome = rule(stored)
    assert outcome.verdict == "reproduced"
    assert outcome.control == "hard for soft"
    assert outcome.control_verdict == "not reproduced"
    assert outcome.parts[0].control == "fails"
    weak = Rule({"f is small": of("soft.f") < 5}, control=rule.control)
    assert weak(stored).verdict == "not judged"
    assert "negative control passes" in weak(stored).reason
    alone = quantities({key: x for key, x in numbers.items() if key != "hard.f"})
    assert rule(alone).control_verdict == ""
    assert rule(alone).parts[0].control == ""
    by_key = Rule({"far": of("ratio") < 2.9}, control=Control("none", {"ratio": "idle"}))
    assert by_key(stored).control_verdict == "not reproduced"


def test_a_control_that_passes_hides_no_part_that_fails():
    numbers = quantities({"soft.f": N["c"], "hard.f": N["a"]})
    control = Control("hard for soft", {"soft.f": "hard.f"})
    rule = Rule({"f": of("soft.f") < 2, "g": of("soft.f") < 9}, control=control)
    outcome = rule(numbers)
    assert outcome.control_verdict == "reproduced"
    assert outcome.label == "mixed: 1 holds, 1 fails"


def test_the_size_of_an_effect_has_a_word_of_its_own():
    def size(*printed):
        sizes = tuple(Size("b", x, "Table 1") for x in printed)
        return Rule({"x": of("b") > 1}, sizes=sizes)(N).size

    start = "The printed size lies in our interval: the paper prints 2.1 (Table 1), and ours is 2 ["
    assert size(2.1).startswith(start)
    assert size(3.0).startswith("The printed size lies outside our interval")
    assert size(2.1, 3.0) == "1 of 2 printed sizes lie in our intervals"
    assert size() == ""
    uncertain = Rule(
        {"x": of("b") > 1},
        sizes=(Size("b", 3.0, "Table 1", 0.5),),
    )(N).size
    assert uncertain.startswith("The printed size lies in our interval: the paper prints 3 ± 0.5")


def test_no_difference_is_a_quarter_of_the_effect_at_most():
    assert alike(of("x"), of("y"), of("c")).holds(N) is True  # 0.15 beside 3
    assert alike(of("a"), of("c"), of("c")).holds(N) is False


def test_an_open_difference_says_how_many_seeds_would_decide_it():
    x = mean([0.5, -0.3, 0.4, -0.2])
    rule = Rule({"above": of("x") > 0})
    assert rule({"x": x}).seeds == seeds_for(np.array(x.per_seed), 0.1)
    printed = replace(rule, sizes=(Size("x", 0.5, "Table 1"),))
    assert printed({"x": x}).seeds == seeds_for(np.array(x.per_seed), 0.5)
    assert rule({"x": mean([0.5, 0.3, 0.4])}).seeds == 0  # decided
