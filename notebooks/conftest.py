"""nbval compares the marked cells exactly; here all others too, as far as can be asked.

That is, but for rounding on a processor like the one that they were executed on, else their words.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import comparing
import stamping
from nbformat import NotebookNode
from nbval.plugin import IPyNbCell


def pytest_collection_modifyitems(items: Sequence[Any]) -> None:
    """Gives the cells that are not marked a comparison of their own."""
    for item in items:
        if isinstance(item, IPyNbCell) and not item.options["check"] and not timed(item):
            item.options["check"] = True
            item.compare_outputs = alike(item)


def timed(item: Any) -> bool:
    """Whether a cell shows measured times, which are others every time."""
    return "nbval-ignore-output" in item.cell.metadata.get("tags", ())


def alike(item: Any) -> Callable[[Sequence[Any], Sequence[Any]], bool]:
    """What nbval asks: whether the outputs made now are those that are committed."""
    record = item.parent.nb.metadata["fedlib"]

    def compare(made: Sequence[Any], committed: Sequence[Any]) -> bool:
        cell = NotebookNode(outputs=copy.deepcopy(made))
        kept = stamping.stamped_outputs(item.parent.path.stem, cell, images=False)
        found = comparing.unlike(committed, kept, comparing.how(record, stored=False))
        item.comparison_traceback = [found]
        return not found

    return compare
