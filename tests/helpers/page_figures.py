"""Figures and tables that a page shows, made from stored runs by the cells that they need.

A page is executed once in a session. A changed figure is made by its cell alone, from the names
that the page had before it.
"""

import ast
import re
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pandas as pd
from matplotlib import pyplot
from matplotlib.figure import Figure

from papers import STUDIES
from papers.kit import display, plot, report, store
from papers.kit.study import Page

SOURCES = Path(__file__).resolve().parents[2] / "notebooks" / "src"
CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)
NAMED = re.compile(r'plot\.show\(\s*\w+,\s*"(\w+)"')
#: Calls in a cell that show a figure or a table, or set the style of figures.
SHOWING = ("plot.show", "plot.theme", "runs_table(", "displayed(")


class Shown(NamedTuple):
    """A figure that a page shows.

    Attributes
    ----------
    drawn : a grid of seaborn or a matplotlib figure.
    frame : what is drawn, as a table; None where the page gives none.
    profile : of the runs in the frame.
    cell : the code that shows the figure.
    before : the names of the page before this code.
    """

    drawn: Any
    frame: pd.DataFrame | None
    profile: str
    cell: str
    before: dict[str, Any]


class Executed(NamedTuple):
    """What an executed page shows: figures by name, tables in their order, the last names."""

    figures: dict[str, Shown]
    tables: list[pd.DataFrame]


def source_of(study):
    """The source of a study's page."""
    return (SOURCES / f"{study}.py").read_text(encoding="utf-8")


def names_of(study):
    """The names of the figures that a study's page draws."""
    return NAMED.findall(source_of(study))


def cells_of(source):
    """The code cells of a source."""
    _, *pieces = CELL.split(source)
    kinds = pieces[::2]
    texts = pieces[1::2]
    return [text for head, text in zip(kinds, texts, strict=True) if "[markdown]" not in head]


def names_in(cell):
    """The names that a cell reads before it gives them a value, and those that it gives one."""
    read = set()
    assigned = set()
    for statement in ast.parse(cell).body:
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        loaded = {name.id for name in names if isinstance(name.ctx, ast.Load)}
        read |= loaded - assigned
        assigned |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
        for node in ast.walk(statement):
            if isinstance(node, ast.Import | ast.ImportFrom):
                assigned |= {alias.asname or alias.name for alias in node.names}
            elif isinstance(node, ast.FunctionDef):
                assigned.add(node.name)
    return read, assigned


def needed(cells):
    """The cells that show figures and tables, and those before them that they need."""
    kept = []
    missing = set()
    for cell in reversed(cells):
        read, assigned = names_in(cell)
        if any(call in cell for call in SHOWING) or assigned & missing:
            kept.append(cell)
            missing = (missing - assigned) | read
    return kept[::-1]


@cache
def stored_runs(study, profile="full"):
    """The stored runs of a study, read once."""
    return STUDIES[study].load(profile)


@cache
def executed(study):
    """The page of a study, executed with its stored runs and numbers of the full profile."""
    page = Executed({}, [])
    namespace = {"__name__": "page"}
    for cell in needed(cells_of(source_of(study))):
        names = dict(namespace)
        figures, tables = execute(cell, study, namespace)
        for name, (drawn, frame, profile) in figures.items():
            page.figures[name] = Shown(drawn, frame, profile, cell, names)
        page.tables.extend(tables)
    return page


def figures_of(study):
    """The figures of a study's page by name."""
    return executed(study).figures


def changed_figure(study, name, words, instead):
    """A figure of a page of whose cell some words are replaced."""
    shown = figures_of(study)[name]
    assert words in shown.cell
    figures, _ = execute(shown.cell.replace(words, instead), study, dict(shown.before))
    drawn, frame, profile = figures[name]
    return Shown(
        drawn,
        frame,
        profile,
        shown.cell,
        shown.before,
    )


def execute(cell, study, namespace):
    """Run a cell: the figures it shows, as (what is drawn, frame, profile) by name; its tables."""
    figures = {}
    tables = []

    def run(page, problem=None, **algorithms):
        del problem, algorithms
        page._traces = dict(stored_runs(page.study.name))
        page.numbers = store.read_numbers(page.study.name)
        return page.traces

    def show(drawn, name="", *, data=None, profile="full", **words):
        del words
        frame = getattr(drawn, "data", None) if data is None else data
        figures[name] = (drawn, frame, profile)
        pyplot.close(drawn.figure)

    def displayed(table):
        tables.append(table)
        return table

    with ExitStack() as stack:
        stack.enter_context(patch.object(Page, "run", run))
        stack.enter_context(patch.object(plot, "show", show))
        stack.enter_context(patch.object(Figure, "tight_layout"))  # a third of the time
        for module in (display, report):
            stack.enter_context(patch.object(module, "displayed", displayed))
        exec(compile(cell, study, "exec"), namespace)
    return figures, tables
