"""The quantities of a study as a text table, which spreadsheets open and differences show.

A row has the profile, the name of the quantity, what is measured of which run (`measure` and a
column a label), the value with its 95 % interval, the unit, the number of
seeds, and the values of the seeds.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from math import isnan
from typing import Any

import pandas as pd

Label = str | float | bool

START = ("profile", "name", "measure")
END = ("value", "low", "high", "unit", "seeds", "per_seed")


def to_csv(profiles: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """The text of a table; `profiles` has the stored numbers of each profile by name.

    Raises ValueError for a label that would not be read back as it was.
    """
    rows = []
    labels: dict[str, str] = {}
    for profile, numbers in profiles.items():
        for name, number in numbers.items():
            texts = {label: label_text(value) for label, value in number["labels"].items()}
            labels |= texts
            seeds = ["nan" if value is None else repr(value) for value in number["per_seed"]]
            row = {
                **number,
                "profile": profile,
                "name": name,
                "seeds": len(seeds),
                "per_seed": " ".join(seeds),
                **texts,
            }
            rows.append(row)
    columns = [*START, *labels, *END]
    table = pd.DataFrame(rows, columns=columns)
    return str(table.to_csv(index=False, lineterminator="\n"))


def label_text(value: Label) -> str:
    """A label as text."""
    text = value if isinstance(value, str) else repr(value)
    is_read_back = label_of(text) == value
    if not is_read_back or not text:
        raise ValueError(f"quantities: a label must be no text like a number, got {value!r}.")
    return text


def label_of(text: str) -> Label:
    """The label that a text stands for: a truth value, a number, else the text."""
    if text in ("True", "False"):
        return text == "True"
    try:
        return float(text)
    except ValueError:
        return text


def from_csv(text: str) -> dict[str, dict[str, dict[str, Any]]]:
    """The stored numbers of each profile by name, as `to_csv` was given them."""
    profiles: dict[str, dict[str, dict[str, Any]]] = {}
    for row in csv.DictReader(io.StringIO(text)):
        by_name = profiles.setdefault(row["profile"], {})
        by_name[row["name"]] = {
            "value": float_of(row["value"]),
            "low": float_of(row["low"]),
            "high": float_of(row["high"]),
            "per_seed": [float_of(word) for word in row["per_seed"].split()],
            "unit": row["unit"],
            "measure": row["measure"],
            "labels": labels_of(row),
        }
    return profiles


def float_of(text: str) -> float | None:
    """The number that a text stands for; None for NaN, and where there is none."""
    number = float(text or "nan")
    return None if isnan(number) else number


def labels_of(row: Mapping[str, str]) -> dict[str, Label]:
    """The labels of a row, those that it has."""
    labels = {}
    for column, text in row.items():
        is_label = column not in START + END
        if is_label and text:
            labels[column] = label_of(text)
    return labels
