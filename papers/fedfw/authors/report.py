"""The table of all printed values of FedFW's Tables 1 to 3, with where each is from."""

from __future__ import annotations

import pandas as pd

from papers.fedfw.authors.quantities import far
from papers.fedfw.authors.runs import run_of
from papers.fedfw.cells import METHODS, METHODS_3, NORMS, PRINTED, Printed, column_text
from papers.kit.quantities import Query
from papers.kit.rules import Numbers

ABSENT = "-"
EMNIST = {"emnist_10": "EMNIST-10", "emnist_62": "EMNIST-62"}


def forensics(numbers: Numbers, text: Numbers, tables: tuple[int, ...] = (1, 2, 3)) -> pd.DataFrame:
    """A line a printed value: the authors' file, their rows and loop here, the text's protocol.

    `text` are the numbers of the studies that follow the paper's text.
    """
    rows = {}
    for x in PRINTED:
        if x.table not in tables:
            continue
        ours = numbers.get(Query.of("best", **run_of(x)))
        as_text = text.get(written(x))
        line = {
            "printed": x.text,
            "authors' file": "no artefact is public" if x.last is None else "the maximum",
            "file, round 100": shown(x.at_100, ".2f"),
            "file, last": shown(x.last, ".2f"),
            "their rows and loop: best": ABSENT,
            "distance": ABSENT,
            "as the text: final": ABSENT if as_text is None else f"{as_text.value:.1f}",
        }
        if ours is not None:
            line["their rows and loop: best"] = f"{ours.value:.1f}"
            line["distance"] = f"{ours.value - x.value:+.1f} {far(ours, x)}"
        rows[label(x)] = line
    return pd.DataFrame.from_dict(rows, orient="index")


def shown(value: float | None, form: str) -> str:
    """A value as the table has it."""
    return ABSENT if value is None else f"{value:{form}}"


def label(x: Printed) -> str:
    """A printed value in words."""
    method = (METHODS | METHODS_3)[x.method]
    name, _, split = x.column.rpartition("_")
    if name in EMNIST:
        labels = "20 labels" if name.endswith("62") else "3 labels"
        split_text = "IID" if split == "iid" else f"{labels} a client"
        column = f"{EMNIST[name]}, {split_text}"
    else:
        column = column_text(x.column, "mnist")
    return f"Table {x.table}, {NORMS.get(x.norm, 'ℓ2')} {column}: {method}"


def written(x: Printed) -> str:
    """The name of the quantity of the same cell by the protocol of the text."""
    words = [word for word in (x.column, x.norm, x.method) if word]
    return f"{'_'.join(words)}.accuracy"
