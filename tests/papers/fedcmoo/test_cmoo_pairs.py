"""The study of two tasks in one picture: its numbers, the rules of its claims, its figures."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from fedlib.core import Trace
from papers.fedcmoo.data.pairs import CIFAR10_SCALE, MNIST_SCALE, Pairs
from papers.fedcmoo.pairs import STUDY, figures, rules
from papers.fedcmoo.pairs.claims import PAPER_VALUES, TABLE_4
from papers.fedcmoo.pairs.numbers import DATA, GREY, HOW, METHODS, decline, derive, final, rounds_to
from papers.kit.numbers import Number, mean
from papers.kit.plot import render

FULL, QUICK = STUDY.profiles["full"], STUDY.profiles["quick"]
GREYS = tuple(data + how for data in GREY for how in HOW)
COLOUR = "cifar10_mnist"
CURVES = ("accuracy", "accuracy_1", "accuracy_2", "loss", "loss_1", "loss_2")


def run(accuracy, rounds, seeds=(0,), pictures=60000, **info):
    """A trace whose curves are all `accuracy`, `[S, T_eval]`; losses twice that."""
    x = np.atleast_2d(np.asarray(accuracy, float))
    metrics = {k: x if "accuracy" in k else 2 * x for k in CURVES}
    config = {"problem": {"pictures": pictures}}
    given = {k: np.atleast_2d(np.asarray(v, float)) for k, v in info.items()}
    return Trace(metrics, given, np.asarray(rounds), seeds, config)


def all_runs(params):
    """Traces of every run of the study, made up: each method with its own speed."""
    rng = np.random.default_rng(0)
    found = {}
    for i, (name, spec) in enumerate(STUDY.specs(params).items()):
        T, S = spec.rounds, len(spec.seeds)
        t = np.array(sorted({*range(0, T, spec.evaluate_every), T}))
        rise = 0.1 + 0.8 * (1 - np.exp(-(1 + i % 5) * t / 40))
        info = {"direction": rng.random((S, T))}
        if not any(x in name for x in ("single", "scalarized")):
            info["weight_1"] = rng.uniform(0.1, 0.9, (S, T))
        if "pref" in name:
            info |= {"mu": rng.random((S, T)), "fallback": np.zeros((S, T))}
        trace = run(rise + 0.01 * rng.random((S, len(t))), t, spec.seeds, **info)
        if name.startswith("cifar"):
            held = {f"held_{k}": v for k, v in trace.metrics.items()}
            trace = replace(trace, metrics={**trace.metrics, **held})
        found[name] = trace
    return found


@pytest.fixture(scope="module")
def traces():
    return all_runs(FULL)


@pytest.fixture(scope="module")
def numbers(traces):
    return derive(traces, FULL)


def test_final_values_are_of_the_last_tenth_with_the_final_model():
    t = list(range(0, 101, 5))
    x = np.arange(21.0)
    assert final(run([x], t), "accuracy") == pytest.approx([(19 + 20) / 2])  # rounds 95 and 100
    assert final(run([[1, 2, 3, 7]], [0, 5, 10, 12]), "accuracy") == pytest.approx([7])
    assert final(run([[0.1, 0.4, 0.2]], [0, 1, 2]), "accuracy") == pytest.approx([0.2])


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        ([0.1, 0.5, 0.7, 0.8], 15),  # half way between rounds 10 and 20
        ([0.1, 0.6, 0.5, 0.9], 10),  # reached once is reached
        ([0.65, 0.7, 0.8, 0.9], 0),
        ([0.1, 0.2, 0.3, 0.59], 30),  # never: the last round
    ],
)
def test_rounds_to_a_level(curve, expected):
    assert rounds_to(run([curve], [0, 10, 20, 30]), 60) == pytest.approx([expected])


def test_whether_a_level_was_reached_is_told_apart_from_reaching_it_last():
    never, last = ([0.1, 0.2, 0.59], [0.1, 0.2, 0.6])
    t = [0, 10, 20]
    found = derive({"mixed_fedcmoo": run([never, last], t, seeds=(0, 1))}, FULL)
    assert found["mixed_fedcmoo.rounds_60"].per_seed == pytest.approx((20, 20))
    assert found["mixed_fedcmoo.reached_60"].per_seed == (0, 1)


def test_table_4_follows_from_table_1():
    for data, rows in rules.TABLE_1.items():
        for m in METHODS:
            assert decline(rows[m], rows["single"]) == pytest.approx(TABLE_4[data][m], abs=0.0051)
    worse = decline((90.0, 45.0), (100.0, 50.0))
    assert worse == pytest.approx(10)
    assert decline((110.0, 50.0), (100.0, 50.0)) == pytest.approx(-5)
    of_seeds = decline([np.array([90.0, 100.0]), np.array([45.0, 50.0])], (100.0, 50.0))
    assert of_seeds == pytest.approx([10, 0])


def test_accuracies_are_in_percent_and_weights_are_means():
    t = [0, 5, 10]
    trace = run([[0.1, 0.5, 0.8]], t, weight_1=[[0.1, 0.9, 0.5, 0.3]])
    trace.metrics["accuracy_2"] = np.array([[0.1, 0.2, 0.6]])
    found = derive({"mnist_fashion_fedcmoo": trace}, FULL)
    run_name = "mnist_fashion_fedcmoo"
    assert found[f"{run_name}.accuracy_1"].value == pytest.approx(80)
    assert found[f"{run_name}.accuracy_1"].unit == "%"
    assert found[f"{run_name}.worst"].value == pytest.approx(60)
    assert found[f"{run_name}.gap"].value == pytest.approx(20)
    assert found[f"{run_name}.loss"].value == pytest.approx(1.6)
    assert found[f"{run_name}.weight_1"].value == pytest.approx(0.45)
    assert found[f"{run_name}.corner"].value == pytest.approx(0.5)


def test_differences_are_paired_on_common_seeds():
    t = [0, 10]
    a = run([[0, 0.5], [0, 0.9]], t, seeds=(0, 1))
    b = run([[0, 0.6], [0, 0.1]], t, seeds=(1, 2))
    found = derive({"mixed_fedcmoo": a, "mixed_fsmgda": b}, FULL)
    assert found["mixed_fedcmoo_vs_fsmgda.accuracy"].per_seed == pytest.approx((30,))
    assert found["mixed_fedcmoo_vs_fsmgda.accuracy"].unit == "points"
    apart = {"mixed_fedcmoo": a, "mixed_fsmgda": replace(b, seeds=(7, 8))}
    assert not [k for k in derive(apart, FULL) if "_vs_" in k]


def test_every_printed_value_has_its_number(numbers):
    assert not [v.key for v in PAPER_VALUES if v.key not in numbers]
    assert len({v.label for v in PAPER_VALUES}) == len(PAPER_VALUES) == 16 + 12 + 6 + 6 + 6
    (value,) = [v for v in PAPER_VALUES if v.label == "MultiMNIST, FedCMOO, Delta_M"]
    assert value.paper_text == "0.79 %"
    assert value.status(mean([0.8])) == "agrees"
    assert value.status(mean([2.0])) == "differs"


def test_delta_is_that_of_the_single_task_runs_of_the_same_seed(traces, numbers):
    run_name = "multi_mnist_pref"
    alone = [final(traces[f"multi_mnist_single_{k}"], f"accuracy_{k}") for k in (1, 2)]
    own = [final(traces[run_name], f"accuracy_{k}") for k in (1, 2)]
    expected = [100 * np.mean([(b - a) / b for a, b in pairs]) for pairs in by_seed(own, alone)]
    assert numbers[f"{run_name}.decline"].per_seed == pytest.approx(expected)


def by_seed(own, alone):
    both = [list(zip(a, b, strict=True)) for a, b in zip(own, alone, strict=True)]
    return list(zip(*both, strict=True))


@pytest.mark.parametrize(
    "missing", ["cifar10_mnist", "mixed", "multi_mnist_single", "_oneway", "_dropout"]
)
def test_numbers_do_without_missing_runs(traces, missing):
    fewer = {n: t for n, t in traces.items() if missing not in n}
    found = derive(fewer, FULL)
    assert found["mnist_fashion_fedcmoo_vs_fsmgda.accuracy"].value
    assert not [k for k in found if missing in k.partition(".")[0]]


def test_other_parameters_and_the_quick_profile_have_numbers():
    for params in (QUICK, {**QUICK, "seeds": (3,), "variant_seeds": (5,)}):
        assert derive(all_runs(params), params)["multi_mnist_pref.accuracy"].value > 0


def test_claims_of_one_seed_say_so():
    names = STUDY.specs(FULL)
    assert [c.id for c in STUDY.claims] == [f"fedcmoo/C{i}" for i in (1, 3, 4, 5, 11, 12, 14, 18)]
    for claim in STUDY.claims:
        few = [n for n in claim.runs if len(names[n].seeds) == 1]
        assert not few or "one seed" in claim.rule.words.lower()


def about(value, half=0.1):
    return Number(value, value - half, value + half, (value,))


def good():
    """Numbers on which every claim holds."""
    n = {}
    for data, m, how in product(DATA, METHODS, HOW):
        run_name = f"{data}_{m}{how}"
        for k in (1, 2):
            x = mean([rules.TABLE_1[data][m][k - 1]])
            n |= {f"{run_name}.accuracy_{k}": x, f"{run_name}.held_accuracy_{k}": x}
        n |= {f"{run_name}.decline": mean([TABLE_4[data][m]]), f"{run_name}.loss_ratio": mean([2])}
    for setting in GREYS:
        pair = f"{setting}_fedcmoo_vs_fsmgda"
        n |= {f"{pair}.{k}": about(x) for k, x in first_earlier(2).items()}
        n |= {f"{setting}_pref_vs_fedcmoo.rounds_{x}": about(5) for x in (60, 75)}
        n[f"{setting}_fedcmoo_vs_fsmgda.decline"] = about(-3)
        n[f"{setting}_pref_vs_fsmgda.decline"] = about(-2)
        n[f"{setting}_pref_vs_fedcmoo.decline"] = about(1)
    on = "mnist_fashion"
    for at in (on, f"{on}_dropout"):
        n |= {f"{at}_pref_vs_{m}.accuracy_2": about(1) for m in ("fedcmoo", "fsmgda")}
        n |= {f"{at}_pref_vs_fedcmoo.accuracy_1": about(-1)}
        n |= {f"{at}_pref_vs_fedcmoo.loss_ratio": about(-0.5)}
    for m in ("fedcmoo", "fsmgda"):
        n[f"cifar10_mnist_pref_vs_{m}.held_accuracy_1"] = about(2)
        n[f"cifar10_mnist_pref_vs_{m}.held_accuracy_2"] = about(-2)
    for m in ("fedcmoo", "pref"):
        n[f"{on}_{m}_oneway_vs_{m}.accuracy"] = mean([-0.5])
    for x in (60, 75):
        n |= {f"{on}_pref_free.rounds_{x}": mean([60]), f"{on}_pref.rounds_{x}": mean([50])}
        n[f"{on}_pref_free_vs_pref.rounds_{x}"] = mean([10])
    both = {"scalarized": (10.5, 93.4), "fsmgda": (94.6, 17.7), "fedcmoo": (95.0, 70.3)}
    for m, (one, two) in both.items():
        n |= {f"mixed_{m}.accuracy_1": about(one), f"mixed_{m}.accuracy_2": about(two)}
    n["mixed_fsmgda.gap"] = about(77)
    n |= {f"mixed_fedcmoo_vs_{m}.worst": about(50) for m in ("scalarized", "fsmgda")}
    return n


def first_earlier(points):
    """What a pair of runs has if the first is better."""
    return {"accuracy": points, "rounds_60": -5, "rounds_75": -9}


CHANGES = {
    "C1": [
        *({f"{at}_fedcmoo_vs_fsmgda.accuracy": about(0.05)} for at in GREYS),
        *({f"{at}_fedcmoo_vs_fsmgda.rounds_60": about(3)} for at in GREYS),
    ],
    "C3": [
        *(
            {f"{data}_fsmgda{how}.accuracy_{k}": mean([99.0])}
            for data in GREY
            for how in HOW
            for k in (1, 2)
        ),
        *({f"{COLOUR}_fsmgda.held_accuracy_{k}": mean([99.0])} for k in (1, 2)),
    ],
    "C4": [
        *({f"mnist_fashion{how}_pref_vs_fsmgda.accuracy_2": about(0)} for how in HOW),
        *({f"mnist_fashion{how}_pref_vs_fedcmoo.accuracy_1": about(1)} for how in HOW),
        *({f"mnist_fashion{how}_pref_vs_fedcmoo.loss_ratio": about(0.05)} for how in HOW),
        {"cifar10_mnist_pref_vs_fedcmoo.held_accuracy_1": mean([0.9])},
        {"cifar10_mnist_pref_vs_fedcmoo.held_accuracy_2": mean([-0.9])},
    ],
    "C5": [{f"{at}_pref_vs_fedcmoo.rounds_{x}": about(0.05)} for at in GREYS for x in (60, 75)],
    "C12": [
        {"mnist_fashion_fedcmoo_oneway_vs_fedcmoo.accuracy": mean([1.1])},
        {"mnist_fashion_pref_oneway_vs_pref.accuracy": mean([-1.1])},
    ],
    "C14": [
        {"mnist_fashion_pref_free_vs_pref.rounds_60": mean([5])},
        {"mnist_fashion_pref_free_vs_pref.rounds_75": mean([-1])},
    ],
    "C18": [
        {f"{data}_{pair}.decline": about(0)}
        for data in GREY
        for pair in ("pref_vs_fedcmoo", "pref_vs_fsmgda", "fedcmoo_vs_fsmgda")
    ],
}


@pytest.mark.parametrize("number", list(CHANGES))
def test_a_rule_holds_fails_in_each_part_and_fails_in_all(number):
    (claim,) = [c for c in STUDY.claims if c.id == f"fedcmoo/{number}"]
    assert claim.judge(good()).verdict == "reproduced"
    reasons = set()
    for change in CHANGES[number]:
        outcome = claim.judge({**good(), **change})
        assert outcome.verdict == "partly", change
        assert ";" not in outcome.reason, "one change breaks one part"
        reasons.add(outcome.reason)
    assert len(reasons) == len(CHANGES[number])
    wrong = {k: v for change in CHANGES[number] for k, v in change.items()}
    assert claim.judge({**good(), **wrong}).verdict == "not reproduced"


def test_mixed_losses_are_never_more_than_partly_reproduced():
    wrong = {
        "mixed_scalarized.accuracy_1": about(30),
        "mixed_fsmgda.gap": about(-50),
        "mixed_fedcmoo_vs_fsmgda.worst": about(0),
    }
    missing = "the half of the table with CIFAR-10 was not run"
    held = rules.C11(good())
    assert (held.verdict, held.reason) == ("partly", f"does not hold: {missing}")
    reasons = [rules.C11({**good(), key: x}).reason for key, x in wrong.items()]
    assert len(set(reasons)) == 3
    assert all(r.count(";") == 1 and r.endswith(missing) for r in reasons)
    assert rules.C11({**good(), **wrong}).verdict == "not reproduced"


def test_equal_accuracies_are_in_no_order():
    same = mean([90.0])
    n = good() | {f"multi_mnist_{m}.accuracy_1": same for m in METHODS}
    assert "MultiMNIST, task 1" in rules.C3(n).reason


def few_pictures(data):
    """Pictures that need no download."""
    colour = data == "cifar10_mnist"
    X = torch.randint(256, (8, 3, 32, 32) if colour else (8, 1, 28, 28)).to(torch.uint8)
    names = {"multi_mnist": ("left digit", "right digit"), "mnist_fashion": ("digit", "item")}
    y = torch.arange(16).view(8, 2) % 10
    scale = CIFAR10_SCALE if colour else MNIST_SCALE
    return Pairs(X, y, names.get(data, ("object", "digit")), scale)


@pytest.mark.parametrize("name", list(STUDY.figures))
def test_figures_show_every_data_set_and_method(name, traces, monkeypatch):
    monkeypatch.setattr(figures, "test_pictures", few_pictures)
    picture = render(STUDY.figures[name](traces), "dark", "svg", (9, 5)).decode()
    text = {
        "gallery": [*DATA.values(), "0 and 1", "0 and trouser", "plane and 1"],
        "mixed": ["Scalarized", "FSMGDA", "FedCMOO", "Digit 1, squared loss", "weight of Digit 1"],
        "variants": ["FedCMOO, one-way", "FedCMOO-Pref, no least weight"],
        "dropout": ["MultiMNIST", "without dropout", "FedCMOO"],
        "tasks": [
            *DATA.values(),
            "that task alone",
            "item",
            f"{FULL['colour_rounds']} rounds, one seed",
        ],
    }
    expected = text.get(
        name,
        [*DATA.values(), "FSMGDA", "FedCMOO-Pref", f"{FULL['colour_rounds']} rounds, one seed"],
    )
    shown = picture.replace("+\n", "+ ")
    missing = [
        x for x in expected if x not in shown and not all(w in shown for w in x.split(" + "))
    ]
    assert not missing


def test_the_variants_are_compared_on_one_seed(traces):
    few = traces["mnist_fashion_pref_free"].seeds
    one = figures.of_seeds(traces["mnist_fashion_pref"], few)
    assert one.seeds == few == (0,)
    np.testing.assert_array_equal(
        one.metrics["loss"], traces["mnist_fashion_pref"].metrics["loss"][:1]
    )
