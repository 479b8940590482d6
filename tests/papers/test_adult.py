"""Adult as the study of fairness uses it, and its stand-in."""

import pandas as pd
import pytest
import torch
from torch.testing import assert_close

from fedlib import data
from papers import adult
from tests.helpers.expect import near


def frame(pairs):
    """Rows in the form of Adult's files, men and women in turn."""
    columns = {name: range(2 * pairs) for name in adult.NUMBERS}
    columns |= {name: ["one", "two"] * pairs for name in adult.CATEGORIES}
    columns["sex"] = ["Male", "Female"] * pairs
    columns["income"] = [">50K", "<=50K"] * pairs
    return pd.DataFrame(columns)


@pytest.mark.skipif(
    not data.available("adult"), reason="Adult's files are not in the cache; set FEDLIB_DATA"
)
def test_adult_as_the_study_uses_it():
    train, test = adult.official()
    assert train.X.shape == (30162, 87)
    assert test.X.shape == (15060, 87)
    rates = [float(train.y[train.group == group].mean()) for group in (1, 0)]
    near(rates, [0.314, 0.114], abs=5e-4)
    near(float(train.group.mean()), adult.MEN, abs=0.01)
    assert_close(train.X[:, :5].mean(0), torch.zeros(5), atol=1e-4, rtol=0)
    assert train.X[:, 5:].unique().tolist() == [0, 1]
    assert (train.X[:, 5:].sum(1) == len(adult.CATEGORIES)).all()


def test_the_stand_in_has_the_shape_and_a_gap():
    train, test = adult.stand_in(3000)
    assert train.X.shape == (3000, adult.WIDTH)
    assert test.X.shape == (1500, adult.WIDTH)
    men = float(train.y[train.group == 1].mean())
    women = float(train.y[train.group == 0].mean())
    assert men > women + 0.1


def test_dots_and_blanks_do_no_harm_and_what_lacks_a_value_is_dropped():
    train = frame(4)
    test = frame(3)
    test.loc[2, "occupation"] = None
    plain = adult.prepared(train, test)
    assert plain.test.y.tolist() == [1, 0, 0, 1, 0]
    assert plain.test.group.tolist() == [1, 0, 0, 1, 0]
    for column in (*adult.CATEGORIES, "income"):
        blank_first = " " + test[column]
        test[column] = blank_first.where(test[column].notna())
    test["income"] += "."
    dotted = adult.prepared(train, test)
    for tensor, expected in zip(dotted.test, plain.test, strict=True):
        assert torch.equal(tensor, expected)


def test_test_rows_are_scaled_with_the_training_statistics():
    train = frame(4)
    test = frame(3)
    ages = adult.prepared(train, test).test.X[:, 0]
    test["age"] += 1000
    moved = adult.prepared(train, test).test.X[:, 0]
    std = train["age"].std(ddof=0)
    near((moved - ages).tolist(), [1000 / std] * 6, rel=1e-4)
