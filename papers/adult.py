"""UCI Adult as tensors: preprocessing of its frames, and generated rows in their place."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from fedlib.data.loaders import adult
from fedlib.problems.fairness import Rows

if TYPE_CHECKING:
    import pandas as pd

#: The columns that are used; `fnlwgt` and `education` (a name for `education_num`) are not.
NUMBERS = ("age", "education_num", "capital_gain", "capital_loss", "hours_per_week")
CATEGORIES = (
    "workclass",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native_country",
)
WIDTH = 87  # columns of the tensors
MEN = 0.68  # share of the rows


class Adult(NamedTuple):
    """Training and test rows: X float32, y 1 for more than 50K, group 1 for men."""

    train: Rows
    test: Rows


def official() -> Adult:
    """The official files: 30162 training and 15060 test rows without missing values, 87 columns.

    Raises
    ------
    DataError
        if the files are neither in the cache nor to be had.
    """
    return prepared(adult("train"), adult("test"))


def prepared(train: "pd.DataFrame", test: "pd.DataFrame") -> Adult:
    """Frames as `fedlib.data.adult` gives them, as tensors.

    Rows with a missing value are dropped; numbers are z-scored with the mean and the standard
    deviation of the training rows; categories become one column a level that training rows have
    (a level that only test rows have gives zeros). Group: sex. The test file has a dot after every
    income.
    """
    train = cleaned(train)
    test = cleaned(test)
    levels = {column: sorted(train[column].unique()) for column in CATEGORIES}
    numbers = train[list(NUMBERS)].to_numpy(float)
    mean = numbers.mean(0)
    std = numbers.std(0)
    std[std == 0] = 1

    def tensors(frame: "pd.DataFrame") -> Rows:
        scaled = (frame[list(NUMBERS)].to_numpy(float) - mean) / std
        hot = [np.equal.outer(frame[c].to_numpy(), levels[c]) for c in CATEGORIES]
        X = np.concatenate([scaled, *hot], axis=1)
        return Rows(
            torch.from_numpy(X.astype(np.float32)),
            torch.from_numpy((frame["income"] == ">50K").to_numpy(np.float32)),
            torch.from_numpy((frame["sex"] == "Male").to_numpy(np.float32)),
        )

    return Adult(tensors(train), tensors(test))


def cleaned(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The rows without missing values, their texts without blanks, and incomes without dots."""
    frame = frame.dropna().copy()
    for column in (*CATEGORIES, "income"):
        frame[column] = frame[column].astype(str).str.strip()
    frame["income"] = frame["income"].str.removesuffix(".")
    return frame


def stand_in(rows: int) -> Adult:
    """Generated rows in the place of Adult's, and half as many for the test, without its files.

    Not a model of Adult: as many columns, and men earn more than 50K more often than women.
    """
    rng = torch.Generator().manual_seed(0)

    def drawn(count: int) -> Rows:
        X = torch.randn(count, WIDTH, generator=rng)
        group = (torch.rand(count, generator=rng) < MEN).float()
        score = X[:, : len(NUMBERS)].sum(1) + 2 * group - 3
        y = torch.rand(count, generator=rng) < score.sigmoid()
        return Rows(X, y.float(), group)

    return Adult(drawn(rows), drawn(rows // 2))
