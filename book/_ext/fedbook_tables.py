"""Tables of figures as small as they can be without losing a number."""

from __future__ import annotations

import csv
import io
from itertools import groupby

Row = dict[str, str]


def joined(text: str) -> str:
    """The same table with every band's edges in the rows of the line that runs within it.

    A line and its band are those of one panel that have name, colour and places in common; what
    has no partner stays as it is.
    """
    if not text:  # a figure of pictures
        return ""
    reader = csv.DictReader(io.StringIO(text))
    items = [[*rows] for _, rows in groupby(reader, lambda row: (row["panel"], row["item"]))]
    lines = {look(item): item for item in items if item[0]["kind"] == "line"}
    kept = [item for item in items if item[0]["kind"] != "band" or not moved(item, lines)]
    out = io.StringIO()
    writer = csv.DictWriter(out, reader.fieldnames or (), lineterminator="\n")
    writer.writeheader()
    writer.writerows(row for item in kept for row in item)
    return out.getvalue()


def look(item: list[Row]) -> tuple[str, ...]:
    """What a line and its band have in common."""
    first = item[0]
    return (first["panel"], first["series"], first["color"], *(row["x"] for row in item))


def moved(band: list[Row], lines: dict[tuple[str, ...], list[Row]]) -> bool:
    """Whether a band's edges went into its line, which has none yet."""
    line = lines.get(look(band))
    if line is None or line[0]["low"]:
        return False
    for row, edges in zip(line, band, strict=True):
        row["low"], row["high"] = edges["low"], edges["high"]
    return True
