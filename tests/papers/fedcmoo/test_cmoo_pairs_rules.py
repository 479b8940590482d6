"""The study of two tasks in one picture: the rules of its claims, in every part."""

from itertools import product

import pytest
from planted import about, fails_alone

from papers.fedcmoo.pairs import STUDY, rules
from papers.fedcmoo.pairs.numbers import DATA, GREY, HOW, METHODS
from papers.kit import store

COLOUR = "cifar10_mnist"
FIRST, BALANCED, STEERED = "fedcmoo_vs_fsmgda", "pref_vs_fsmgda", "pref_vs_fedcmoo"
ON = "mnist_fashion"


def sides():
    """Differences on which every claim holds: by their sign, in words of Table 1."""
    n = {}
    for data, how in product(GREY, HOW):
        at = f"{data}{how}"
        n |= {f"{at}_{FIRST}.{k}": 3.0 for k in ("accuracy", "accuracy_1", "accuracy_2")}
        n |= {f"{at}_{BALANCED}.{k}": 2.0 for k in ("accuracy", "accuracy_1", "accuracy_2")}
        n |= {f"{at}_{STEERED}.{k}": -1.0 for k in ("accuracy", "accuracy_1", "accuracy_2")}
        n |= {f"{at}_{FIRST}.rounds_{x}": -5.0 for x in (60, 75)}
        n |= {f"{at}_{STEERED}.rounds_{x}": 5.0 for x in (60, 75)}
        n |= {f"{at}_{FIRST}.decline": -3.0, f"{at}_{BALANCED}.decline": -2.0}
        n |= {f"{at}_{STEERED}.decline": 1.0, f"{at}_{STEERED}.loss_ratio": -0.5}
        n[f"{ON}{how}_{STEERED}.accuracy_2"] = 1.0
    n |= {f"{COLOUR}_pref_vs_{m}.held_accuracy_1": 2.0 for m in ("fedcmoo", "fsmgda")}
    n[f"{COLOUR}_{STEERED}.held_accuracy_2"] = -2.0
    n |= {f"{COLOUR}_{FIRST}.held_accuracy_1": -1.0, f"{COLOUR}_{FIRST}.held_accuracy_2": 1.0}
    n |= {f"{ON}_{m}_oneway_vs_{m}.accuracy": -0.5 for m in ("fedcmoo", "pref")}
    n |= {f"{ON}_pref_free_vs_pref.rounds_{x}": 10.0 for x in (60, 75)}
    n |= {"mixed_scalarized.gap": -80.0, "mixed_fsmgda.gap": 77.0}
    return n | {f"mixed_fedcmoo_vs_{m}.worst": 50.0 for m in ("scalarized", "fsmgda")}


def good():
    """Numbers on which every claim holds; of what is only told, those that are stored."""
    return store.read_numbers(STUDY.name) | {k: about(x) for k, x in sides().items()}


def breaks(number, how):
    """What breaks each deciding part of a claim: its name -> the number that turns against it."""
    cells = [(data, DATA[data], k) for data in GREY for k in (1, 2)]
    rounds = [(data, DATA[data], x) for data in GREY for x in (60, 75)]
    declines = (
        ("FedCMOO below FSMGDA", FIRST),
        ("FedCMOO-Pref below FSMGDA", BALANCED),
        ("FedCMOO below FedCMOO-Pref", STEERED),
    )
    orders = (
        ("FedCMOO above FSMGDA", FIRST),
        ("FedCMOO-Pref above FSMGDA", BALANCED),
        ("FedCMOO above FedCMOO-Pref, on Fashion-MNIST below", STEERED),
    )
    return {
        "C1": {
            f"a higher accuracy at the end, {DATA[d]}": f"{d}{how}_{FIRST}.accuracy" for d in GREY
        }
        | {f"reached earlier, {t}, to {x} %": f"{d}{how}_{FIRST}.rounds_{x}" for d, t, x in rounds},
        "C3": {
            f"{words}, {t}, task {k}": f"{d}{how}_{pair}.accuracy_{k}"
            for words, pair in orders
            for d, t, k in cells
        },
        "C4": {
            "best on Fashion-MNIST, above FedCMOO": f"{ON}{how}_{STEERED}.accuracy_2",
            "best on Fashion-MNIST, above FSMGDA": f"{ON}{how}_{BALANCED}.accuracy_2",
            "at some cost on MNIST": f"{ON}{how}_{STEERED}.accuracy_1",
        },
        "C5": {
            f"more rounds, {t}, to {x} %": f"{d}{how}_{STEERED}.rounds_{x}" for d, t, x in rounds
        },
        "C11": {
            "Scalarized trains the digit with NLL": "mixed_scalarized.gap",
            "FSMGDA trains the other": "mixed_fsmgda.gap",
            **{
                f"FedCMOO best in its worse digit, above {text}": f"mixed_fedcmoo_vs_{m}.worst"
                for m, text in (("scalarized", "Scalarized"), ("fsmgda", "FSMGDA"))
            },
        },
        "C12": {
            f"nearly the same accuracy, {METHODS[m]}": f"{ON}_{m}_oneway_vs_{m}.accuracy"
            for m in ("fedcmoo", "pref")
        },
        "C14": {f"faster, to {x} %": f"{ON}_pref_free_vs_pref.rounds_{x}" for x in (60, 75)},
        "C18": {
            f"{words}, {DATA[d]}": f"{d}{how}_{pair}.decline"
            for words, pair in declines
            for d in GREY
        },
        "C19": {
            "FedCMOO-Pref best on the object, above FedCMOO": f"{COLOUR}_{STEERED}.held_accuracy_1",
            "FedCMOO-Pref best on the object, above FSMGDA": f"{COLOUR}_{BALANCED}.held_accuracy_1",
            "at some cost on the digit": f"{COLOUR}_{STEERED}.held_accuracy_2",
            "FedCMOO and FSMGDA, FSMGDA first on the object": f"{COLOUR}_{FIRST}.held_accuracy_1",
            "FedCMOO and FSMGDA, FedCMOO first on the digit": f"{COLOUR}_{FIRST}.held_accuracy_2",
        },
    }[number]


def rules_of(claim):
    """The rules of a claim by how the runs were trained."""
    if not claim.readings:
        return {"": claim.rule}
    return {"_dropout": claim.rule, "": claim.readings[0].rule}


TWICE = ["C1", "C3", "C4", "C5", "C18"]


@pytest.mark.parametrize("claim", STUDY.claims, ids=lambda c: c.id)
def test_every_part_of_a_claim_decides_by_both_readings(claim):
    number = claim.id.removeprefix("fedcmoo/")
    assert len(rules_of(claim)) == (2 if number in TWICE else 1)
    n = good()
    for how, rule in rules_of(claim).items():
        assert rule(n).verdict == "reproduced"
        against = breaks(number, how)
        assert {p.name for p in rule(n).parts if p.primary} == {*against}
        for part, key in against.items():
            turned = 3.0 if number == "C12" else -n[key].value
            fails_alone(rule, {**n, key: about(turned)}, part)
            wide = rule({**n, key: about(n[key].value, 1000)})
            assert (wide.verdict, wide.reason) == ("undecided", f"undecided: {part}")
        every = {key: about(3.0 if number == "C12" else -n[key].value) for key in against.values()}
        assert rule({**n, **every}).verdict == "not reproduced"


def test_the_readings_look_at_runs_of_their_own():
    for claim in STUDY.claims:
        for reading in claim.readings:
            assert all("dropout" not in run for run in reading.runs)
            methods = [run for run in claim.runs if "single" not in run]
            assert all(run.endswith("_dropout") for run in methods)
            asked = {key for c in claim.rule.conditions() for key in c.keys}
            assert all("dropout" in key for key in asked)


def test_what_falls_short_of_the_paper_is_not_judged():
    found = {c.id: STUDY.outcomes(c)[c.reading] for c in STUDY.claims}
    short = {"C11": "60 of the paper's 300 rounds", "C19": "3 of the paper's 200 rounds"}
    short |= {"C12": "1 seed"}
    for number, reason in short.items():
        outcome = found[f"fedcmoo/{number}"]
        assert outcome.verdict == "not judged"
        assert reason in outcome.reason


def test_a_better_worse_digit_is_observed_and_does_not_count():
    n = good()
    for x, state in ((29.0, "holds"), (31.0, "fails")):
        outcome = rules.C11(n | {"mixed_scalarized.worst": about(x)})
        assert outcome.verdict == "reproduced"
        assert outcome.parts[-1].state == state
