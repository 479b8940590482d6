"""Tables of the pages about FedFW's Tables 1, 2 and 3: two protocols beside what is printed."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from papers.fedfw.cells import COLUMNS, METHODS, METHODS_3, TABLE_3, TABLES, column_text, traced
from papers.fedfw.tables.numbers import code_run
from papers.kit.health import Health
from papers.kit.numbers import Number
from papers.kit.report import unbroken

Numbers = Mapping[str, Number]
SETTINGS = {"lam": "λ₀", "lr": "step", "eta": "η"}
ABSENT = "-"


def three_columns(
    n: Numbers, norm: str, table: int, pictures: str, health: Mapping[str, Health]
) -> pd.DataFrame:
    """A line a column and method of Table 1 or 2: both protocols and the printed value, in %.

    A last column says what is wrong with runs that are not healthy, if any is not.
    """
    rows = {}
    for (column, ball), values in TABLES.items():
        if ball != norm or COLUMNS[column].table != table:
            continue
        for (m, text), printed in zip(METHODS.items(), values, strict=True):
            cell = f"{column}_{norm}"
            if f"{cell}_{m}.accuracy" in n:
                lam, radius = traced(column, norm, m)
                setting = "" if m == "feddr" else f"λ₀ {lam:g}, radius {radius:g}"
                line = both(n, cell, m, setting, printed)
                line["not healthy"] = ill(n, f"{cell}_{m}", code_run(column, norm, m), health)
                rows[f"{column_text(column, pictures)}: {text}"] = line
    found = pd.DataFrame.from_dict(rows, orient="index")
    return found if rows and found["not healthy"].any() else found.iloc[:, :-1]


def three_columns_3(n: Numbers, pictures: str) -> pd.DataFrame:
    """The same of Table 3."""
    rows = {}
    for column, values in TABLE_3.items():
        for (m, text), printed in zip(METHODS_3.items(), values, strict=True):
            if f"{column}_{m}.accuracy" in n or f"{column}_code_{m}.best" in n:
                setting = "" if m == "feddr" else f"λ₀ {traced(column, '', m)[0]:g}"
                line = both(n, column, m, setting, printed)
                rows[f"{column_text(column, pictures)}: {text}"] = line
    return pd.DataFrame.from_dict(rows, orient="index")


def both(n: Numbers, cell: str, m: str, setting: str, printed: float) -> dict[str, str]:
    """One method in one cell by both protocols, and what is printed."""
    key, code = f"{cell}_{m}", f"{cell}_code_{m}.best"
    chosen = (f"{t} {n[f'{key}.{k}'].value:g}" for k, t in SETTINGS.items() if f"{key}.{k}" in n)
    final, best = n.get(f"{key}.accuracy"), n.get(f"{key}.best")
    return {
        "(a) as written: final": unbroken(final, ".1f") if final else ABSENT,
        "(a) best": f"{best.value:.1f}" if best else ABSENT,
        "(b) as traced: best": f"{n[code].value:.1f}" if code in n else ABSENT,
        "(a) chosen": ", ".join(chosen) or ABSENT,
        "(b) setting": setting if code in n and setting else ABSENT,
        "(c) printed": f"{printed:.2f}",
    }


def ill(n: Numbers, key: str, code: str, health: Mapping[str, Health]) -> str:
    """What is wrong with the chosen run of a cell, and with its run behind the printed value."""
    values = [n[f"{key}.{k}"].value for k in SETTINGS if f"{key}.{k}" in n]
    runs = {"(a)": "_".join([key, *(f"{x:g}" for x in values)]), "(b)": code}
    wrong = {protocol: health[run].wrong for protocol, run in runs.items() if run in health}
    return "; ".join(f"{protocol} {what}" for protocol, what in wrong.items() if what)


def summary(n: Numbers, method: str, ahead: str) -> pd.DataFrame:
    """Orders and distances counted over cells; `ahead` is the number of cells that it leads."""
    found: dict[str, dict[str, str]] = {}
    for kind, text in (("written", "(a) as written"), ("code", "(b) as traced")):
        start = f"count_{kind}"
        if f"{start}.cells" not in n:
            continue
        printed = n.get(f"{start}_printed.{ahead}")
        total = f"of {n[f'{start}.cells'].value:.0f}"
        line = {f"{method} ahead of FedDR": f"{n[f'{start}.{ahead}'].value:.0f} {total}"}
        if printed:
            line[f"{method} ahead of FedDR"] += f"; printed: {printed.value:.0f}"
            line["the printed order"] = f"{n[f'{start}.same_order'].value:.0f} {total}"
        far = f"{n[f'{start}.distance'].value:.1f} points"
        found[text] = line | {"mean distance from the printed values": far}
    return pd.DataFrame(found)
