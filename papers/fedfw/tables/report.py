"""The table of the pages about FedFW's Tables 1, 2 and 3: two protocols beside what is printed."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from papers.fedfw.cells import (
    COLUMNS,
    COLUMNS_3,
    DEFAULTS,
    METHODS,
    METHODS_3,
    PRINTED_AT,
    Labels,
    column_text,
    labels_of_cell,
    run_as_traced,
    traced,
)
from papers.kit.quantities import Query, name_of
from papers.kit.report import unbroken
from papers.kit.rules import Numbers

#: Chosen settings, and how the table names them.
SETTINGS = {"lam": "λ₀", "lr": "step", "eta": "η"}
ABSENT = "-"


def three_columns(
    numbers: Numbers,
    table: int,
    norm: str,
    pictures: str,
    health: Mapping[str, str] = {},
) -> pd.DataFrame:
    """A line a column and method of a table: both protocols and the printed value, in %.

    Table 3 has no `norm`. A last column says what is wrong with runs that are not healthy, if any
    is not.
    """
    columns = [name for name, column in COLUMNS.items() if column.table == table]
    methods = METHODS if norm else METHODS_3
    rows = {}
    for column in columns if norm else COLUMNS_3:
        for method, words in methods.items():
            line = both(numbers, column, norm, method)
            if line:
                line["(c) printed"] = PRINTED_AT[column, norm, method].text
                line["not healthy"] = ill(
                    numbers,
                    column,
                    norm,
                    method,
                    health,
                )
                rows[f"{column_text(column, pictures)}: {words}"] = line
    lines = pd.DataFrame.from_dict(rows, orient="index")
    return lines if rows and lines["not healthy"].any() else lines.iloc[:, :-1]


def both(
    numbers: Numbers,
    column: str,
    norm: str,
    method: str,
) -> dict[str, str]:
    """One method in one cell by both protocols; nothing where it has run by neither."""
    labels: Labels = {**labels_of_cell(column, norm), "method": method}
    final = numbers.get(Query.of("accuracy", **labels))
    best = numbers.get(Query.of("best", **labels))
    coded = numbers.get(Query.of("best", **labels, protocol="code"))
    if final is None and coded is None:
        return {}
    settings = in_words(chosen(numbers, labels))
    in_files = in_words(of_files(column, norm, method)) if coded else ""
    return {
        "(a) as written: final": unbroken(final, ".1f") if final else ABSENT,
        "(a) best": f"{best.value:.1f}" if best else ABSENT,
        "(b) as traced: best": f"{coded.value:.1f}" if coded else ABSENT,
        "(a) chosen": settings or ABSENT,
        "(b) setting": in_files or ABSENT,
    }


def of_files(column: str, norm: str, method: str) -> Labels:
    """What the authors' files say of a run; FedDR has the same setting everywhere."""
    if method == "feddr":
        return {}
    lam, radius = traced(column, norm, method)
    return {"lam": lam, "radius": radius}


def chosen(numbers: Numbers, labels: Labels) -> Labels:
    """The settings that the training loss chose for a method in a cell."""
    queries = {setting: Query.of(setting, **labels) for setting in SETTINGS}
    return {name: numbers[query].value for name, query in queries.items() if query in numbers}


def in_words(settings: Labels) -> str:
    """Settings as the table shows them."""
    words = {**SETTINGS, "radius": "radius"}
    return ", ".join(
        f"{words[name]} {value:g}" for name, value in settings.items() if name in words
    )


def ill(
    numbers: Numbers,
    column: str,
    norm: str,
    method: str,
    health: Mapping[str, str],
) -> str:
    """What is wrong with the chosen run of a cell, and with its run behind the printed value."""
    labels: Labels = {**labels_of_cell(column, norm), "method": method}
    runs = {
        "(a)": {**labels, **chosen(numbers, labels)},
        "(b)": run_as_traced(column, norm, method),
    }
    wrong = {protocol: health.get(name_of(run, DEFAULTS)) for protocol, run in runs.items()}
    return "; ".join(f"{protocol} {words}" for protocol, words in wrong.items() if words)
