"""What a page shows: a notebook displays it; a program prints it, and writes pictures as files."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from fedlib.core.files import atomic_write

Shown = TypeVar("Shown")
FIGURES = Path("_build", "figures")
WIDTH = 120  # of a printed table; a wider one is printed row by row

_numbers = count(1)  # of the figures of this process


def in_notebook() -> bool:
    """Whether a kernel or a shell of IPython displays what the code shows."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None


def displayed(table: Shown) -> Shown:
    """The table; a program, which shows no last value of a cell, prints it here."""
    if not in_notebook():
        print(f"{as_text(table)}\n")
    return table


def show(title: str, table: Any) -> None:
    """Display or print a table below its title."""
    if in_notebook():
        from IPython.display import Markdown, display

        display(Markdown(f"**{title}**"), table)  # type: ignore[no-untyped-call]
    else:
        print(f"{title}\n{as_text(table)}\n")


def as_text(table: Any) -> str:
    """A table as lines of text; where they would be long, each row as lines `column: value`."""
    text: str = table.to_string()
    if all(len(line) <= WIDTH for line in text.splitlines()) or not hasattr(table, "iterrows"):
        return text
    lines = []
    for name, row in table.iterrows():
        lines.append(str(name))
        lines += [f"    {column}: {value}" for column, value in row.items() if str(value)]
    return "\n".join(lines)


def write_figure(picture: bytes, words: str) -> None:
    """Write a picture of a program into `_build/figures/NAME` and print where it is.

    Raises
    ------
    OSError
        if the current folder cannot be written to.
    """
    program = Path(getattr(sys.modules["__main__"], "__file__", None) or "page").stem
    path = FIGURES / program / f"{next(_numbers)}.png"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, lambda file: file.write(picture))
    except OSError as error:
        rule = f"{path.parent} must be a folder that can be written to, got {error.strerror!r}"
        raise OSError(f"show: {rule}; start the program in another folder.") from None
    print(f"Figure in {path}: {words}\n")
