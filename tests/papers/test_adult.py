"""Adult as the study of fairness uses it, and its stand-in."""

import pandas as pd
import pytest
import torch

from fedlib import data
from papers import adult


def frame(rows, **more):
    """Rows in the form of Adult's files."""
    numbers = {name: range(rows) for name in adult.NUMBERS}
    texts = {name: ["one", "two"] * (rows // 2) for name in (*adult.CATEGORIES, "income")}
    sex, income = ["Male", "Female"] * (rows // 2), [">50K", "<=50K"] * (rows // 2)
    return pd.DataFrame({**numbers, **texts, "sex": sex, "income": income, **more})


@pytest.mark.skipif(
    not data.available("adult"), reason="Adult's files are not in the cache; set FEDLIB_DATA"
)
def test_adult_as_the_study_uses_it():
    train, test = adult.official()
    assert train.X.shape == (30162, 87)
    assert test.X.shape == (15060, 87)
    rates = [float(train.y[train.group == k].mean()) for k in (1, 0)]
    assert rates == pytest.approx([0.314, 0.114], abs=5e-4)
    assert float(train.group.mean()) == pytest.approx(adult.MEN, abs=0.01)
    torch.testing.assert_close(train.X[:, :5].mean(0), torch.zeros(5), atol=1e-4, rtol=0)
    assert train.X[:, 5:].unique().tolist() == [0, 1]
    assert (train.X[:, 5:].sum(1) == len(adult.CATEGORIES)).all()


def test_the_stand_in_has_the_shape_and_a_gap():
    train, test = adult.stand_in(3000)
    assert train.X.shape == (3000, adult.WIDTH)
    assert test.X.shape == (1500, adult.WIDTH)
    men, women = (float(train.y[train.group == k].mean()) for k in (1, 0))
    assert men > women + 0.1
    assert torch.equal(adult.stand_in(100).train.X, adult.stand_in(100).train.X)


def test_dots_and_blanks_do_no_harm_and_what_lacks_a_value_is_dropped():
    train, test = frame(8), frame(6)
    test.loc[2, "occupation"] = None
    plain = adult.prepared(train, test)
    assert len(plain.test.y) == 5
    assert plain.test.y.tolist() == plain.test.group.tolist() == [1, 0, 0, 1, 0]
    texts = [*adult.CATEGORIES, "income"]
    blanks = test.assign(**{c: (" " + test[c]).where(test[c].notna()) for c in texts})
    found = adult.prepared(train, blanks.assign(income=blanks.income + "."))
    assert all(torch.equal(a, b) for a, b in zip(found.test, plain.test, strict=True))


def test_test_rows_are_scaled_with_the_training_statistics():
    train, test = frame(8), frame(6)
    shifted = test.assign(age=test["age"] + 1000)
    moved = adult.prepared(train, shifted).test.X[:, 0] - adult.prepared(train, test).test.X[:, 0]
    std = train["age"].std(ddof=0)
    torch.testing.assert_close(moved, torch.full_like(moved, 1000 / std), rtol=1e-4, atol=0)
