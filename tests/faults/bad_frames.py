"""A frame with columns of many kinds, and functions of clients' rows, most of them wrong."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from fedlib.problems import ClientRows


def frame() -> pd.DataFrame:
    """Three clinics; the columns of many kinds are features of nobody."""
    n = 12
    x = np.linspace(-1, 1, n)
    return pd.DataFrame(
        {"clinic": list("abc") * 4, "age": x, "dose": x**2, "ill": np.arange(n) % 2}
        | {"word": ["x"] * n, "wave": x * 1j, "gap": [np.nan, *x[1:]], "one": 1.0}
        | {"thing": [object()] * n, "day": pd.date_range("2020", periods=n), "top": [np.inf] * n}
        | {"kind": pd.Categorical(["u"] * n), "where": [None, *"bc", *"abc" * 3]}
    )


def fit(rows: ClientRows) -> torch.Tensor:
    return rows.mean((rows.output.squeeze(-1) - rows.target) ** 2)


def no_mean(rows: ClientRows) -> torch.Tensor:
    return (rows.output.squeeze(-1) - rows.target) ** 2


def a_number(rows: ClientRows) -> float:
    return float(rows.weight.sum())


def a_typo(rows: ClientRows) -> torch.Tensor:
    return rows.outputs  # type: ignore[attr-defined, no-any-return]


def endless(rows: ClientRows) -> torch.Tensor:
    return rows.mean(rows.output.squeeze(-1) / 0)


def drawing(rows: ClientRows) -> torch.Tensor:
    return rows.mean(torch.rand_like(rows.target))


FUNCTIONS = (no_mean, a_number, a_typo, endless, drawing, lambda: 1, lambda _: None)
#: Words of the sentences about functions.
TOLD = ("objective", "constraint", "measure", "gradient", "module")
