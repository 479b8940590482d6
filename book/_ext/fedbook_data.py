"""What the book's roles and directives share: stored numbers, warnings, tables."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx import addnodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from sphinx.environment import BuildEnvironment

    from fedlib.studies import Study

logger = logging.getLogger(__name__)
Cell = str | nodes.Node | list[nodes.Node]
DEVICE_FIELDS = ("device", "cpu", "threads", "torch", "numpy", "python")


class BookError(Exception):
    """A study, key or file that the page asks for and that is not there."""


def warn(error: Exception, subtype: str, location: object) -> None:
    """A typed warning: ``-W`` turns it into a failed build."""
    logger.warning(str(error), type="fedbook", subtype=subtype, location=location)


def folder_of(study: str, profile: str = "full") -> Path:
    """The folder of a study's stored files."""
    from fedlib import store

    return Path(store.results_dir()) / study / profile


def read_json(env: BuildEnvironment, path: Path) -> dict[str, object]:
    """A stored file; the page that asks for it is built again when it changes."""
    env.note_dependency(str(path))
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        place = "/".join(path.parts[-3:])
        raise BookError(
            f"results/{place} is missing; make reproduce NAME={path.parts[-3]} writes it."
        ) from None


def numbers_of(env: BuildEnvironment, study: str) -> dict[str, object]:
    """numbers.json of a study's full profile."""
    return read_json(env, folder_of(study) / "numbers.json")


def number_of(env: BuildEnvironment, study: str, key: str) -> tuple[dict, dict]:
    """One stored number and its provenance."""
    stored = numbers_of(env, study)
    if key not in stored["numbers"]:
        known = ", ".join(sorted(stored["numbers"]))
        raise BookError(f"{study} has no number {key!r}; known keys: {known}.")
    return stored["numbers"][key], stored["provenance"]


def study_of(name: str) -> Study:
    """The study of this name."""
    from fedlib.studies import STUDIES

    if name not in STUDIES:
        raise BookError(f"there is no study {name!r}; known studies: {', '.join(STUDIES)}.")
    return STUDIES[name]


def shown(value: object) -> str:
    """A number with four digits, anything else as it prints."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def badge(text: str, kind: str) -> nodes.inline:
    """A short coloured word; the colour repeats what the word says."""
    return nodes.inline(text, text, classes=["badge-fed", f"is-{slug(kind)}"])


def slug(text: str) -> str:
    """A verdict as a CSS class."""
    return text.lower().replace(" ", "-")


def freshness(*, fresh: bool) -> nodes.inline:
    """Whether the code that made the stored runs is still the code of the library."""
    return badge("fresh", "fresh") if fresh else badge("stale: the code has changed", "stale")


def page_link(env: BuildEnvironment, study: str) -> nodes.Node:
    """A link to the study's notebook page, or only its name where it is no page."""
    document = f"notebooks/executed/{study}"
    if document not in env.found_docs:
        return nodes.literal(study, study)
    return addnodes.pending_xref(
        "", nodes.inline(study, study), refdomain="std", reftype="doc", refexplicit=True,
        refwarn=True, refdoc=env.docname, reftarget=f"/{document}",
    )  # fmt: skip


def download_link(env: BuildEnvironment, path: Path, text: str) -> nodes.Node:
    """A download of a file; the builder copies it beside the pages."""
    target = os.path.relpath(path.resolve(), Path(env.srcdir).resolve()).replace(os.sep, "/")
    return addnodes.download_reference(
        "", nodes.literal(text, text), refdoc=env.docname, reftarget=f"/{target}", refexplicit=True
    )


def cell_nodes(cell: Cell) -> list[nodes.Node]:
    """The contents of a table cell as block nodes."""
    if isinstance(cell, str):
        return [nodes.paragraph(cell, cell)]
    items = cell if isinstance(cell, list) else [cell]
    if all(isinstance(item, nodes.Inline | nodes.Text) for item in items):
        return [nodes.paragraph("", "", *items)]
    return items


def table(
    head: Sequence[str], rows: Iterable[Sequence[Cell]], widths: Sequence[int], kind: str
) -> nodes.table:
    """A table with a head line; ``widths`` are relative."""
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=width) for width in widths]
    group += nodes.thead("", table_row(head))
    group += nodes.tbody("", *(table_row(row) for row in rows))
    return nodes.table("", group, classes=["table-fed", kind])


def table_row(cells: Sequence[Cell]) -> nodes.row:
    """One line of a table."""
    return nodes.row("", *(nodes.entry("", *cell_nodes(cell)) for cell in cells))


class BookDirective(SphinxDirective):
    """A directive whose missing study or number is a typed warning, not a crash."""

    kind = "directive"

    def build(self) -> list[nodes.Node]:
        """The nodes of the directive."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """Builds, or warns and shows the sentence in the page."""
        try:
            return self.build()
        except BookError as error:
            warn(error, self.kind, self.get_location())
            return [nodes.warning("", nodes.paragraph("", str(error)))]

    def inline(self, text: str) -> list[nodes.Node]:
        """``text`` parsed as inline markup: formulas, emphasis, code."""
        children, messages = self.state.inline_text(text, self.lineno)
        return [*children, *messages]
