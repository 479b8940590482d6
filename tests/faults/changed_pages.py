"""Planted changes of committed notebooks: is each noticed, also with the digest made to match?

Every change is made in a copy, once with the digest left and once with it made to match. Noticed is
what the suite (`checking`) or CI (`replay`, nbval) says of the copy.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "notebooks"), str(Path(__file__).parent)]

import changes
import checking
import comparing
import nbformat
import replay
from execute import FOLDERS, read_source
from judging import Outcome, kind_of, main
from nbformat import NotebookNode
from stamping import page_digest

from papers import STUDIES

Change = Callable[[NotebookNode], object]

#: Notebook -> the changes that it can bear.
PLANTED: dict[tuple[str, str], dict[str, Change]] = {
    ("np_workshop", "full"): {**changes.ANY, **changes.STUDY},
    ("note_skewness", "full"): {**changes.ANY, **changes.DRAWN},
    ("note_skewness", "quick"): {**changes.ANY, **changes.QUICK},
    ("np_workshop", "quick"): {**changes.ANY, **changes.QUICK, **changes.QUICK_TABLE},
}


@cache
def read(name: str, profile: str) -> NotebookNode:
    """A committed notebook."""
    return nbformat.read(FOLDERS[profile] / f"{name}.ipynb", as_version=4)


@cache
def source_of(name: str) -> NotebookNode:
    """The source of a notebook."""
    return read_source(name)


def said(notebook: NotebookNode, made: replay.Outputs, name: str, profile: str) -> str:
    """The first sentence that some check says of a notebook; empty if all are content."""
    found = checking.faults(notebook, source_of(name), name, profile)
    if found:
        return found[0]
    shown = replay.sentences(notebook, made, name, profile)
    return shown[0] if shown else ""


def compared(name: str, profile: str) -> str:
    """How CI compares what a page computes with what the code gives here."""
    record = read(name, profile).metadata["fedlib"]
    return comparing.how(record, stored=profile == "full" and name in STUDIES)


def outcome(name: str, profile: str, made: replay.Outputs, text: str, change: Change,
            *, sealed: bool) -> Outcome:  # fmt: skip
    """Plants one change in a copy of a notebook."""
    notebook = copy.deepcopy(read(name, profile))
    change(notebook)
    assert notebook != read(name, profile), f"{text}: nothing was changed"
    if sealed:
        notebook.metadata["fedlib"]["page"] = page_digest(notebook)
    title = (
        f"{FOLDERS[profile].name}/{name}: {text}, digest {'made to match' if sealed else 'left'}"
    )
    sentence = said(notebook, made, name, profile)
    if not sentence:
        return Outcome(title, "accepted")
    return Outcome(title, kind_of(sentence, [f"{FOLDERS[profile].name}/{name}"]), sentence)


def outcomes(options: argparse.Namespace) -> Iterator[Outcome]:
    """All changes of all notebooks; of a `--count` the first so many notebooks alone."""
    for (name, profile), planted in list(PLANTED.items())[: options.count]:
        elsewhere = compared(name, profile) == "words"
        made = replay.made_again(name, profile)
        plain = said(read(name, profile), made, name, profile)
        yield Outcome(
            f"{FOLDERS[profile].name}/{name} as it is", "obscure" if plain else "good", plain
        )
        for text, change in planted.items():
            for sealed in (False, True):
                if elsewhere and sealed and text in changes.COMPUTED:
                    continue
                yield outcome(name, profile, made, text, change, sealed=sealed)


if __name__ == "__main__":
    sys.exit(main("changes in committed pages, quick notebooks and sources", outcomes))
