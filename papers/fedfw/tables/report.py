"""The table of the pages about FedFW's Tables 1, 2 and 3: two protocols beside what is printed."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from papers.fedfw.cells import COLUMNS, METHODS, METHODS_3, TABLE_3, TABLES, column_text, traced
from papers.fedfw.tables.numbers import code_run
from papers.kit.report import unbroken
from papers.kit.rules import Numbers

SETTINGS = {"lam": "λ₀", "lr": "step", "eta": "η"}
ABSENT = "-"


def three_columns(
    n: Numbers, table: int, norm: str, pictures: str, health: Mapping[str, str] = {}
) -> pd.DataFrame:
    """A line a column and method of a table: both protocols and the printed value, in %.

    Table 3 has no `norm`. A last column says what is wrong with runs that are not healthy, if any
    is not.
    """
    methods = METHODS if norm else METHODS_3
    printed = TABLES if norm else {(column, ""): values for column, values in TABLE_3.items()}
    rows = {}
    for (column, ball), values in printed.items():
        if ball != norm or (norm and COLUMNS[column].table != table):
            continue
        cell = f"{column}_{norm}" if norm else column
        for (m, text), value in zip(methods.items(), values, strict=True):
            if f"{cell}_{m}.accuracy" in n or f"{cell}_code_{m}.best" in n:
                line = both(n, cell, m)
                lam, radius = (0.0, 0.0) if m == "feddr" else traced(column, norm, m)
                if lam and line["(b) as traced: best"] != ABSENT:
                    line["(b) setting"] = f"λ₀ {lam:g}, radius {radius:g}"
                line["(c) printed"] = f"{value:.2f}"
                line["not healthy"] = ill(n, f"{cell}_{m}", code_run(column, norm, m), health)
                rows[f"{column_text(column, pictures)}: {text}"] = line
    found = pd.DataFrame.from_dict(rows, orient="index")
    return found if rows and found["not healthy"].any() else found.iloc[:, :-1]


def both(n: Numbers, cell: str, m: str) -> dict[str, str]:
    """One method in one cell by both protocols."""
    key = f"{cell}_{m}"
    code = f"{cell}_code_{m}.best"
    chosen = (f"{t} {n[f'{key}.{k}'].value:g}" for k, t in SETTINGS.items() if f"{key}.{k}" in n)
    final = n.get(f"{key}.accuracy")
    best = n.get(f"{key}.best")
    return {
        "(a) as written: final": unbroken(final, ".1f") if final else ABSENT,
        "(a) best": f"{best.value:.1f}" if best else ABSENT,
        "(b) as traced: best": f"{n[code].value:.1f}" if code in n else ABSENT,
        "(a) chosen": ", ".join(chosen) or ABSENT,
        "(b) setting": ABSENT,
    }


def ill(n: Numbers, key: str, code: str, health: Mapping[str, str]) -> str:
    """What is wrong with the chosen run of a cell, and with its run behind the printed value."""
    values = [n[f"{key}.{k}"].value for k in SETTINGS if f"{key}.{k}" in n]
    runs = {"(a)": "_".join([key, *(f"{x:g}" for x in values)]), "(b)": code}
    wrong = {protocol: health[run] for protocol, run in runs.items() if run in health}
    return "; ".join(f"{protocol} {what}" for protocol, what in wrong.items() if what)
