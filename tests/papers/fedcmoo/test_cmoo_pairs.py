"""The study of two tasks in one picture: its numbers and figures."""

import numpy as np
import pytest

from fedlib.core import Trace
from papers.fedcmoo.common import METHODS, final
from papers.fedcmoo.pairs import STUDY, tables
from papers.fedcmoo.pairs.claims import PAPER_VALUES, TABLE_1, TABLE_4
from papers.fedcmoo.pairs.quantities import decline, derive, rounds_to
from papers.fedcmoo.pairs.runs import DEFAULTS
from papers.kit.numbers import mean
from papers.kit.quantities import Query, name_of

FULL = STUDY.profiles["full"]

CURVES = ("accuracy", "accuracy_1", "accuracy_2", "loss", "loss_1", "loss_2")


USUAL = {label: value for label, value in DEFAULTS.items() if value is not None}
MIXED = {"data": "multi_mnist", "losses": "mixed", "dropout": True}
APART = Query.of("accuracy", **MIXED, method="fedcmoo", minus="fsmgda")


def run(accuracy, rounds, seeds=(0,), pictures=60000, labels=(), **info):
    """A trace whose curves are all `accuracy`, `[S, T_eval]`; losses twice that."""
    x = np.atleast_2d(np.asarray(accuracy, float))
    metrics = {k: x if "accuracy" in k else 2 * x for k in CURVES}
    config = {"problem": {"pictures": pictures}, "labels": {**USUAL, **dict(labels)}}
    infos = {k: np.atleast_2d(np.asarray(v, float)) for k, v in info.items()}
    return Trace(metrics, infos, np.asarray(rounds), seeds, config)


def derived(*traces):
    """The quantities of some runs."""
    return derive({name_of(t.config["labels"], DEFAULTS): t for t in traces}, FULL)


@pytest.fixture(scope="module")
def traces():
    return STUDY.load()


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
    mixed = {name: {**MIXED, "method": name} for name in ("fedcmoo", "fsmgda")}
    long = run([[0, 0.1, 0.2, 0.3, 0.5, 0.9]], t, labels=mixed["fedcmoo"])
    rival = run([[0, 0, 0, 0.2, 0.2, 0.9]], t, labels=mixed["fsmgda"])
    numbers = derived(long, rival)
    assert numbers[Query.of("accuracy_300", **mixed["fedcmoo"])].value == pytest.approx(40)
    apart = numbers[Query.of("accuracy_300", **mixed["fedcmoo"], minus="fsmgda")]
    assert (apart.value, apart.unit) == (pytest.approx(20), "points")
    short = derived(run([[0, 0.1, 0.2]], t[:3], labels=mixed["fedcmoo"]), rival)
    assert Query.of("accuracy_300", **mixed["fedcmoo"]) not in short


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
    for data, rows in TABLE_1.items():
        for m in METHODS:
            assert decline(rows[m], rows["single"]) == pytest.approx(TABLE_4[data][m], abs=0.0051)
    worse = decline((90.0, 45.0), (100.0, 50.0))
    assert worse == pytest.approx(10)
    assert decline((110.0, 50.0), (100.0, 50.0)) == pytest.approx(-5)
    of_seeds = decline([np.array([90.0, 100.0]), np.array([45.0, 50.0])], (100.0, 50.0))
    assert of_seeds == pytest.approx([10, 0])


def test_accuracies_are_in_percent():
    labels = {"data": "mnist_fashion", "method": "fedcmoo"}
    trace = run([[0.1, 0.5, 0.8]], [0, 5, 10], labels=labels)
    trace.metrics["accuracy_2"] = np.array([[0.1, 0.2, 0.6]])
    rival = run([[0.1, 0.5, 0.7]], [0, 5, 10], labels={**labels, "method": "fsmgda"})
    numbers = derived(trace, rival)
    expected = {
        "accuracy_1": (80, "%"),
        "worst": (60, "%"),
        "gap": (20, "points"),
        "loss": (1.6, ""),
    }
    for measure, (value, unit) in expected.items():
        number = numbers[Query.of(measure, **labels)]
        assert (number.value, number.unit) == (pytest.approx(value), unit)


def test_differences_are_paired_on_common_seeds():
    ours, theirs = ({**MIXED, "method": name} for name in ("fedcmoo", "fsmgda"))
    a = run([[0, 0.5], [0, 0.9]], [0, 10], seeds=(0, 1), labels=ours)
    b = run([[0, 0.6], [0, 0.1]], [0, 10], seeds=(1, 2), labels=theirs)
    known = derived(a, b)
    assert known[APART].per_seed == pytest.approx((30,))
    assert known[APART].unit == "points"
    with_others = run([[0, 0.6], [0, 0.1]], [0, 10], seeds=(7, 8), labels=theirs)
    near = run([[0, 0.5]], [0, 10], seeds=(7,), labels={**MIXED, "method": "scalarized"})
    apart = derived(a, with_others, near)
    assert APART not in apart
    assert not [name for name in apart if "minus" in name]


def test_every_printed_value_has_its_number(numbers):
    assert not [v.key for v in PAPER_VALUES if v.key not in numbers]
    assert len({v.label for v in PAPER_VALUES}) == len(PAPER_VALUES) == 16 + 6 + 6
    (value,) = [v for v in PAPER_VALUES if v.label == "MultiMNIST, FedCMOO, Delta_M"]
    assert value.paper_text == "0.79 %"
    assert value.status(mean([0.8])) == "agrees"
    assert value.status(mean([2.0])) == "differs"


@pytest.mark.parametrize("dropout", [False, True])
def test_delta_is_by_the_single_task_runs_of_the_same_seed(dropout, traces, numbers):
    single = [traces[f"multi_mnist_single_task{task}"] for task in (1, 2)]
    alone = [final(run, f"accuracy_{task}") for task, run in enumerate(single, 1)]
    declines = {}
    for method in ("fedcmoo", "fsmgda"):
        labels = {"data": "multi_mnist", "method": method, "dropout": dropout}
        trace = traces[name_of(labels, DEFAULTS)]
        accuracies = [final(trace, f"accuracy_{task}") for task in (1, 2)]
        declines[method] = numbers[Query.of("decline", **labels)].per_seed
        assert declines[method] == pytest.approx(decline(accuracies, alone))
    fedcmoo = {"data": "multi_mnist", "method": "fedcmoo", "dropout": dropout}
    apart = numbers[Query.of("decline", **fedcmoo, minus="fsmgda")].per_seed
    assert apart == pytest.approx(np.subtract(declines["fedcmoo"], declines["fsmgda"]))


@pytest.mark.parametrize(
    "missing",
    [
        {"data": "cifar10_mnist"},
        {"losses": "mixed"},
        {"method": "single", "data": "multi_mnist"},
        {"gram": "one-way"},
        {"dropout": True},
        {"lr": 0.3},
    ],
)
def test_quantities_do_without_missing_runs(traces, missing):
    fewer = {
        name: trace
        for name, trace in traces.items()
        if not missing.items() <= trace.config["labels"].items()
    }
    numbers = derive(fewer, FULL)
    fedcmoo = {"data": "mnist_fashion", "method": "fedcmoo"}
    assert numbers[Query.of("accuracy", **fedcmoo, minus="fsmgda")].value
    rows = numbers.table
    for label, value in missing.items():
        rows = rows[rows[label] == value] if label in rows else rows[:0]
    assert rows.empty


def test_every_method_is_shown_at_the_step_sizes_of_each(numbers):
    table = tables.step_table(numbers)
    assert [*table.columns][:3] == ["plain average", "FSMGDA", "FedCMOO"]
    assert len(table) == 3
    query = Query.of("accuracy", data="mnist_fashion", method="fedcmoo", dropout=True)
    assert table.loc["server 1.2, clients 0.5", "FedCMOO"] == numbers[query].text(".1f")
    assert tables.step_table({}).empty
