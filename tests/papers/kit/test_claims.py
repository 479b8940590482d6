"""Claims: on which runs they are judged, by how many seeds, in which readings."""

from dataclasses import replace

import pytest

from papers import STUDIES
from papers.kit.claims import Claim, Reading
from papers.kit.health import Evidence, Needs
from papers.kit.numbers import Number
from papers.kit.rules import Rule, of

N = {"a": Number(1.0, 0.5, 1.5, (), "rounds")}


def claim(**options):
    rule = Rule({"small": of("a") < 2})
    return Claim(
        "x/C1",
        "W",
        "",
        "",
        rule,
        ("run",),
        **options,
    )


def config(seeds=5, **algorithm):
    described = {"type": "FedAvg", "lr": 0.1, **algorithm}
    return {"run": {"algorithm": described, "seeds": [*range(seeds)], "rounds": 9}}


def outcome(claim, configs, stored, **options):
    return claim.verdicts(Evidence(N, configs, stored, **options))[claim.reading]


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
    result = outcome(claim(), configs, config())
    assert (result.verdict, result.reason) == ("not judged", f"not judged, because {reason}")
    assert not result.measured


def test_a_claim_is_judged_on_the_papers_setting_with_fewer_seeds():
    assert outcome(claim(), config(seeds=3), config()).verdict == "reproduced"
    one_seed = outcome(claim(), config(seeds=1), config(seeds=1))
    assert (
        one_seed.reason == "not judged, because a run of FedAvg has 1 seed, at least 3 are needed"
    )
    exact = claim(needs=Needs(exact=True))
    assert outcome(exact, config(seeds=1), config(seeds=1)).verdict == "reproduced"


def test_seeds_that_are_runs_of_their_own_count_together():
    configs = {f"run_only_seed{s}": {"seeds": [s], "rounds": 9} for s in range(3)}
    runs = tuple(configs)
    assert outcome(replace(claim(), runs=runs), configs, configs).reason == ""
    two = outcome(replace(claim(), runs=runs[:2]), configs, configs)
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
    result = outcome(claim(needs=Needs(paper=paper)), config(), config())
    assert result.reason == (f"not judged, because {reason}" if reason else "")


def test_a_claim_on_a_run_in_ill_health_is_not_judged():
    ill = {"run": "loss constant from round 5"}
    reason = "a run of FedAvg is not healthy: loss constant from round 5"
    result = outcome(claim(), config(), config(), health=ill)
    assert result.reason == f"not judged, because {reason}"
    meant = claim(needs=Needs(dead=("ru*",)))
    assert outcome(meant, config(), config(), health=ill).verdict == "reproduced"
    counted = claim(needs=Needs(exact=True))
    assert outcome(counted, config(), config(), health=ill).verdict == "reproduced"
    assert outcome(claim(), config(), config(), health={"run": ""}).verdict == "reproduced"


def test_every_reading_is_judged_and_the_claims_own_decides():
    printed = Reading("as printed", Rule({"large": of("a") > 2}), ("run",))
    twofold = claim(reading="as in the code", readings=(printed,))
    evidence = Evidence(N, config(), config())
    verdicts = twofold.verdicts(evidence)
    assert [*verdicts] == ["as in the code", "as printed"]
    assert verdicts["as in the code"].verdict == "reproduced"
    assert verdicts["as printed"].verdict == "not reproduced"
    missing = replace(twofold, readings=(replace(printed, runs=("gone",)),))
    assert missing.all_runs == ("run", "gone")
    assert missing.verdicts(evidence)["as printed"].verdict == "not judged"


def test_parameters_that_stand_in_no_configuration_are_needs_of_their_own():
    needy = claim(needs=Needs(parameters=("late",)))
    changed = {"late": (0.5, 0.2), "lrs": ((1,), (1, 2))}
    result = outcome(needy, config(), config(), changed=changed)
    assert result.reason == "not judged, because late is 0.5, the paper's setting 0.2"
    of_others = {"lrs": (1, 2)}
    assert outcome(needy, config(), config(), changed=of_others).verdict == "reproduced"


def test_a_list_with_the_papers_values_is_no_change():
    study = STUDIES["ssca_tradeoff"]
    same = study.resolve("full", levels=[*study.profiles["full"]["levels"]], seeds=range(10))
    assert study.changed(same) == {}
    assert [*study.changed({**same, "levels": [0.3]})] == ["levels"]


def test_a_run_that_is_not_stored_cannot_be_compared():
    result = outcome(claim(), config(), {})
    assert result.reason == "not judged, because no run run of the paper's setting is stored"


def test_the_last_bit_of_a_number_is_no_other_setting():
    assert outcome(claim(), config(lr=0.1 + 2e-17 + 1e-16), config()).verdict == "reproduced"
    assert outcome(claim(), config(lr=0.1 + 1e-8), config()).verdict == "not judged"
