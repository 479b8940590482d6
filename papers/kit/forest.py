"""Forest plots of claims: a table whose rows draw an estimate, its interval and its bound.

A plot is HTML with an SVG in each row, so that words wrap and nothing shrinks on a phone. Colours
and shapes are those of `forest.css`: a disc holds, a square fails, a ring is open, and a diamond is
the value that the paper prints. The ground is tinted where a condition holds. HTML lets cells and
values go without end tags and quotes, which makes a page with all claims a third smaller.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from papers.kit.claims import Reading
from papers.kit.rules import Outcome, conditions_of

STYLE = Path(__file__).with_suffix(".css")
#: What a click on a plot opens.
SUMMARY = "Conditions"
#: State -> the class of its rows, as an attribute.
CLASSES = {
    "holds": "",
    "fails": " class=f",
    "open": " class=o",
    "not judged": " class=n",
}
#: Columns whose values lie on an axis.
DRAWN = ("estimate", "low", "high", "bound", "top", "printed")
SPREAD = 20.0  # an axis is at most so many times as wide as what any of its rows needs
MARGIN = 0.04  # of the axis, free at both ends
#: How a sentence starts with a word, and not with a symbol.
WORD = re.compile("(?![a-z]+ =)([a-z]{3}|(a|an|at|in|no|on|to) )")
Row = dict[str, Any]


class Axis(NamedTuple):
    """The values at the left and the right end of a plot."""

    left: float
    right: float

    def place(self, value: float) -> float:
        """Where a value lies, in percent of the width."""
        return 100 * (value - self.left) / (self.right - self.left)


def plot(rows: pd.DataFrame) -> str:
    """The forest plot of one reading of a claim as an HTML table; empty where nothing was measured.

    Parameters
    ----------
    rows : the reading's rows of the table of all parts, see `papers.kit.parts`.
    """
    if rows["estimate"].isna().all():
        return ""
    body = "".join(_parts(rows.to_dict("records")))
    return f"<table class=forest-plot>{body}</table>"


def _parts(rows: list[Row]) -> Iterator[str]:
    """The bodies of the table: a title for each part with cases, then rows with a common axis."""
    for words, group in groupby(rows, key=lambda row: row["part"]):
        cases = [*group]
        if any(row["case"] for row in cases):
            yield f"<tr class=p><th colspan=3>{escape(capital(words), quote=False)}</tr>"
        for together in _axes(cases):
            yield _body(together)


def _axes(rows: list[Row]) -> Iterator[list[Row]]:
    """Neighbours that can share an axis: of one unit, and none too narrow to be seen on it."""
    shared: list[Row] = []
    for row in rows:
        if shared and not _fit([*shared, row]):
            yield shared
            shared = []
        shared.append(row)
    yield shared


def _fit(rows: list[Row]) -> bool:
    """Whether rows can share an axis."""
    if len({row["unit"] for row in rows}) > 1:
        return False
    extents = [_extent(_values(row)) for row in rows]
    common = _extent([value for row in rows for value in _values(row)])
    return all(common <= SPREAD * extent for extent in extents if extent)


def _values(row: Row) -> list[float]:
    """What of a row lies on the axis."""
    return [row[column] for column in DRAWN if isfinite(row[column])]


def _extent(values: list[float]) -> float:
    return max(values) - min(values) if values else 0.0


def _axis(rows: list[Row]) -> Axis:
    """The axis of some rows: from their smallest value to their largest, with a margin."""
    values = [value for row in rows for value in _values(row)] or [0.0]
    free = MARGIN * _extent(values) or 0.1 * abs(values[0]) or 1.0
    return Axis(min(values) - free, max(values) + free)


def _body(rows: list[Row]) -> str:
    """Rows on a common axis, and the axis below them."""
    axis = _axis(rows)
    grounds = [_ground(row, axis) for row in rows]
    common = len({*grounds}) == 1
    lines = [
        _line(row, axis, "" if common else ground)
        for row, ground in zip(rows, grounds, strict=True)
    ]
    below = _ticks(rows[0]) if common else ""
    return f"<tbody{grounds[0] if common else ''}>{''.join(lines)}{below}"


def _ground(row: Row, axis: Axis) -> str:
    """Where the condition holds, as an attribute: from `--l` to `--r`, or from or to an end."""
    bound = row["bound"]
    top = row["top"]
    if not isfinite(bound):
        return ""
    position = percent(axis.place(bound))
    if row["relation"] in ("below", "at most"):
        return f" style=--r:{position}"
    if row["relation"] in ("above", "at least"):
        return f" style=--l:{position}"
    return f" style=--l:{position};--r:{percent(axis.place(top))}"


def _line(row: Row, axis: Axis, ground: str) -> str:
    """One part: its words, its picture, its numbers; then what a click shows."""
    state = row["state"]
    label = escape(row["case"] or capital(row["part"]), quote=False)
    words = f'"{state}"' if " " in state else state
    seeds = "" if pd.isna(row["seeds"]) else row["seeds"]
    cells = (
        f"<th>{label}",
        f"<td><svg role=img aria-label={words}>{_marks(row, axis)}</svg>",
        f"<td>{numbers(row)}{f' <b>{state}</b>' if state in ('fails', 'open') else ''}",
        f"<td>{escape(row['condition'].replace('`', ''), quote=False)}",
        f"<td>{seeds}",
        f"<td>{row['control_state']}",
    )
    return f"<tr{CLASSES[state]}{ground}>{''.join(cells)}</tr>"


def numbers(row: Row) -> str:
    """The estimate with its interval, where they are different, and the printed value."""
    estimate = row["estimate"]
    low = row["low"]
    high = row["high"]
    if not isfinite(estimate):
        return ""
    text = f"{estimate:.3g}"
    if isfinite(low) and low != high:
        text += f" [{low:.3g}, {high:.3g}]"
    if isfinite(row["printed"]):
        text += f", paper {row['printed']:.3g}"
    if isfinite(row["printed_spread"]):
        text += f" ± {row['printed_spread']:.2g}"
    return text


def _marks(row: Row, axis: Axis) -> str:
    """Interval, printed value and estimate of a row."""
    marks = ""
    low = row["low"]
    high = row["high"]
    if isfinite(low) and isfinite(high) and low != high:
        start = axis.place(low)
        end = axis.place(high)
        marks += f"<rect x={percent(start)} width={percent(end - start)} />"
    if isfinite(row["printed"]):
        marks += f"<rect class=d x={percent(axis.place(row['printed']))} />"
    if isfinite(row["estimate"]):
        position = percent(axis.place(row["estimate"]))
        fails = row["state"] == "fails"
        marks += f"<rect class=e x={position} />" if fails else f"<circle cx={position} />"
    return marks


def _ticks(row: Row) -> str:
    """What stands below the rows of an axis: the bounds, and the unit."""
    if not isfinite(row["bound"]):
        return ""
    at_left = row["relation"] in ("above", "at least", "between")
    ticks = f"<i{' class=l' if at_left else ''}>{row['bound']:.3g}</i>"
    if isfinite(row["top"]):
        ticks += f"<i>{row['top']:.3g}</i>"
    unit = f"<td>{escape(row['unit'])}" if row["unit"] else ""
    return f"<tr class=x><td>{ticks}{unit}</tr>"


def percent(value: float) -> str:
    """A length as CSS and SVG have it."""
    return f"{value:.1f}".removesuffix(".0") + "%"


def below(reading: Reading, outcome: Outcome) -> list[str]:
    """Sentences on a reading that stand behind a click, below the numbers of its plot."""
    texts = []
    if not outcome.parts:
        questions = dict.fromkeys(words for words, _, _ in conditions_of(reading.rule.primary))
        texts.append("; ".join(questions))
    texts.append(reading.rule.note)
    if outcome.control:
        texts.append(f"Control: {outcome.control}")
    texts.append(outcome.size)
    if reading.rule_fixed:
        texts.append(f"Rule older than its runs ({reading.rule_fixed})")
    return [sentence(text) for text in texts if text]


def sentence(text: str) -> str:
    """A text with a capital, unless it starts with a symbol, and a full stop."""
    return capital(text) if text.endswith(".") else f"{capital(text)}."


def capital(text: str) -> str:
    """A text with a capital, unless it starts with a symbol."""
    return text[0].upper() + text[1:] if WORD.match(text) else text
