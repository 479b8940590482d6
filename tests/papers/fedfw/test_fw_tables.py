"""The studies of FedFW's Tables 1, 2 and 3: their problems, and single seeds put together."""

import numpy as np
import pytest

import fedlib as fl
from papers import STUDIES
from papers.fedfw.cells import COLUMNS, PRINTED_AT, make_problem
from papers.fedfw.stochastic.quantities import merged
from papers.fedfw.tables.quantities import meet
from papers.kit.numbers import Number
from tests.helpers.expect import refuses

SIZES = {"pictures": "digits", "rows": 400, "tested": 100, "norm": "l1"}


def problem_of(column, **options):
    return make_problem(0, column=COLUMNS[column], **SIZES, **options)


def test_problems_have_the_clients_labels_and_balls():
    windows = problem_of("mclr_pictures_labels")
    for u, rows in enumerate(windows.rows):
        labels = set(windows.data[1][rows].tolist())
        assert labels == {u, (u + 1) % 10, (u + 2) % 10}
    assert windows.set == fl.L1Ball(10.0)
    assert len(windows.heldout[1]) == 100
    assert problem_of("mclr_synthetic_classes").dim == 3 * 61


def test_problems_of_the_published_code_have_its_balls_and_its_test_rows():
    coded = problem_of("mclr_pictures_iid", radius=4.0, code=True, tensors=True)
    assert coded.set == fl.Blocks((fl.L1Ball(4.0),) * 2, (640, 10))
    assert len(coded.heldout[1]) == 100  # a quarter of 400 rows, not the test pictures


def test_seeds_that_ran_alone_are_put_together():
    def trace(seed, loss, method):
        labels = {"method": method, "only_seed": seed}
        return fl.Trace(
            {"loss": np.full((1, 5), loss)}, {}, np.arange(5), (seed,), {"labels": labels}
        )

    first_seed = {f"{name}_only_seed0": trace(0, 1.0, name) for name in "abc"}
    other_seed = {f"{name}_only_seed4": trace(4, 2.0, name) for name in "ac"}
    runs = merged({**first_seed, **other_seed})
    assert [*runs] == ["a", "c"], "of b a seed is not there yet"
    assert runs["a"].seeds == (0, 4)
    assert runs["a"].config["labels"] == {"method": "a"}
    np.testing.assert_allclose(runs["a"].metrics["loss"][:, 0], [1, 2])


def test_a_printed_value_meets_our_interval_with_the_printed_uncertainty():
    printed = PRINTED_AT["dnn_synthetic_iid", "l2", "feddr"]
    assert (printed.value, printed.points) == (75.96, 3.0)
    assert meet(Number(70.0, 68.0, 73.0, (68.0, 72.0)), printed)
    assert not meet(Number(70.0, 68.0, 72.9, (68.0, 72.0)), printed)
    assert meet(Number(73.0, np.nan, np.nan, (73.0,)), printed)
    assert not meet(Number(72.9, np.nan, np.nan, (72.9,)), printed)


@pytest.mark.parametrize(
    ("study", "parameter", "value", "rule"),
    [
        ("fw_tables", "cnn_rows", 1, "be at least 100 (ten a client)"),
        ("fw_stochastic", "cifar_rows", 99, "be at least 100 (ten a client)"),
        ("fw_stochastic", "most", 3, "be at least 4 (a quarter of them is for testing)"),
    ],
)
def test_too_few_rows_are_refused_by_the_name_that_the_page_has(study, parameter, value, rule):
    params = STUDIES[study].resolve("quick", **{parameter: value})
    words = f"{study}: {parameter} must {rule}, got {value}."
    refuses(words, STUDIES[study].specs, params)
