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
            seeds = ["nan" if x is None else repr(x) for x in number["per_seed"]]
            row = {**number, "seeds": len(seeds), "per_seed": " ".join(seeds)}
            rows.append({"profile": profile, "name": name, **row, **texts})
    table = pd.DataFrame(rows, columns=[*START, *labels, *END])
    return str(table.to_csv(index=False, lineterminator="\n"))


def label_text(value: Label) -> str:
    """A label as text."""
    text = value if isinstance(value, str) else repr(value)
    if label_of(text) != value or not text:
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
        labels = {column: text for column, text in row.items() if column not in START + END}
        per_seed = [float(word) for word in row["per_seed"].split()]
        number = {
            **{end: float(row[end]) if row[end] else None for end in ("value", "low", "high")},
            "per_seed": [None if isnan(x) else x for x in per_seed],
            "unit": row["unit"],
            "measure": row["measure"],
            "labels": {label: label_of(text) for label, text in labels.items() if text},
        }
        profiles.setdefault(row["profile"], {})[row["name"]] = number
    return profiles
