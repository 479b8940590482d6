"""What the book's roles and directives share: stored numbers, warnings, tables."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx import addnodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from papers import STUDIES
from papers.kit import archive, store
from papers.kit.numbers import Number

if TYPE_CHECKING:
    from sphinx.environment import BuildEnvironment

    from papers.kit.study import Study

logger = logging.getLogger(__name__)
Cell = str | nodes.Node | list[nodes.Node]


class BookError(Exception):
    """A study, key or file that the page asks for and that is not there."""


def warn(error: Exception, subtype: str, location: object) -> None:
    """A typed warning: ``-W`` turns it into a failed build."""
    logger.warning(str(error), type="fedbook", subtype=subtype, location=location)


def folder_of(study: str) -> Path:
    """Where a study's runs are: of its full profile, or of another one, as `study@paper`."""
    name, _, profile = study.partition("@")
    return Path(store.results_dir()) / name / (profile or "full")


@cache
def reader() -> Callable[[Path], Mapping[str, Any]]:
    """Reads a stored file once: hundreds of places ask for the same, and none for its curves."""

    def read(path: Path) -> Mapping[str, Any]:
        return archive.read(path) if path.stem == "numbers" else archive.summary(path)

    return archive.cached(read)


def runs_in(folder: Path) -> list[str]:
    """The names of the runs that are stored of a study."""
    return sorted(archive.names(folder) - {"numbers"})


def files_of(study: str) -> list[Path]:
    """The files in which a study's runs are."""
    folder = folder_of(study)
    archives = [folder.parent.with_suffix(end) for end in archive.FILES]
    paths = [*archives, *sorted(folder.glob("*.json"))]
    return [path for path in paths if path.is_file()]


def read_stored(env: BuildEnvironment, path: Path) -> Mapping[str, Any]:
    """A stored run without curves, checked against its digest; a page is built again with it."""
    env.note_dependency(str(archive.place(path)))
    try:
        return reader()(path)
    except ValueError as error:  # its one sentence says which file and what to do
        raise BookError(str(error)) from None


def numbers_of(env: BuildEnvironment, study: str) -> Mapping[str, Number]:
    """The derived numbers of a study; as `study@paper` those of the paper's setting."""
    folder = folder_of(study)
    read_stored(env, folder / "numbers.json")
    return store.read_numbers(folder.parent.name, folder.name)


def number_of(env: BuildEnvironment, study: str, key: str) -> Number:
    """One stored number."""
    numbers = numbers_of(env, study)
    if key not in numbers:
        near = nearest(key, numbers)
        raise BookError(f"{study} has no number {key!r}; keys that look like it: {near}.")
    return numbers[key]


def nearest(name: str, known: Iterable[str]) -> str:
    """The known names that look most like a name which is not known."""
    matches = get_close_matches(name, list(known), n=4, cutoff=0.4)
    return ", ".join(matches) or "none"


def provenance_of(env: BuildEnvironment, study: str) -> dict[str, Any]:
    """Where a study's derived numbers come from."""
    return read_stored(env, folder_of(study) / "numbers.json")["provenance"]


def seeds_of(env: BuildEnvironment, study: str, run: str) -> tuple[int, ...]:
    """The seeds of a stored run of the full profile."""
    path = folder_of(study) / f"{run}.json"
    if run == "numbers" or not archive.exists(path):
        near = nearest(run, runs_in(folder_of(study)))
        raise BookError(f"{study} has no run {run!r}; runs that look like it: {near}.")
    return tuple(read_stored(env, path)["seeds"])


def study_of(name: str) -> Study:
    """The study of this name."""
    if name not in STUDIES:
        raise BookError(f"there is no study {name!r}; known studies: {', '.join(STUDIES)}.")
    return STUDIES[name]


def badge(text: str, verdict: str) -> nodes.inline:
    """A short coloured word; the colour repeats what the word says."""
    return nodes.inline(text, text, classes=["badge-fed", f"is-{slug(verdict)}"])


def slug(text: str) -> str:
    """A verdict as a CSS class."""
    return text.lower().replace(" ", "-")


def is_code_cell(node: nodes.Node) -> bool:
    """Whether a node is a code cell of a notebook."""
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def page_link(env: BuildEnvironment, study: str) -> nodes.Node:
    """A link to the study's notebook page, or only its name where it is no page."""
    document = f"notebooks/{study}"
    if document not in env.found_docs:
        return nodes.literal(study, study)
    return reference(env, nodes.inline(study, study), "std", "doc", f"/{document}")


def label_link(env: BuildEnvironment, label: str, text: str) -> nodes.Node:
    """A link to a label of any page, which warns when there is none."""
    return reference(env, nodes.inline(text, text), "std", "ref", label)


def reference(
    env: BuildEnvironment, content: nodes.Node, domain: str, role: str, target: str
) -> nodes.Node:
    """A link that Sphinx resolves, which warns when its target is missing."""
    return addnodes.pending_xref(
        "",
        content,
        refdomain=domain,
        reftype=role,
        refexplicit=True,
        refwarn=True,
        refdoc=env.docname,
        reftarget=target,
    )


def add_label(env: BuildEnvironment, anchor: str, title: str) -> None:
    """Lets any page link to an anchor of the current page."""
    domain = env.get_domain("std")
    key = anchor.lower()
    domain.labels[key] = (env.docname, anchor, title)
    domain.anonlabels[key] = (env.docname, anchor)


def figure_link(env: BuildEnvironment, study: str, figure: str) -> nodes.Node:
    """A link to a figure on its study's page; to the page where no figure is named."""
    if not figure or f"notebooks/{study}" not in env.found_docs:
        return page_link(env, study)
    text = f"{study}: {figure.replace('_', ' ')}"
    return label_link(env, figure_anchor(f"{study}-{figure}"), text)


def download_link(env: BuildEnvironment, path: Path, text: str) -> nodes.Node:
    """A download of a file; the builder copies it beside the pages."""
    relative = os.path.relpath(path.resolve(), Path(env.srcdir).resolve())
    target = "/" + relative.replace(os.sep, "/")
    content = nodes.literal(text, text)
    return addnodes.download_reference(
        "", "", content, refdoc=env.docname, reftarget=target, refexplicit=True
    )


def raw(text: str) -> nodes.raw:
    """HTML that other builders leave out."""
    return nodes.raw("", text, format="html")


def figure_anchor(name: str) -> str:
    """The id of the figure `STUDY-FIGURE` on its study's page; also its label."""
    return f"figure-{name}".lower()


def command_of(name: str) -> str:
    """The command that executes a notebook as the page shows it."""
    return f'make notebook NAME={name} ARGS="-p profile full"'


def cell_nodes(cell: Cell) -> list[nodes.Node]:
    """The contents of a table cell as block nodes."""
    if isinstance(cell, str):
        return [nodes.paragraph(cell, cell)]
    items = cell if isinstance(cell, list) else [cell]
    if all(isinstance(item, nodes.Inline | nodes.Text) for item in items):
        return [nodes.paragraph("", "", *items)]
    return items


def table(
    head: Sequence[str], rows: Iterable[Sequence[Cell]], widths: Sequence[int], name: str
) -> nodes.table:
    """A table of a CSS class, with a head line; ``widths`` are relative."""
    group = nodes.tgroup(cols=len(head))
    group += [nodes.colspec(colwidth=width) for width in widths]
    group += nodes.thead("", table_row(head))
    group += nodes.tbody("", *(table_row(row) for row in rows))
    return nodes.table("", group, classes=["table-fed", name])


def table_row(cells: Sequence[Cell]) -> nodes.row:
    """One line of a table."""
    entries = [nodes.entry("", *cell_nodes(cell)) for cell in cells]
    return nodes.row("", *entries)


class BookDirective(SphinxDirective, ABC):
    """A directive whose missing study or number is a typed warning, not a crash."""

    subtype = "directive"  # of its warnings

    @abstractmethod
    def build(self) -> list[nodes.Node]:
        """The nodes of the directive."""

    def run(self) -> list[nodes.Node]:
        """Builds, or warns and shows the sentence in the page."""
        try:
            return self.build()
        except BookError as error:
            warn(error, self.subtype, self.get_location())
            return [nodes.warning("", nodes.paragraph("", str(error)))]

    def inline(self, text: str) -> list[nodes.Node]:
        """``text`` parsed as inline markup: formulas, emphasis, code."""
        children, messages = self.state.inline_text(text, self.lineno)
        return [*children, *messages]
