"""The study of two tasks in one picture: its numbers and figures."""

from dataclasses import replace

import numpy as np
import pytest

from fedlib.core import Trace
from papers.fedcmoo.pairs import STUDY, figures, rules
from papers.fedcmoo.pairs.claims import PAPER_VALUES, TABLE_4
from papers.fedcmoo.pairs.numbers import DATA, METHODS, decline, derive, final, rounds_to
from papers.kit import plot
from papers.kit.numbers import mean

FULL, QUICK = STUDY.profiles["full"], STUDY.profiles["quick"]

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
    assert final(run([x], t), "accuracy", end=60) == pytest.approx([(11 + 12) / 2])  # 55 and 60


def test_runs_longer_than_the_authors_demo_are_looked_at_after_as_many_rounds():
    t = [0, 100, 200, 290, 300, 400]
    one, other = run([[0, 0.1, 0.2, 0.3, 0.5, 0.9]], t), run([[0, 0, 0, 0.2, 0.2, 0.9]], t)
    found = derive({"mixed_fedcmoo": one, "mixed_fsmgda": other}, FULL)
    assert found["mixed_fedcmoo.accuracy_300"].value == pytest.approx(40)
    apart = found["mixed_fedcmoo_vs_fsmgda.accuracy_300"]
    assert (apart.value, apart.unit) == (pytest.approx(20), "points")
    short = derive({"mixed_fedcmoo": run([[0, 0.1, 0.2]], t[:3])}, FULL)
    assert not [key for key in short if key.endswith("_300")]


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


def test_table_4_follows_from_table_1():
    for data, rows in rules.TABLE_1.items():
        for m in METHODS:
            assert decline(rows[m], rows["single"]) == pytest.approx(TABLE_4[data][m], abs=0.0051)
    worse = decline((90.0, 45.0), (100.0, 50.0))
    assert worse == pytest.approx(10)
    assert decline((110.0, 50.0), (100.0, 50.0)) == pytest.approx(-5)
    of_seeds = decline([np.array([90.0, 100.0]), np.array([45.0, 50.0])], (100.0, 50.0))
    assert of_seeds == pytest.approx([10, 0])


def test_accuracies_are_in_percent():
    t = [0, 5, 10]
    trace = run([[0.1, 0.5, 0.8]], t)
    trace.metrics["accuracy_2"] = np.array([[0.1, 0.2, 0.6]])
    found = derive({"mnist_fashion_fedcmoo": trace}, FULL)
    run_name = "mnist_fashion_fedcmoo"
    assert found[f"{run_name}.accuracy_1"].value == pytest.approx(80)
    assert found[f"{run_name}.accuracy_1"].unit == "%"
    assert found[f"{run_name}.worst"].value == pytest.approx(60)
    assert found[f"{run_name}.gap"].value == pytest.approx(20)
    assert found[f"{run_name}.loss"].value == pytest.approx(1.6)


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
    assert len({v.label for v in PAPER_VALUES}) == len(PAPER_VALUES) == 16 + 6 + 6
    (value,) = [v for v in PAPER_VALUES if v.label == "MultiMNIST, FedCMOO, Delta_M"]
    assert value.paper_text == "0.79 %"
    assert value.status(mean([0.8])) == "agrees"
    assert value.status(mean([2.0])) == "differs"


@pytest.mark.parametrize("how", ["", "_dropout"])
def test_delta_is_by_the_single_task_runs_of_the_same_seed(how, traces, numbers):
    alone = [final(traces[f"multi_mnist_single_{k}"], f"accuracy_{k}") for k in (1, 2)]
    both = [f"multi_mnist_{m}{how}" for m in ("fedcmoo", "fsmgda")]
    found = [numbers[f"{run}.decline"].per_seed for run in both]
    for run, each in zip(both, found, strict=True):
        own = [final(traces[run], f"accuracy_{k}") for k in (1, 2)]
        assert each == pytest.approx(decline(own, alone))
    apart = numbers[f"multi_mnist{how}_fedcmoo_vs_fsmgda.decline"].per_seed
    assert apart == pytest.approx(np.subtract(*found))


@pytest.mark.parametrize(
    "missing", ["cifar10_mnist", "mixed", "multi_mnist_single", "_oneway", "_dropout", "_lr"]
)
def test_numbers_do_without_missing_runs(traces, missing):
    fewer = {n: t for n, t in traces.items() if missing not in n}
    found = derive(fewer, FULL)
    assert found["mnist_fashion_fedcmoo_vs_fsmgda.accuracy"].value
    assert not [k for k in found if missing in k.partition(".")[0]]


def test_other_parameters_and_the_quick_profile_have_numbers():
    for params in (QUICK, {**QUICK, "seeds": (3,), "variant_seeds": (5,)}):
        assert derive(all_runs(params), params)["multi_mnist_pref.accuracy"].value > 0


@pytest.mark.parametrize("name", list(STUDY.figures))
def test_figures_show_every_data_set_and_method(name, traces):
    picture = plot.export(STUDY.figures[name](traces), (9, 5))[0].decode()
    expected = {
        "gallery": [*DATA.values(), *(figures.first_pictures(data)[1][0] for data in DATA)],
        "dropout": ["MultiMNIST", "without dropout", "FedCMOO"],
        "overlay": ["MultiMNIST", "MNIST + Fashion-MNIST", "FSMGDA", "the authors' code"],
        "tasks": ["MultiMNIST", "MNIST + Fashion-MNIST", "that task alone", "item"],
    }
    shown = picture.replace("+\n", "+ ")
    missing = [
        x for x in expected[name] if x not in shown and not all(w in shown for w in x.split(" + "))
    ]
    assert not missing


def test_every_method_is_shown_at_the_step_sizes_of_each(numbers):
    table = figures.step_table(numbers)
    assert [*table.columns][:3] == ["plain average", "FSMGDA", "FedCMOO"]
    assert len(table) == 3
    at, own = "server 1.2, clients 0.5", "mnist_fashion_fedcmoo_dropout.accuracy"
    assert table.loc[at, "FedCMOO"] == numbers[own].text(".1f")
    assert figures.step_table({}).empty
