"""The study of SSCA's Figures 2 and 3: every part of every claim, and what decides nothing."""

import pytest

from papers.kit.numbers import Number
from papers.ssca.common import LEVELS, SPLITS
from papers.ssca.convergence import STUDY
from papers.ssca.convergence.names import BATCHES
from papers.ssca.convergence.numbers import CRITERIA, HE, LOOKS

CLAIMS = {c.id.removeprefix("ssca/"): c for c in STUDY.claims}


def number(value, spread=0.01):
    return Number(value, value - spread, value + spread, (value,))


def agreeing():
    """Numbers with which every claim is reproduced, and nothing observed contradicts it."""
    n = {}
    curve = [f"cost_{r}" for r in LOOKS] + ["area"]
    for split in SPLITS:
        for b in BATCHES:
            n |= {f"{split}_ssca_B{b}.{k}": number(1.0) for k in curve}
            n |= {f"features_vs_samples_ssca_B{b}.{k}": number(0.02) for k in curve}
            for before, kind, size in (("", "sgd", b), (HE, "sgd", b), ("", "sgd2", b // 2)):
                n |= {f"{before}{split}_ssca_B{b}.{k}": number(1.0) for k in curve}
                for c in CRITERIA:
                    n |= {f"{before}{split}_{kind}_B{size}_{c}.{k}": number(1.2) for k in curve}
                    pair = f"{before}{split}_ssca_B{b}_vs_{kind}_{c}"
                    n |= {f"{pair}.{k}": number(-0.2) for k in curve}
        for pair in ("B10_vs_B1", "B100_vs_B10"):
            for kind in ("ssca", *(f"limit_U{u:g}" for u in LEVELS)):
                n |= {f"{split}_{kind}_{pair}.{k}": number(-0.3) for k in (*curve, "rounds_1")}
        for way in ("up", "down", "between"):
            n |= {f"{split}_{x}.{way}": number(32.0) for x in ("ssca_B1", "sgd_B1_last")}
    for k in (1, 2, 3, 4):
        n |= {f"alg_{k}.wrong_messages": number(0.0), f"alg_{k}.bits_off": number(0.0)}
        n |= {f"alg_{k}.client_ratio": number(1.1), f"alg_{k}.linearity": number(1.0)}
        n |= {f"alg_{k}.per_parameter": number(13.0)}
    return n


@pytest.mark.parametrize("claim", CLAIMS)
def test_every_claim_can_be_reproduced(claim):
    outcome = CLAIMS[claim].judge(agreeing())
    assert outcome.verdict == "reproduced"
    assert outcome.reason == ""
    assert {part.state for part in outcome.parts} == {"holds"}


#: claim -> a number with which one of its primary parts fails, and what the reason then names.
FAILING = {
    "C1": [
        ("samples_ssca_B10_vs_B1.area", 0.2, "over the rounds, Algorithm 1, B = 10 below B = 1"),
        ("features_ssca_B100_vs_B10.area", 0.2, "over the rounds, Algorithm 3, B = 100 below"),
        ("samples_limit_U0.4_B100_vs_B10.area", 0.2, "over the rounds, Algorithm 2, U = 0.4, B ="),
        ("features_limit_U0.6_B10_vs_B1.area", 0.2, "over the rounds, Algorithm 4, U = 0.6, B ="),
        ("samples_ssca_B100_vs_B10.cost_100", 0.2, "at round 100, Algorithm 1, B = 100 below"),
        ("features_ssca_B10_vs_B1.cost_100", 0.2, "at round 100, Algorithm 3, B = 10 below"),
    ],
    "C2": [(f"samples_ssca_B{b}_vs_sgd_last.area", 0.1, f"rounds, B = {b}") for b in BATCHES],
    "C3": [
        ("samples_ssca_B10_vs_sgd2_last.area", 0.1, "B = 10 against B = 5, E = 2"),
        ("samples_ssca_B100_vs_sgd2_last.area", 0.1, "B = 100 against B = 50, E = 2"),
    ],
    "C4": [(f"features_ssca_B{b}_vs_sgd_last.area", 0.1, f"rounds, B = {b}") for b in BATCHES],
    "C5": [
        ("features_vs_samples_ssca_B1.area", 0.12, "B = 1"),
        ("features_vs_samples_ssca_B10.area", 0.12, "B = 10"),
        ("features_vs_samples_ssca_B100.area", -0.2, "B = 100"),
    ],
    "C8": [
        ("alg_1.linearity", 2.0, "the server's work proportional to d, Algorithm 1"),
        ("alg_2.linearity", 2.0, "the server's work proportional to d, Algorithm 2"),
        *((f"alg_{k}.client_ratio", 1.6, f"of SGD's, Algorithm {k}") for k in (1, 2, 3, 4)),
    ],
    "C12": [
        *((f"alg_{k}.wrong_messages", 1.0, f"of the list, Algorithm {k}") for k in (1, 2, 3, 4)),
        *((f"alg_{k}.bits_off", 32.0, f"that follow, Algorithm {k}") for k in (1, 2, 3, 4)),
    ],
}


@pytest.mark.parametrize(
    ("claim", "key", "value", "named"),
    [(c, *case) for c, cases in FAILING.items() for case in cases],
)
def test_every_primary_part_can_fail(claim, key, value, named):
    n = agreeing()
    assert key in n
    outcome = CLAIMS[claim].judge({**n, key: number(value)})
    assert outcome.verdict == "partly"
    assert outcome.reason.startswith("does not hold")
    assert named in outcome.reason


@pytest.mark.parametrize(
    ("claim", "key"),
    [
        ("C1", "samples_ssca_B100_vs_B10.area"),
        ("C2", "samples_ssca_B1_vs_sgd_last.area"),
        ("C3", "samples_ssca_B100_vs_sgd2_last.area"),
        ("C4", "features_ssca_B10_vs_sgd_last.area"),
    ],
)
def test_an_interval_around_zero_decides_nothing(claim, key):
    assert CLAIMS[claim].judge({**agreeing(), key: number(-0.005)}).verdict == "undecided"


def test_splits_are_alike_within_a_tenth_and_a_wide_interval_decides_nothing():
    key = "features_vs_samples_ssca_B100.area"
    for value, spread, verdict in ((0.08, 0.01, "reproduced"), (0.08, 0.05, "undecided")):
        n = {**agreeing(), key: number(value, spread)}
        assert CLAIMS["C5"].judge(n).verdict == verdict


@pytest.mark.parametrize(
    ("claim", "key", "value", "named"),
    [
        ("C1", "samples_ssca_B100_vs_B10.cost_10", 0.2, "t = 10, Algorithm 1, B = 100"),
        ("C1", "features_limit_U0.6_B10_vs_B1.rounds_1", 3, "rounds to a cost of 1, Algorithm 4"),
        ("C2", "samples_ssca_B10_vs_sgd_last.cost_100", 0.1, "chosen at round 100, t = 100"),
        ("C3", "samples_ssca_B10_vs_sgd2_early.area", 0.1, "chosen at round 30, mean cost"),
        ("C5", "features_vs_samples_ssca_B1.cost_10", 0.2, "t = 10, B = 1"),
        ("C8", "features_ssca_B1.between", 33.0, "messages no longer than SGD's, Algorithm 3"),
    ],
)
def test_what_is_observed_is_shown_and_does_not_count(claim, key, value, named):
    outcome = CLAIMS[claim].judge({**agreeing(), key: number(value)})
    assert outcome.verdict == "reproduced"
    assert [named in p.name for p in outcome.parts if p.state == "fails"] == [True]


@pytest.mark.parametrize(("claim", "split"), [("C2", "samples"), ("C4", "features")])
def test_he_start_is_a_reading_of_its_own(claim, split):
    (reading,) = CLAIMS[claim].readings
    n = agreeing()
    assert reading.rule(n).verdict == "reproduced"
    assert {run.startswith(f"{HE}{split}") for run in reading.runs} == {True}
    wrong = {**n, f"{HE}{split}_ssca_B1_vs_sgd_last.area": number(0.1)}
    assert reading.rule(wrong).verdict == "not reproduced"
    assert CLAIMS[claim].judge(wrong).verdict == "reproduced"


@pytest.mark.parametrize("claim", CLAIMS)
def test_every_claim_can_fail_as_a_whole(claim):
    def spoil(key, x):
        return number(50.0) if key.startswith("alg") or "_vs_" in key else x

    wrong = {k: spoil(k, x) for k, x in agreeing().items()}
    assert CLAIMS[claim].judge(wrong).verdict == "not reproduced"
