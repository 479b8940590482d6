"""The studies of FedFW's Tables 1, 2 and 3: specs, numbers by hand, tables, figures."""

from dataclasses import replace

import numpy as np
import pytest

import fedlib as fl
from papers.fedfw import stochastic as numbers_3
from papers.fedfw import tables as fw_tables
from papers.fedfw.cells import (
    BEST_FEDDR,
    CELLS,
    COLUMNS,
    METHODS,
    NON_IID,
    NORMS,
    SYNTHETIC,
    TABLES,
    as_coded,
    column_text,
    make_problem,
)
from papers.fedfw.tables import numbers
from papers.fedfw.tables import report as tables
from papers.kit import store
from papers.kit.numbers import Number
from tests.helpers.expect import refuses
from tests.helpers.table_runs import STUDY, STUDY_3, curve, fake

FULL, QUICK = STUDY.resolve("full"), STUDY.resolve("quick")
FULL_3, QUICK_3 = STUDY_3.resolve("full"), STUDY_3.resolve("quick")


@pytest.fixture(scope="module")
def traces():
    return fake(STUDY, FULL)


@pytest.fixture(scope="module")
def found(traces):
    return numbers.derive(traces, FULL)


@pytest.fixture(scope="module")
def traces_3():
    return fake(STUDY_3, FULL_3)


@pytest.fixture(scope="module")
def found_3(traces_3):
    return numbers_3.derive(traces_3, FULL_3)


def test_every_printed_cell_has_runs_of_every_method_and_protocol(found):
    for column, norm in TABLES:
        for m in METHODS:
            assert f"{column}_{norm}_{m}.accuracy" in found
            coded = COLUMNS[column].net != "cnn" and not column.endswith("synthetic_labels")
            assert (f"{column}_{norm}_code_{m}.best" in found) == coded
    assert sum(not c.endswith("classes") for c, _ in TABLES) == 20


def test_both_protocols_are_what_they_say():
    specs = STUDY.specs(FULL)
    written = specs["mclr_pictures_labels_l1_fedfw_0.01"]
    assert written.algorithm == fl.FedFW(0.01)
    assert (written.rounds, written.seeds) == (100, (0, 1, 2))
    made = written.problem.keywords
    assert (made["norm"], made.get("radius", 10.0), made.get("code", False)) == ("l1", 10.0, False)
    printed = specs["mclr_pictures_labels_l1_code_fw_0.0001_r100"]
    assert isinstance(printed.algorithm, fl.FedFWReset)
    assert printed.algorithm.local_steps == 3
    made = printed.problem.keywords
    own = (made["radius"], made["code"], made["tensors"], printed.rounds)
    assert own == (100, True, True, 1000)
    baseline = specs["mclr_pictures_iid_l2_code_feddr"]
    assert (baseline.algorithm.lr, baseline.algorithm.relaxation) == (0.05, 0.01)
    assert "tensors" not in baseline.problem.keywords
    gradients = {s.algorithm.local_steps for n, s in specs.items() if "_feddr_" in n}
    assert gradients == {1}


def test_columns_without_rows_are_left_out():
    assert set(COLUMNS) == set(fw_tables.columns(FULL))
    few = fw_tables.columns({**FULL, "cifar_rows": 0, "cnn_rows": 0, "most": 0})
    assert set(few) == {"mclr_pictures_iid", "mclr_pictures_labels"}
    assert [*fw_tables.columns(QUICK)] == ["mclr_pictures_labels"]


def test_problems_have_the_clients_labels_and_balls():
    given = {"pictures": "digits", "rows": 400, "tested": 100, "norm": "l1"}
    windows = make_problem(0, column=COLUMNS["mclr_pictures_labels"], **given)
    for u, own in enumerate(windows.rows):
        labels = set(windows.data[1][own].tolist())
        assert labels == {(u + j) % 10 for j in range(3)}
    assert windows.set == fl.L1Ball(10.0)
    assert len(windows.heldout[1]) == 100
    three = make_problem(0, column=COLUMNS["mclr_synthetic_classes"], **given)
    assert three.dim == 3 * 61
    coded = make_problem(
        0, column=COLUMNS["mclr_pictures_iid"], **given, radius=4.0, code=True, tensors=True
    )
    assert coded.set == fl.Blocks((fl.L1Ball(4.0),) * 2, (640, 10))
    assert len(coded.heldout[1]) == 100  # a quarter of 400 rows, not the test pictures
    assert column_text("dnn_synthetic_labels", "mnist") == "60-20-10, synthetic, 3 labels a client"


def test_the_setting_has_the_lowest_late_loss_whatever_its_accuracy():
    runs = {
        "c_l2_fedfw_0.1": curve([0.1, 0.9, 0.9, 0.9, 0.9], [2, 1, 0.9, 0.9, 0.9]),
        "c_l2_fedfw_0.01": curve([0.1, 0.2, 0.2, 0.2, 0.2], [2, 3, 0.8, 0.8, 0.8]),
        "c_l2_feddr_0.1_10": curve([0.5] * 5, [0.0] * 5),
    }
    assert numbers.chosen(runs, "c_l2", "fedfw") == "0.01"
    assert numbers.chosen(runs, "c_l2", "feddr") == "0.1_10"


def test_final_and_best_accuracy():
    trace = curve([0.1, 0.8, 0.3, 0.6, 0.5], [2.0] * 5)
    wanted = {"accuracy": 51, "best": 81}
    for key, value in wanted.items():
        assert numbers.MEASURES[key][0](trace).mean() == pytest.approx(value)


def test_rounds_to_a_level_by_hand():
    trace = curve([0.1] * 5, [2.0, 1.9, 1.7, 1.0, 1.0], seeds=(0,))
    assert numbers.rounds_to(trace, 0.9) == pytest.approx([7.5])
    assert numbers.rounds_to(trace, 0.5) == pytest.approx([15])
    assert numbers.rounds_to(trace, 0.4) == pytest.approx([20])
    slow = curve([0.1] * 5, [2.0, 2.0, 2.0, 1.7, 1.0], seeds=(0,))
    found = numbers.levels({"c_fedfw_1": slow, "c_plus_1": trace, "c_plus_2": trace}, "c")
    wanted = np.mean([7.5 - 40 / 3, (10 + 2 / 7 * 5) - (15 + 2 / 7 * 5), 15 - 20])
    assert found["c_plus_vs_fedfw.rounds"].value == pytest.approx(wanted)


def test_differences_are_paired_by_seed(found):
    cell = "mclr_cifar10_iid_l2"
    a, b = (found[f"{cell}_{m}.accuracy"].value for m in ("fedfw", "feddr"))
    pair = found[f"{cell}_fedfw_vs_feddr.accuracy"]
    assert pair.value == pytest.approx(a - b)
    assert pair.low == pytest.approx(pair.high)  # the same shift in every seed cancels


def test_sentences_about_the_l2_ball_are_means_over_columns(found):
    each = [found[f"{c}_l2_fedfw_vs_feddr.accuracy"].value for c in NON_IID]
    assert found["written_l2_labels.ahead"].value == pytest.approx(np.mean(each))
    coded = [found[f"{as_coded(c)}_l2_code_fedfw_vs_feddr.best"].value for c in NON_IID]
    assert found["code_l2_labels.ahead"].value == pytest.approx(np.mean(coded))
    assert as_coded("dnn_synthetic_labels") == "dnn_synthetic_classes"
    assert as_coded("mclr_cifar10_labels") == "mclr_cifar10_labels"
    two = [[found[f"{c}_l2_{m}_vs_feddr.accuracy"].value for m in ("fedfw", "plus")]
           for c in BEST_FEDDR]  # fmt: skip
    assert found["written_l2_iid.best"].value == pytest.approx(-np.max(two, 1).mean())
    iid = [found[f"{c}_l2_fedfw_vs_feddr.accuracy"].value for c in SYNTHETIC]
    assert found["written_l2_synthetic.ahead"].value == pytest.approx(np.mean(iid))


def test_cells_without_a_difference_are_ties_and_no_failures():
    each = [(-3, -2), (-1, -1), (0, 0), (2, 2)]
    rounds = {f"{c}_{norm}_plus_vs_fedfw.rounds": Number(0, 0, 0, seeds)
              for (c, norm), seeds in zip(CELLS, each, strict=False)}  # fmt: skip
    made = numbers.faster(rounds)
    assert made["plus_vs_fedfw.ties"].value == 1
    assert made["plus_vs_fedfw.fewer"].value == pytest.approx(200 / 3)
    assert made["plus_vs_fedfw.rounds"].per_seed == (-0.5, -0.25)
    assert numbers.faster({}) == {}
    level = {k: Number(0, 0, 0, (0, 0)) for k in rounds}
    assert "plus_vs_fedfw.fewer" not in numbers.faster(level)


def test_counts_are_over_the_printed_cells(found):
    kept = [c for c in TABLES if "classes" not in c[0]]
    ahead = [
        found[f"{c}_{n}_fedfw.accuracy"].value > found[f"{c}_{n}_feddr.accuracy"].value
        for c, n in kept
    ]
    assert found["count_written.cells"].value == 20
    assert found["count_written.fedfw_ahead"].value == sum(ahead)
    assert found["count_written_printed.fedfw_ahead"].value == sum(
        TABLES[c][1] > TABLES[c][0] for c in kept
    )
    assert found["count_code.cells"].value == 16


def test_derive_works_for_a_shortened_list_of_runs():
    params = {**QUICK, "lambdas": (0.01,), "most": 0}
    found = numbers.derive(fake(STUDY, params), params)
    assert found["mclr_pictures_labels_l2_fedfw.lam"].value == 0.01
    assert "mclr_cifar10_iid_l2_fedfw.lam" not in found


def test_the_table_has_a_line_a_method_and_three_columns(found):
    frame = tables.three_columns(found, 1, "l2", "mnist")
    assert len(frame) == 3 * 7
    line = frame.loc["MNIST, 3 labels a client: FedFW"]
    assert line.iloc[-1] == "86.95"
    assert f"{found['mclr_pictures_labels_l2_fedfw.accuracy'].value:.1f}" in line.iloc[0]
    assert f"{found['mclr_pictures_labels_l2_code_fedfw.best'].value:.1f}" in line.iloc[2]
    words = frame.loc["synthetic, 3 labels a client: FedFW"]
    assert words.iloc[2] == "-"
    third = tables.three_columns(numbers_3.derive(fake(STUDY_3, QUICK_3), QUICK_3), 3, "", "digits")
    assert list(third.iloc[:, -1]) == ["92.18", "93.79", "85.70", "91.88"]


def test_the_table_says_which_cells_are_not_healthy():
    n, health = store.read_numbers("fw_tables"), store.read_derived("fw_tables").health
    table = tables.three_columns(n, 2, "l2", "mnist", health)
    assert table.loc["CNN, MNIST, IID: FedFW", "not healthy"].startswith("(a) at chance")
    assert table.loc["CNN, MNIST, IID: FedDR", "not healthy"] == ""


def test_seeds_that_ran_alone_are_put_together():
    one, other = curve([0.1] * 5, [1.0] * 5, seeds=(0,)), curve([0.3] * 5, [2.0] * 5, seeds=(4,))
    runs = {"a_seed0": one, "b_seed0": one, "c_seed0": one, "a_seed4": other, "c_seed4": other}
    whole = numbers_3.merged(runs)
    assert [*whole] == ["a", "c"], "of b a seed is not there yet"
    assert whole["a"].seeds == (0, 4)
    np.testing.assert_allclose(whole["a"].metrics["loss"][:, 0], [1, 2])


def test_table_3_has_its_columns_and_settings(found_3):
    specs = STUDY_3.specs(FULL_3)
    assert specs["mclr_cifar10_iid_sto_0.001_seed2"].algorithm == fl.FedFWSto(0.001, 64)
    assert specs["mclr_cifar10_iid_sto_0.001_seed2"].seeds == (2,)
    assert specs["mclr_pictures_iid_code_sto_seed0"].algorithm.lam0 == 1e-4
    assert found_3["count_written.cells"].value == found_3["count_code.cells"].value == 6
    assert "mclr_synthetic_labels_code_sto.best" not in found_3
    assert "mclr_synthetic_classes_code_sto.best" in found_3


def test_a_quick_run_learns_and_stays_in_the_ball():
    wanted = "mclr_pictures_labels_l1_fedfw_0.001"
    spec = STUDY.specs(QUICK)[wanted]
    trace = fl.run(spec.algorithm, spec.problem, rounds=20, seeds=(0,), progress=False)
    assert trace.metrics["accuracy"][0, -1] > 0.3
    assert trace.metrics["size"].max() <= 1 + 1e-5
    assert replace(spec, rounds=5).key() != spec.key()
    assert [*NORMS] == ["l2", "l1"]


@pytest.mark.parametrize(
    ("study", "change", "rule"),
    [
        (STUDY, {"cnn_rows": 1}, "be at least 100 (ten a client), got 1."),
        (STUDY_3, {"cifar_rows": 99}, "be at least 100 (ten a client), got 99."),
        (STUDY_3, {"most": 3}, "be at least 4 (a quarter of them is for testing), got 3."),
    ],
)
def test_too_few_rows_are_refused_by_the_name_that_the_page_has(study, change, rule):
    refuses(
        f"{study.name}: {next(iter(change))} must {rule}",
        study.specs,
        study.resolve("quick", **change),
    )
