"""The table of all printed values of FedFW's Tables 1 to 3, with where each is from."""

from __future__ import annotations

import pandas as pd

from papers.fedfw.authors.quantities import NEAR, SAME
from papers.fedfw.authors.runs import run_of
from papers.fedfw.cells import METHODS, METHODS_3, NORMS, PRINTED, Printed, column_text
from papers.kit.numbers import Number
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
        words = text.get(written(x))
        rows[label(x)] = {
            "printed": x.text,
            "authors' file": "no artefact is public" if x.last is None else "the maximum",
            "file, round 100": ABSENT if x.at_100 is None else f"{x.at_100:.2f}",
            "file, last": ABSENT if x.last is None else f"{x.last:.2f}",
            "their rows and loop: best": ABSENT if ours is None else f"{ours.value:.1f}",
            "distance": ABSENT if ours is None else f"{ours.value - x.value:+.1f} {far(ours, x)}",
            "as the text: final": ABSENT if words is None else f"{words.value:.1f}",
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def label(x: Printed) -> str:
    method = (METHODS | METHODS_3)[x.method]
    name, _, split = x.column.rpartition("_")
    column = column_text(x.column, "mnist") if name not in EMNIST else EMNIST[name]
    if name in EMNIST:
        labels = "20 labels" if name.endswith("62") else "3 labels"
        column += ", IID" if split == "iid" else f", {labels} a client"
    return f"Table {x.table}, {NORMS.get(x.norm, 'ℓ2')} {column}: {method}"


def written(x: Printed) -> str:
    """The name of the quantity of the same cell by the protocol of the text."""
    return "_".join(filter(None, (x.column, x.norm, x.method))) + ".accuracy"


def far(ours: Number, x: Printed) -> str:
    apart = abs(ours.value - x.value)
    return "same" if apart <= SAME else "near" if apart <= NEAR else "apart"
