"""The quantities of a study as a text table, which spreadsheets open and differences show.

A row has the profile, the name of the quantity, what is measured of which run (`measure` and a
column a label, where the study says so), the value with its 95 % interval, the unit, the number of
seeds, and the values of the seeds.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

Label = str | float | bool

START = ("profile", "name", "measure")
END = ("value", "low", "high", "unit", "seeds", "per_seed")


def to_csv(profiles: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """The text of a table; `profiles` has the stored numbers of each profile by name.

    Raises ValueError for a label that would not be read back as it was.
    """
    entries = [
        (profile, name, number)
        for profile, numbers in profiles.items()
        for name, number in numbers.items()
    ]
    labels = list(dict.fromkeys(label for *_, number in entries for label in labels_of(number)))
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow([*START, *labels, *END])
    for profile, name, number in entries:
        row_labels = labels_of(number)
        table.writerow(
            [
                profile,
                name,
                number.get("measure", ""),
                *(label_text(row_labels[label]) if label in row_labels else "" for label in labels),
                *("" if number[end] is None else repr(number[end]) for end in END[:3]),
                number["unit"],
                len(number["per_seed"]),
                " ".join("nan" if x is None else repr(x) for x in number["per_seed"]),
            ]
        )
    return text.getvalue()


def labels_of(number: Mapping[str, Any]) -> dict[str, Label]:
    """The labels of a stored number; none where its study gives it none."""
    return dict(number.get("labels", {}))


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
    for fields in csv.DictReader(io.StringIO(text)):
        number: dict[str, Any] = {
            end: float(fields[end]) if fields[end] else None for end in END[:3]
        }
        per_seed = (float(word) for word in fields["per_seed"].split())
        number["per_seed"] = [x if x == x else None for x in per_seed]
        number["unit"] = fields["unit"]
        if fields["measure"]:
            number["measure"] = fields["measure"]
            number["labels"] = {
                label: label_of(value)
                for label, value in fields.items()
                if label not in START + END and value
            }
        profiles.setdefault(fields["profile"], {})[fields["name"]] = number
    return profiles
