"""UCI Adult as tensors: preprocessing of its frames, and generated frames of the same schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from fedlib import checks
from fedlib.checks import Count, Seed
from fedlib.data.loaders import ADULT_COLUMNS, adult
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


class Adult(NamedTuple):
    """Training and test rows (X float32, y 1 for more than 50K, group 1 for men), and columns."""

    train: Rows
    test: Rows
    columns: tuple[str, ...]


def official() -> Adult:
    """The official files: 30162 training and 15060 test rows without missing values, 87 columns.

    Raises
    ------
    DataError
        if the files are neither in the cache nor to be had.
    """
    return prepared(adult("train"), adult("test"))


def prepared(train: pd.DataFrame, test: pd.DataFrame) -> Adult:
    """Frames as `fedlib.data.adult` gives them, as tensors.

    Rows with a missing value are dropped; numbers are z-scored with the mean and the standard
    deviation of the training rows; categories become one column a level that training rows have
    (a level that only test rows have gives zeros). Group: sex. The test file has a dot after every
    income.
    """
    frames = []
    for frame in (train.dropna(), test.dropna()):
        texts = {c: frame[c].astype(str).str.strip() for c in (*CATEGORIES, "income")}
        frames.append(frame.assign(**{**texts, "income": texts["income"].str.removesuffix(".")}))
    first = frames[0]
    levels = {c: sorted(first[c].unique()) for c in CATEGORIES}
    numbers = first[list(NUMBERS)].to_numpy(float)
    mean, std = numbers.mean(0), numbers.std(0)
    std[std == 0] = 1
    names = (*NUMBERS, *(f"{c}={level}" for c in CATEGORIES for level in levels[c]))
    rows, test_rows = (_tensors(frame, levels, mean, std) for frame in frames)
    return Adult(rows, test_rows, names)


def _tensors(frame: Any, levels: dict[str, list[str]], mean: Any, std: Any) -> Rows:
    scaled = (frame[list(NUMBERS)].to_numpy(float) - mean) / std
    hot = [frame[c].to_numpy()[:, None] == np.array(levels[c], object) for c in CATEGORIES]
    parts = np.concatenate([scaled, *hot], 1).astype(np.float32)
    return Rows(
        torch.from_numpy(parts),
        torch.from_numpy((frame["income"] == ">50K").to_numpy(np.float32)),
        torch.from_numpy((frame["sex"] == "Male").to_numpy(np.float32)),
    )


def stand_in(rows: Count, seed: Seed = 0) -> pd.DataFrame:
    """Generated people with Adult's columns and levels, for machines without its files.

    Not a model of Adult: columns are independent but for sex, and income depends on education,
    age, hours, marriage and sex so that about 31 % of the men and 11 % of the women earn more than
    50K, as in Adult. The first rows hold every level once; every 20th row after them lacks its
    occupation.

    Parameters
    ----------
    rows : at least 41, the number of countries.
    seed : which people.
    """
    import pandas as pd

    most = max(map(len, LEVELS.values()))
    checks.arguments(stand_in, locals())
    checks.count("stand_in", "rows", rows, low=most)
    rng = np.random.default_rng(seed)
    male = rng.random(rows) < 0.676
    frame: dict[str, Any] = {
        "age": rng.integers(17, 80, rows),
        "fnlwgt": rng.integers(20_000, 400_000, rows),
        "education_num": rng.integers(1, 17, rows),
        "capital_gain": np.where(rng.random(rows) < 0.08, rng.integers(100, 15_000, rows), 0),
        "capital_loss": np.where(rng.random(rows) < 0.05, rng.integers(200, 2_500, rows), 0),
        "hours_per_week": rng.integers(10, 70, rows),
    }
    for name, names in LEVELS.items():
        drawn = rng.choice(len(names), rows, p=_falling(len(names)))
        drawn[:most] = np.arange(most) % len(names)
        frame[name] = np.array(names, object)[drawn]
    frame["sex"] = np.where(male, "Male", "Female").astype(object)
    married = frame["marital_status"] == "Married-civ-spouse"
    score = 0.35 * (frame["education_num"] - 8.5) + 0.03 * (frame["age"] - 48)
    score = score + 0.03 * (frame["hours_per_week"] - 40) + 1.0 * married + 1.9 * male - 3.5
    rich = rng.random(rows) < 1 / (1 + np.exp(-score))
    frame["income"] = np.where(rich, ">50K", "<=50K").astype(object)
    frame["education"] = np.array([f"{k} years" for k in frame["education_num"]], object)
    whole = pd.DataFrame(frame)
    whole.loc[most::20, "occupation"] = None
    return whole[list(ADULT_COLUMNS)]


def _falling(n: int) -> Any:
    """Probabilities 1/1, 1/2, ... of n levels: the first are common, the last are rare."""
    weight = 1 / np.arange(1, n + 1)
    return weight / weight.sum()


_LEVELS = {
    "workclass": (
        "Private Self-emp-not-inc Local-gov State-gov Self-emp-inc Federal-gov Without-pay"
    ),
    "marital_status": (
        "Married-civ-spouse Never-married Divorced Separated Widowed Married-spouse-absent "
        "Married-AF-spouse"
    ),
    "occupation": (
        "Prof-specialty Craft-repair Exec-managerial Adm-clerical Sales Other-service "
        "Machine-op-inspct Transport-moving Handlers-cleaners Farming-fishing Tech-support "
        "Protective-serv Priv-house-serv Armed-Forces"
    ),
    "relationship": "Husband Not-in-family Own-child Unmarried Wife Other-relative",
    "race": "White Black Asian-Pac-Islander Amer-Indian-Eskimo Other",
    "sex": "Male Female",
    "native_country": (
        "United-States Mexico Philippines Germany Puerto-Rico Canada India El-Salvador Cuba "
        "England Jamaica South Italy China Dominican-Republic Vietnam Guatemala Japan Columbia "
        "Poland Iran Taiwan Haiti Portugal Nicaragua Peru Greece France Ecuador Ireland Hong "
        "Cambodia Trinadad&Tobago Laos Thailand Yugoslavia Outlying-US(Guam-USVI-etc) Hungary "
        "Honduras Scotland Holand-Netherlands"
    ),
}
#: The levels that Adult's complete training rows have, common ones first.
LEVELS = {name: tuple(levels.split()) for name, levels in _LEVELS.items()}
