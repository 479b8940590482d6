"""Adult as the study of fairness uses it, and its stand-in."""

import pytest
import torch
from expect import refuses

from fedlib import data
from papers import adult


@pytest.mark.skipif(
    not data.available("adult"), reason="Adult's files are not in the cache; set FEDLIB_DATA"
)
def test_adult_as_the_study_uses_it():
    train, test, columns = adult.official()
    assert train.X.shape == (30162, 87)
    assert test.X.shape == (15060, 87)
    rates = [float(train.y[train.group == k].mean()) for k in (1, 0)]
    assert rates == pytest.approx([0.314, 0.114], abs=5e-4)
    torch.testing.assert_close(train.X[:, :5].mean(0), torch.zeros(5), atol=1e-4, rtol=0)
    assert train.X[:, 5:].unique().tolist() == [0, 1]
    assert (train.X[:, 5:].sum(1) == len(adult.CATEGORIES)).all()
    male = columns.index("sex=Male")
    assert torch.equal(train.X[:, male], train.group)
    raw = data.adult("train")
    for name, levels in adult.LEVELS.items():
        assert set(raw.dropna()[name].unique()) == set(levels)
    generated = adult.stand_in(100)
    assert list(generated.columns) == list(raw.columns)
    assert generated.dtypes.equals(raw.dtypes)
    assert adult.prepared(generated, generated).columns == columns


def test_the_stand_in_has_the_schema_and_a_gap():
    train, test, columns = adult.prepared(adult.stand_in(3000), adult.stand_in(1500, seed=1))
    assert len(columns) == 87 == train.X.shape[1] == test.X.shape[1]
    assert len(train.y) < 3000  # some rows lack a value and are dropped
    rates = [float(train.y[train.group == k].mean()) for k in (1, 0)]
    assert rates == pytest.approx([0.31, 0.11], abs=0.03)
    assert adult.stand_in(100).equals(adult.stand_in(100))
    assert not adult.stand_in(100).equals(adult.stand_in(100, seed=1))
    refuses("rows must be at least 41", adult.stand_in, 40)


def test_dots_and_blanks_do_no_harm():
    train, test = adult.stand_in(200), adult.stand_in(200, seed=1)
    plain = adult.prepared(train, test)
    texts = [*adult.CATEGORIES, "income"]
    blanks = test.assign(**{c: (" " + test[c]).where(test[c].notna()) for c in texts})
    found = adult.prepared(train, blanks.assign(income=blanks.income + "."))
    assert all(torch.equal(a, b) for a, b in zip(found.test, plain.test, strict=True))


def test_test_rows_are_scaled_with_the_training_statistics():
    train, test = adult.stand_in(200), adult.stand_in(200, seed=1)
    shifted = test.assign(age=test["age"] + 1000)
    moved = adult.prepared(train, shifted).test.X[:, 0] - adult.prepared(train, test).test.X[:, 0]
    std = train.dropna()["age"].std(ddof=0)
    torch.testing.assert_close(moved, torch.full_like(moved, 1000 / std), rtol=1e-4, atol=0)
