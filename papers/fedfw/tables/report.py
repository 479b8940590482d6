"""Tables of the pages about FedFW's Tables 1, 2 and 3: two protocols beside what is printed."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from papers.fedfw.cells import COLUMNS, METHODS, TABLES, column_text, traced
from papers.fedfw.stochastic.numbers import METHODS_3, TABLE_3, TRACED_3
from papers.fedfw.tables.numbers import code_run
from papers.kit.health import Health
from papers.kit.numbers import Number
from papers.kit.report import unbroken

Numbers = Mapping[str, Number]
Healths = Mapping[str, Health]
EMPTY: Healths = {}
WRITTEN = "(a) as written: final"
BEST = "(a) best"
CODE = "(b) as traced: best"
PRINTED = "(c) printed"
ABSENT = "-"


def of_cells(health: Healths, n: Numbers) -> dict[str, Health]:
    """With the health of what cells and pairs show, under their own names: the worst there is."""
    found = dict(health)
    for key in {k.rpartition(".")[0] for k in n if k.endswith((".lam", ".lr"))}:
        values = [n[f"{key}.{k}"].value for k in ("lam", "lr", "eta") if f"{key}.{k}" in n]
        run = "_".join([key, *(f"{x:g}" for x in values)])
        own = [h for name, h in health.items() if name == run or name.startswith(f"{run}_seed")]
        found.update(worst(key, own))
    for key in {k.rpartition(".")[0] for k in n if "_vs_" in k}:
        first, _, other = key.partition("_vs_")
        both = [first, f"{first.rpartition('_')[0]}_{other}"]
        own = [found[name] for name in both if name in found]
        found.update(worst(key, own))
    return found


def worst(key: str, found: list[Health]) -> dict[str, Health]:
    """One that is not healthy, if there is any, under a name; nothing for nothing."""
    return {key: max(found, key=lambda h: h.wrong)} if found else {}


def three_columns(
    n: Numbers, norm: str, table: int, pictures: str, health: Healths = EMPTY
) -> pd.DataFrame:
    """A line a column and method of Table 1 or 2: both protocols and the printed value, in %.

    With the runs' health a last column says what is wrong with those that are not healthy.
    """
    rows, cells = {}, of_cells(health, n)
    for (column, ball), values in TABLES.items():
        if ball != norm or COLUMNS[column].table != table:
            continue
        for k, (m, text) in enumerate(METHODS.items()):
            key = f"{column}_{norm}_{m}"
            if f"{key}.accuracy" in n:
                setting = "" if m == "feddr" else penalty(traced(column, norm)[m == "plus"])
                cell = f"{column}_{norm}_code_{m}.best"
                runs = {"(a)": key, "(b)": code_run(column, norm, m)}
                rows[f"{column_text(column, pictures)}: {text}"] = line(
                    n, key, cell, f"{values[k]:.2f}", setting
                ) | {"not healthy": ill(cells, runs)}
    return marked(rows)


def ill(health: Healths, runs: Mapping[str, str]) -> str:
    """What is wrong with some runs, each behind its protocol."""
    wrong = {protocol: health[run].wrong for protocol, run in runs.items() if run in health}
    return "; ".join(f"{protocol} {what}" for protocol, what in wrong.items() if what)


def marked(rows: Mapping[str, Mapping[str, str]]) -> pd.DataFrame:
    """The rows, without the column of ill health where all is well."""
    found = frame(rows)
    return found if found.get("not healthy", pd.Series([""])).any() else found.iloc[:, :-1]


def three_columns_3(n: Numbers, pictures: str) -> pd.DataFrame:
    rows = {}
    for column, values in TABLE_3.items():
        for k, (m, text) in enumerate(METHODS_3.items()):
            key = f"{column}_{m}"
            if f"{key}.accuracy" in n or f"{column}_code_{m}.best" in n:
                traced_to = m == "sto" and column in TRACED_3
                setting = f"λ₀ {TRACED_3[column]:g}" if traced_to else ""
                rows[f"{column_text(column, pictures)}: {text}"] = line(
                    n, key, f"{column}_code_{m}.best", f"{values[k]:.2f}", setting
                )
    return frame(rows)


def line(n: Numbers, key: str, code: str, printed: str, setting: str) -> dict[str, str]:
    settings = {"lam": "λ₀", "lr": "step", "eta": "η"}
    chosen = ", ".join(
        f"{text} {n[f'{key}.{k}'].value:g}" for k, text in settings.items() if f"{key}.{k}" in n
    )
    best = f"{n[code].value:.1f}" if code in n else ABSENT
    return {
        WRITTEN: interval(n, f"{key}.accuracy"),
        BEST: f"{n[f'{key}.best'].value:.1f}" if f"{key}.best" in n else ABSENT,
        CODE: best,
        "(a) chosen": chosen or ABSENT,
        "(b) setting": setting if best != ABSENT and setting else ABSENT,
        PRINTED: printed,
    }


def interval(n: Numbers, key: str) -> str:
    return unbroken(n[key], ".1f") if key in n else ABSENT


def penalty(setting: tuple[float, float]) -> str:
    lam, radius = setting
    return f"λ₀ {lam:g}, radius {radius:g}"


def frame(rows: Mapping[str, Mapping[str, str]]) -> pd.DataFrame:
    return pd.DataFrame.from_dict(rows, orient="index")


def summary(n: Numbers) -> pd.DataFrame:
    """What follows for Tables 1 and 2: orders and distances, counted over cells."""
    rows = {"FedFW ahead of FedDR": "fedfw_ahead", "FedFW+ ahead of FedFW": "plus_ahead"}
    return compared(n, rows, "FedFW and FedDR in the printed order")


def summary_3(n: Numbers) -> pd.DataFrame:
    return compared(n, {"FedFW-sto ahead of FedDR": "ahead"}, "")


def compared(n: Numbers, rows: Mapping[str, str], order: str) -> pd.DataFrame:
    """Counts of both protocols, with those of the printed values over the same cells."""
    found: dict[str, dict[str, str]] = {}
    for kind, text in (("written", "(a) as written"), ("code", "(b) as traced")):
        start = f"count_{kind}"
        if f"{start}.cells" not in n:
            continue
        total = f"of {n[f'{start}.cells'].value:.0f}"
        for label, key in rows.items():
            ours = f"{n[f'{start}.{key}'].value:.0f} {total}"
            theirs = n.get(f"{start}_printed.{key}")
            printed = f"; printed: {theirs.value:.0f}" if theirs else ""
            found.setdefault(label, {})[text] = ours + printed
        if order:
            same = f"{n[f'{start}.same_order'].value:.0f} {total}"
            found.setdefault(order, {})[text] = same
        far = f"{n[f'{start}.distance'].value:.1f} points"
        found.setdefault("mean distance from the printed values", {})[text] = far
    return frame(found)
