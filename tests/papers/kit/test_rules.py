"""Rules do what they say: every condition at its border, its words, and what a page must have."""

from dataclasses import replace
from math import nan

import pytest

from papers import STUDIES
from papers.kit.claims import Claim, Reading
from papers.kit.needs import Needs, differences
from papers.kit.numbers import Number
from papers.kit.rules import (
    Outcome,
    Part,
    Rule,
    all_of,
    any_of,
    average,
    between,
    falls,
    least,
    most,
    near,
    of,
    rises,
    same_order,
    told,
    told_value,
    value,
    within,
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
        (most("x") <= 4.0, True, "every seed's `x` at most 4"),
        (most("x") <= 3.9, False, "every seed's `x` at most 3.9"),
        (least("x") >= 1.0, True, "every seed's `x` at least 1"),
        (average("x", "y") < of("b"), None, "mean of `x`, `y` below `b`"),
        (average("x", "y") > of("x"), True, "mean of `x`, `y` above `x`"),
        (between("b", 1.75, 2.5), True, "`b` between 1.75 and 2.5"),
        (between("b", 1.8, 2.5), None, "`b` between 1.8 and 2.5"),
        (between("b", 2.6, 3), False, "`b` between 2.6 and 3"),
        (near("b", 2.2, 0.5), True, "`b` within 0.5 of 2.2"),
        (near("b", 2.2, 0.1), None, "`b` within 0.1 of 2.2"),
        (near("b", 4, 0.1), False, "`b` within 0.1 of 4"),
        (within("c", 3.1, 0.1), True, "`c` within 10 % of 3.1"),
        (within("b", -2.2, 0.1), False, "`b` within 10 % of -2.2"),
        (all_of(of("a") > 0, of("b") > 0), True, "`a`, `b` above 0"),
        (rises("a", "b", "c"), True, "values rise: `a`, `b`, `c`"),
        (rises("a", "c", "c"), False, "values rise: `a`, `c`, `c`"),
        (rises("x", "y", "a"), None, "values rise: `x`, `y`, `a`"),
        (falls("c", "a", "b"), False, "values fall: `c`, `a`, `b`"),
        (falls("y", "x"), True, "values fall: `y`, `x`"),
        (same_order(["a", "b"], ["b", "c"]), True,
         "values in the same order: `a`, `b` and `b`, `c`"),
        (same_order(["a", "b"], ["c", "b"]), False,
         "values in the same order: `a`, `b` and `c`, `b`"),
        (same_order(["a", "b"], ["x", "b"]), None,
         "values in the same order: `a`, `b` and `x`, `b`"),
        (all_of(of("a") > 0, of("a") < 1), None, "`a` above 0 and `a` below 1"),
        (all_of(of("a") < 1, of("b") < 1), False, "`a`, `b` below 1"),
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
        ({"x": BAD, "y": OPEN}, "undecided", "does not hold: x. undecided: y"),
        ({"x": GOOD, "y": BAD, "z": OPEN}, "partly", "does not hold: y. undecided: z"),
        ({"x": GOOD, "cells": {"one": BAD, "two": GOOD, "three": BAD}}, "partly",
         "does not hold: cells, one; cells, three"),
    ],
)  # fmt: skip
def test_primary_parts_decide(parts, verdict, reason):
    found = Rule(parts, "", observations={"seen": BAD})(N)
    assert (found.verdict, found.reason) == (verdict, reason)
    assert found.parts[-1] == Part("seen", "fails", primary=False)


def test_partly_never_stands_without_its_share():
    rule = Rule({"x": GOOD, "cells": {"one": BAD, "two": GOOD}}, "", observations={"o": GOOD})
    assert rule(N).label == "partly (2 of 3)"
    assert rule.names == "x; cells (one, two)"
    assert Rule({"x": GOOD}, "")(N).label == "reproduced"
    assert Outcome("not judged", "").share == ""


def test_observations_have_words_of_their_own():
    rule = Rule({"x": of("a") > 0}, "", note="Why.", observations={"y": of("b") > 0})
    assert (rule.words, rule.observed) == ("`a` above 0. Why.", "`b` above 0.")
    assert Rule({"x": of("a") > 0}, "").observed == ""
    assert len(rule.conditions()) == 2


def test_a_rule_that_no_run_could_break_judges_nothing():
    rule = Rule({"kept": of("a") < 9}, "", proviso={"it is vacuous": of("b") < 1}, note="Why.")
    found = rule(N)
    assert (found.verdict, found.reason) == ("not judged", "not judged, because it is vacuous")
    assert found.parts == (Part("kept", "holds", True),)
    assert rule.words == "`a` below 9. Judged only given that `b` below 1. Why."
    assert len(rule.conditions()) == 2
    biting = rule({**N, "b": Number(0.5, 0.4, 0.6, ())})
    assert (biting.verdict, biting.reason) == ("reproduced", "")


def test_what_was_measured_is_filled_in():
    rule = Rule({"x": of("a") > 0}, f"a {told('a')}, b {told_value('b', '.0%')}")
    assert rule(N).measured == "a 1 [0.5, 1.5] rounds, b 200%"
    assert Rule({"x": of("a") > 0}, lambda n: str(len(n)))(N).measured == str(len(N))


def test_conditions_of_one_form_are_told_together():
    rule = Rule({"x": of("a") > 0, "y": of("c") < 9, "z": of("b") > 0}, "", note="Why 9.")
    assert rule.words == "(1) `a`, `b` above 0; (2) `c` below 9. Why 9."


def test_many_keys_are_told_in_short_and_pairs_in_turn():
    runs = [f"soft_B{b}_last" for b in (1, 10)]
    keys = [f"{run}.{m}" for run in runs for m in ("f_1", "f_2", "g")]
    rule = Rule({k: of(k) < 0 for k in [*keys, "hard.f_1"]}, "")
    assert rule.words == "`soft_{B1, B10}_last.{f_1, f_2, g}`, `hard.f_1` below 0."
    pairs = Rule({k: of(k) < 2 * of(k.replace("soft", "hard")) for k in keys}, "")
    soft, hard = (f"`{kind}_{{B1, B10}}_last.{{f_1, f_2, g}}`" for kind in ("soft", "hard"))
    assert pairs.words == f"{soft} below 2 times {hard}, each in turn."
    to_one = Rule({k: of(k) < of("base.f") for k in keys}, "")
    assert to_one.words == f"{soft} below `base.f`, each in turn."
    pairs = [("a", "b"), ("a", "c"), ("a", "d"), ("b", "d")]
    some = Rule({a + b: of(a) < of(b) for a, b in pairs}, "")
    assert some.words.startswith("`a` below `b`; `a` below `c`; ")


def claim(**more):
    rule = Rule({"small": of("a") < 2}, told("a"))
    return Claim("x/C1", "W", "", "", "", rule, ("run",), **more)


def config(seeds=5, **algorithm):
    return {"run": {"algorithm": {"lr": 0.1, **algorithm}, "seeds": [*range(seeds)], "rounds": 9}}


@pytest.mark.parametrize(
    ("configs", "reason"),
    [
        (config(lr=0.2), "run has algorithm.lr 0.2, the paper's setting 0.1"),
        (config(seeds=2), "run has 2 seeds, at least 3 are needed"),
        ({}, "the run run is not among these"),
        (config(beta=1.0), "run has algorithm.beta 1.0, the paper's setting none"),
    ],
)
def test_a_claim_is_not_judged_on_other_runs(configs, reason):
    found = claim().verdict(N, configs, config())
    assert (found.verdict, found.reason) == ("not judged", f"not judged, because {reason}")
    assert not found.measured


def test_a_claim_is_judged_on_the_papers_setting_with_fewer_seeds():
    assert claim().verdict(N, config(seeds=3), config()).verdict == "reproduced"
    few = claim().verdict(N, config(seeds=1), config(seeds=1))
    assert few.reason == "not judged, because run has 1 seed, at least 3 are needed"
    exact = claim(needs=Needs(exact=True))
    assert exact.verdict(N, config(seeds=1), config(seeds=1)).verdict == "reproduced"


def test_seeds_that_are_runs_of_their_own_count_together():
    runs = tuple(f"run_seed{s}" for s in range(3))
    configs = {r: {"seeds": [s], "rounds": 9} for s, r in enumerate(runs)}
    rule = claim().rule
    assert Claim("x/C1", "W", "", "", "", rule, runs).verdict(N, configs, configs).reason == ""
    two = Claim("x/C1", "W", "", "", "", rule, runs[:2]).verdict(N, configs, configs)
    assert two.reason == "not judged, because run has 2 seeds, at least 3 are needed"


@pytest.mark.parametrize(
    ("paper", "reason"),
    [
        ({"rounds": 27}, ""),
        ({"rounds": 28}, "run has 9 of the paper's 28 rounds, a third is needed"),
        ({"algorithm.lr": 0.1}, ""),
        ({"algorithm.lr": 0.3}, "run has algorithm.lr 0.1, the paper 0.3"),
        ({"algorithm.beta": 0.3}, ""),  # of another method's runs
    ],
)
def test_a_stored_run_that_falls_short_of_the_paper_is_not_judged(paper, reason):
    found = claim(needs=Needs(paper=paper)).verdict(N, config(), config())
    assert found.reason == (f"not judged, because {reason}" if reason else "")


def test_a_claim_on_a_run_in_ill_health_is_not_judged():
    ill = {"run": "loss constant from round 5"}
    found = claim().verdict(N, config(), config(), health=ill)
    assert found.reason == "not judged, because run is not healthy: loss constant from round 5"
    meant = claim(needs=Needs(dead=("ru*",)))
    assert meant.verdict(N, config(), config(), health=ill).verdict == "reproduced"
    counted = claim(needs=Needs(exact=True))
    assert counted.verdict(N, config(), config(), health=ill).verdict == "reproduced"
    assert claim().verdict(N, config(), config(), health={"run": ""}).verdict == "reproduced"


def test_every_reading_is_judged_and_the_claims_own_decides():
    other = Reading("as printed", Rule({"large": of("a") > 2}, ""), ("run",))
    one = claim(reading="as in the code", readings=(other,))
    found = one.verdicts(N, config(), config())
    assert [(k, v.verdict) for k, v in found.items()] == [
        ("as in the code", "reproduced"),
        ("as printed", "not reproduced"),
    ]
    assert one.verdict(N, config(), config()) == found["as in the code"]
    missing = replace(one, readings=(replace(other, runs=("gone",)),))
    assert missing.all_runs == ("run", "gone")
    assert missing.verdicts(N, config(), config())["as printed"].verdict == "not judged"


def test_parameters_that_stand_in_no_configuration_are_needs_of_their_own():
    one = claim(needs=Needs(parameters=("late",)))
    changed = {"late": (0.5, 0.2), "lrs": ((1,), (1, 2))}
    found = one.verdict(N, config(), config(), changed)
    assert found.reason == "not judged, because late is 0.5, the paper's setting 0.2"
    assert one.verdict(N, config(), config(), {"lrs": (1, 2)}).verdict == "reproduced"


def test_a_list_with_the_papers_values_is_no_change():
    study = STUDIES["ssca_tradeoff"]
    same = study.resolve("full", levels=[*study.profiles["full"]["levels"]], seeds=range(10))
    assert study.changed(same) == {}
    assert [*study.changed({**same, "levels": [0.3]})] == ["levels"]


def test_a_run_that_is_not_stored_cannot_be_compared():
    found = claim().verdict(N, config(), {})
    assert found.reason == "not judged, because no run run of the paper's setting is stored"


def test_the_last_bit_of_a_number_is_no_other_setting():
    assert claim().verdict(N, config(lr=0.1 + 2e-17 + 1e-16), config()).verdict == "reproduced"
    assert claim().verdict(N, config(lr=0.1 + 1e-8), config()).verdict == "not judged"


def test_differences_go_to_the_innermost_value():
    a, b = {"x": {"y": 1, "z": [1, 2]}}, {"x": {"y": 1, "z": [1, 3]}, "w": 0}
    assert dict(differences(a, b)) == {"x.z": ([1, 2], [1, 3]), "w": ("none", 0)}


def test_another_tolerance_is_not_judged_by_the_papers_level():
    study = STUDIES["np_workshop"]
    change = {"tolerance": 0.05, "rounds": 3, "settle_rounds": 5, "seeds": [0, 1, 2]}
    params = study.resolve("full", **change)
    traces = study.compute("full", progress=False, **change)
    numbers = study.numbers(traces, "full", **change)
    found = [study.verdict(c, traces, numbers, params) for c in study.claims]
    assert {o.verdict for o in found} == {"not judged"}
    change["tolerance"] = 0.1
    main = study.verdict(study.claims[0], traces, numbers, params)
    assert "algorithm.tolerance 0.05, the paper's setting 0.1" in main.reason
