"""Figures that a page draws, made from stored runs by the cells of its source that they need."""

import ast
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pandas as pd
from matplotlib import pyplot

from papers import STUDIES
from papers.kit import plot
from papers.kit.study import Page

SOURCES = Path(__file__).resolve().parents[2] / "notebooks" / "src"
CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)
NAMED = re.compile(r'plot\.show\(\s*\w+,\s*"(\w+)"')


class Shown(NamedTuple):
    """A figure that a page shows: a grid or a figure, its frame, and the profile of its runs."""

    drawn: Any
    frame: pd.DataFrame | None
    profile: str


def names_of(study):
    """The names of the figures that a study's page draws, and of those that its study draws."""
    source = (SOURCES / f"{study}.py").read_text(encoding="utf-8")
    return [*NAMED.findall(source), *STUDIES[study].figures]


def cells_of(source):
    """The code cells of a source."""
    _, *parts = CELL.split(source)
    kinds = parts[::2]
    texts = parts[1::2]
    return [text for kind, text in zip(kinds, texts, strict=True) if "[markdown]" not in kind]


def names_in(cell):
    """The names that a cell reads before it gives them a value, and those that it gives one."""
    read = set()
    given = set()
    for statement in ast.parse(cell).body:
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        loaded = {name.id for name in names if isinstance(name.ctx, ast.Load)}
        read |= loaded - given
        given |= {name.id for name in names if isinstance(name.ctx, ast.Store)}
        for node in ast.walk(statement):
            if isinstance(node, ast.Import | ast.ImportFrom):
                given |= {alias.asname or alias.name for alias in node.names}
            elif isinstance(node, ast.FunctionDef):
                given.add(node.name)
    return read, given


def needed(cells):
    """The cells that show figures, and those before them that they need."""
    kept = []
    wanted = set()
    for cell in reversed(cells):
        read, given = names_in(cell)
        if "plot.show" in cell or "plot.theme" in cell or given & wanted:
            kept.append(cell)
            wanted = (wanted - given) | read
    return kept[::-1]


def figures_of(study, changes=(), only=None):
    """The figures of a study's page by name, drawn from the stored runs of the full profile.

    `changes` are pairs of texts, of which the second takes the place of the first in the source;
    `only` is the name of the one figure that is wanted.
    """
    source = (SOURCES / f"{study}.py").read_text(encoding="utf-8")
    for words, instead in changes:
        assert words in source
        source = source.replace(words, instead)
    cells = cells_of(source)
    if only:
        cells = [x for x in cells if "plot.show" not in x or f'"{only}"' in x]
    shown = {}

    def run(page, problem=None, **algorithms):
        del problem, algorithms
        page.traces = page.study.load()
        return page.traces

    def show(drawn, name="", *, data=None, profile="full", **words):
        del words
        frame = getattr(drawn, "data", None) if data is None else data
        shown[name] = Shown(drawn, frame, profile)
        pyplot.close(drawn.figure)

    namespace = {"__name__": "page"}
    with ExitStack() as stack:
        stack.enter_context(patch.object(Page, "run", run))
        stack.enter_context(patch.object(plot, "show", show))
        for cell in needed(cells):
            exec(compile(cell, study, "exec"), namespace)
    return shown
