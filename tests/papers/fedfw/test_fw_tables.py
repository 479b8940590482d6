"""The studies of FedFW's Tables 1, 2 and 3: their problems, and single seeds put together."""

import pytest

import fedlib as fl
from papers import STUDIES
from papers.fedfw.cells import COLUMNS, make_problem
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
