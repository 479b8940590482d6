"""Rules do what they say: every condition at its border, its words, and what a page must have."""

import pytest

from papers import STUDIES
from papers.kit.claims import Claim
from papers.kit.needs import Needs, differences
from papers.kit.numbers import Number
from papers.kit.rules import (
    Rule,
    all_of,
    any_of,
    average,
    between,
    falls,
    least,
    most,
    of,
    rises,
    same_order,
    told,
    told_value,
    value,
    within,
)

N = {
    "a": Number(1.0, 0.5, 1.5, (0.5, 1.5), "rounds"),
    "b": Number(2.0, 1.75, 2.5, (1.7, 2.5)),
    "c": Number(3.0, 3.0, 3.0, (3.0, 3.0)),
}


@pytest.mark.parametrize(
    ("condition", "holds", "words"),
    [
        (of("a") < 1.5, False, "interval of `a` below 1.5"),
        (of("a") <= 1.5, True, "interval of `a` at most 1.5"),
        (of("a") > 0.5, False, "interval of `a` above 0.5"),
        (of("a") >= 0.5, True, "interval of `a` at least 0.5"),
        (of("b") <= 1.7, False, "interval of `b` reaches down to 1.7"),
        (of("b") >= 2.6, False, "interval of `b` reaches up to 2.6"),
        (of("a") < of("b"), True, "upper end of `a` below lower end of `b`"),
        (value("a") > value("b"), False, "`a` above `b`"),
        (value("b") >= 2 * value("a"), True, "`b` at least 2 times `a`"),
        (value("a") < 2 * (value("b") - value("a")), True, "`a` below 2 times (`b` minus `a`)"),
        (abs(value("a") - value("b")) <= 1.0, True, "size of `a` minus `b` at most 1"),
        (most("b") <= 2.0, False, "every seed's `b` at most 2"),
        (least("b") >= 1.7, True, "every seed's `b` at least 1.7"),
        (average("a", "c") < value("b"), False, "mean of `a`, `c` below `b`"),
        (between("b", 2.5, 4), True, "interval of `b` meets [2.5, 4]"),
        (between("b", 0, 1.7), False, "interval of `b` meets [0, 1.7]"),
        (between("b", 1.75, 2.5), True, "interval of `b` within [1.75, 2.5]"),
        (between("b", 1.8, 2.5), False, "interval of `b` within [1.8, 2.5]"),
        (between("b", 1.75, 2.4), False, "interval of `b` within [1.75, 2.4]"),
        (all_of(of("a") > 0, of("b") > 0), True, "interval of `a`, `b` above 0"),
        (within("b", 2.2, 0.1), True, "`b` within 10 % of 2.2"),
        (rises("a", "b", "c"), True, "values rise: `a`, `b`, `c`"),
        (rises("a", "c", "c"), False, "values rise: `a`, `c`, `c`"),
        (falls("c", "a", "b"), False, "values fall: `c`, `a`, `b`"),
        (same_order(["a", "b"], ["b", "c"]), True,
         "values in the same order: `a`, `b` and `b`, `c`"),
        (same_order(["a", "b"], ["c", "b"]), False,
         "values in the same order: `a`, `b` and `c`, `b`"),
        (all_of(of("a") > 0, of("a") < 1), False,
         "interval of `a` above 0 and interval of `a` below 1"),
        (all_of(of("a") > 1, of("b") > 1), False, "interval of `a`, `b` above 1"),
        (any_of(of("a") > 0, of("a") < 1), True,
         "interval of `a` above 0 or interval of `a` below 1"),
    ],
)  # fmt: skip
def test_a_condition_holds_as_its_words_say(condition, holds, words):
    assert condition.holds(N) is holds
    assert condition.words == words


def test_the_verdict_counts_parts_and_the_reason_names_those_that_fail():
    good, bad = value("a") < value("b"), value("b") < value("a")
    assert Rule({"x": good, "y": good}, "").__call__(N).verdict == "reproduced"
    assert Rule({"x": bad, "y": bad}, "")(N).verdict == "not reproduced"
    found = Rule({"x": good, "group": {"one": bad, "two": good, "three": bad}}, "")(N)
    assert found.verdict == "partly"
    assert found.reason == "does not hold: group (one, three)"
    assert Rule({"x": good, "group": {"one": bad, "two": good}}, "").names == "x; group (one, two)"


def test_what_was_measured_is_filled_in():
    rule = Rule({"x": of("a") > 0}, f"a {told('a')}, b {told_value('b', '.0%')}")
    assert rule(N).measured == "a 1 [0.5, 1.5] rounds, b 200%"
    assert Rule({"x": of("a") > 0}, lambda n: str(len(n)))(N).measured == "3"


def test_conditions_of_one_form_are_told_together():
    rule = Rule({"x": of("a") > 0, "y": of("c") < 9, "z": of("b") > 0}, "", note="Why 9.")
    assert rule.words == "(1) interval of `a`, `b` above 0; (2) interval of `c` below 9. Why 9."


def test_many_keys_are_told_in_short_and_pairs_in_turn():
    runs = [f"soft_B{b}_last" for b in (1, 10)]
    keys = [f"{run}.{m}" for run in runs for m in ("f_1", "f_2", "g")]
    rule = Rule({k: of(k) < 0 for k in [*keys, "hard.f_1"]}, "")
    assert rule.words == "interval of `soft_{B1, B10}_last.{f_1, f_2, g}`, `hard.f_1` below 0."
    pairs = Rule({k: value(k) < 2 * value(k.replace("soft", "hard")) for k in keys}, "")
    soft, hard = (f"`{kind}_{{B1, B10}}_last.{{f_1, f_2, g}}`" for kind in ("soft", "hard"))
    assert pairs.words == f"{soft} below 2 times {hard}, each in turn."
    to_one = Rule({k: value(k) < value("base.f") for k in keys}, "")
    assert to_one.words == f"{soft} below `base.f`, each in turn."
    pairs = [("a", "b"), ("a", "c"), ("a", "d"), ("b", "d")]
    some = Rule({a + b: value(a) < value(b) for a, b in pairs}, "")
    assert some.words.startswith("`a` below `b`; `a` below `c`; ")


def claim(**more):
    rule = Rule({"small": value("a") < 2}, told("a"))
    return Claim("x/C1", "W", "", "", "", rule, ("run",), **more)


def config(seeds=5, **algorithm):
    return {"run": {"algorithm": {"lr": 0.1, **algorithm}, "seeds": [*range(seeds)], "rounds": 9}}


@pytest.mark.parametrize(
    ("configs", "reason"),
    [
        (config(lr=0.2), "run has algorithm.lr 0.2, the paper's setting 0.1"),
        (config(seeds=2), "run has 2 of the 3 seeds that it takes"),
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
    assert claim().verdict(N, config(seeds=1), config(seeds=1)).verdict == "reproduced"
    strict = claim(needs=Needs(seeds=4))
    assert strict.verdict(N, config(seeds=3), config()).verdict == "not judged"


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
