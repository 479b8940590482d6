"""Claims: on which runs they are judged, by how many seeds, in which readings."""

from dataclasses import replace

import pytest

from papers import STUDIES
from papers.kit.claims import Claim, Reading
from papers.kit.health import Needs, differences
from papers.kit.numbers import Number
from papers.kit.rules import Rule, of, stat

N = {"a": Number(1.0, 0.5, 1.5, (), "rounds")}


def claim(**more):
    rule = Rule({"small": of("a") < 2}, stat("a"))
    return Claim("x/C1", "W", "", "", rule, ("run",), **more)


def config(seeds=5, **algorithm):
    return {
        "run": {
            "algorithm": {"type": "FedAvg", "lr": 0.1, **algorithm},
            "seeds": [*range(seeds)],
            "rounds": 9,
        }
    }


def outcome(claim, *given, **more):
    return claim.verdicts(*given, **more)[claim.reading]


@pytest.mark.parametrize(
    ("configs", "reason"),
    [
        (config(lr=0.2), "run has algorithm.lr 0.2, the paper's setting 0.1"),
        (config(seeds=2), "a run of FedAvg has 2 seeds, at least 3 are needed"),
        ({}, "the run run is not among these"),
        (config(beta=1.0), "run has algorithm.beta 1.0, the paper's setting none"),
    ],
)
def test_a_claim_is_not_judged_on_other_runs(configs, reason):
    found = outcome(claim(), N, configs, config())
    assert (found.verdict, found.reason) == ("not judged", f"not judged, because {reason}")
    assert not found.measured


def test_a_claim_is_judged_on_the_papers_setting_with_fewer_seeds():
    assert outcome(claim(), N, config(seeds=3), config()).verdict == "reproduced"
    few = outcome(claim(), N, config(seeds=1), config(seeds=1))
    assert few.reason == "not judged, because a run of FedAvg has 1 seed, at least 3 are needed"
    exact = claim(needs=Needs(exact=True))
    assert outcome(exact, N, config(seeds=1), config(seeds=1)).verdict == "reproduced"


def test_seeds_that_are_runs_of_their_own_count_together():
    runs = tuple(f"run_seed{s}" for s in range(3))
    configs = {r: {"seeds": [s], "rounds": 9} for s, r in enumerate(runs)}
    rule = claim().rule
    assert outcome(Claim("x/C1", "W", "", "", rule, runs), N, configs, configs).reason == ""
    two = outcome(Claim("x/C1", "W", "", "", rule, runs[:2]), N, configs, configs)
    assert two.reason == "not judged, because run has 2 seeds, at least 3 are needed"


@pytest.mark.parametrize(
    ("paper", "reason"),
    [
        ({"rounds": 27}, ""),
        ({"rounds": 28}, "a run of FedAvg has 9 of the paper's 28 rounds, a third is needed"),
        ({"algorithm.lr": 0.1}, ""),
        ({"algorithm.lr": 0.3}, "run has algorithm.lr 0.1, the paper 0.3"),
        ({"algorithm.beta": 0.3}, ""),  # of another method's runs
    ],
)
def test_a_stored_run_that_falls_short_of_the_paper_is_not_judged(paper, reason):
    found = outcome(claim(needs=Needs(paper=paper)), N, config(), config())
    assert found.reason == (f"not judged, because {reason}" if reason else "")


def test_a_claim_on_a_run_in_ill_health_is_not_judged():
    ill = {"run": "loss constant from round 5"}
    found = outcome(claim(), N, config(), config(), health=ill)
    assert (
        found.reason
        == "not judged, because a run of FedAvg is not healthy: loss constant from round 5"
    )
    meant = claim(needs=Needs(dead=("ru*",)))
    assert outcome(meant, N, config(), config(), health=ill).verdict == "reproduced"
    counted = claim(needs=Needs(exact=True))
    assert outcome(counted, N, config(), config(), health=ill).verdict == "reproduced"
    assert outcome(claim(), N, config(), config(), health={"run": ""}).verdict == "reproduced"


def test_every_reading_is_judged_and_the_claims_own_decides():
    other = Reading("as printed", Rule({"large": of("a") > 2}, ""), ("run",))
    one = claim(reading="as in the code", readings=(other,))
    found = one.verdicts(N, config(), config())
    assert [(k, v.verdict) for k, v in found.items()] == [
        ("as in the code", "reproduced"),
        ("as printed", "not reproduced"),
    ]
    missing = replace(one, readings=(replace(other, runs=("gone",)),))
    assert missing.all_runs == ("run", "gone")
    assert missing.verdicts(N, config(), config())["as printed"].verdict == "not judged"


def test_parameters_that_stand_in_no_configuration_are_needs_of_their_own():
    one = claim(needs=Needs(parameters=("late",)))
    changed = {"late": (0.5, 0.2), "lrs": ((1,), (1, 2))}
    found = outcome(one, N, config(), config(), changed)
    assert found.reason == "not judged, because late is 0.5, the paper's setting 0.2"
    assert outcome(one, N, config(), config(), {"lrs": (1, 2)}).verdict == "reproduced"


def test_a_list_with_the_papers_values_is_no_change():
    study = STUDIES["ssca_tradeoff"]
    same = study.resolve("full", levels=[*study.profiles["full"]["levels"]], seeds=range(10))
    assert study.changed(same) == {}
    assert [*study.changed({**same, "levels": [0.3]})] == ["levels"]


def test_a_run_that_is_not_stored_cannot_be_compared():
    found = outcome(claim(), N, config(), {})
    assert found.reason == "not judged, because no run run of the paper's setting is stored"


def test_the_last_bit_of_a_number_is_no_other_setting():
    assert outcome(claim(), N, config(lr=0.1 + 2e-17 + 1e-16), config()).verdict == "reproduced"
    assert outcome(claim(), N, config(lr=0.1 + 1e-8), config()).verdict == "not judged"


def test_differences_go_to_the_innermost_value():
    a, b = {"x": {"y": 1, "z": [1, 2]}}, {"x": {"y": 1, "z": [1, 3]}, "w": 0}
    assert dict(differences(a, b)) == {"x.z": ([1, 2], [1, 3]), "w": ("none", 0)}


def test_another_tolerance_is_not_judged_by_the_papers_level():
    study = STUDIES["np_workshop"]
    change = {"tolerance": 0.05, "rounds": 3, "settle_rounds": 5, "seeds": [0, 1, 2]}
    change |= {"fresh": [1, 2, 3], "many": False}
    params = study.resolve("full", **change)
    traces = study.open("full", **change).run()
    numbers = study.numbers(traces, "full", **change)
    found = [study.verdicts(c, traces, numbers, params)[c.reading] for c in study.claims]
    assert {o.verdict for o in found} == {"not judged"}
    change["tolerance"] = 0.1
    main = study.verdicts(study.claims[0], traces, numbers, params)[study.claims[0].reading]
    assert "algorithm.tolerance 0.05, the paper's setting 0.1" in main.reason
