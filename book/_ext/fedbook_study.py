"""What tells how a study came about, in one fold at the end of its page.

Provenance, downloads, and the cells that set up and run the study: a reader wants its results
first.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from fedbook_data import (
    BookDirective,
    command_of,
    download_link,
    folder_of,
    is_code_cell,
    raw,
    read_stored,
    runs_in,
)
from sphinx.application import Sphinx

FIELDS = {
    "commit": "Commit",
    "device": "Device",
    "runs": "Runs",
    "seeds": "Seeds per run",
    "date": "Date",
}


HEALTH = "book/rerun"  # the page that says which runs are healthy
FOLDED = "fedbook-reproduce"  # of the page that is read: the notebook whose fold it has
FOLD = '<details class="reproduce"><summary>Reproduce this page</summary>'


class Provenance(BookDirective):
    """``{provenance} STUDY``: a fold with how its numbers came about, and its downloads."""

    required_arguments = 1
    subtype = "provenance"

    def build(self) -> list[nodes.Node]:
        """A field list from numbers.json, and when the runs were last recomputed."""
        from papers.kit import comparisons

        name = self.arguments[0]
        folder = folder_of(name)
        stored = read_stored(self.env, folder / "numbers.json")
        record = dict(stored["provenance"])
        runs = [read_stored(self.env, folder / f"{run}.json") for run in runs_in(folder)]
        if record.get("dirty"):
            record["commit"] = f"after {record['commit']}"
        seeds = {len(run["seeds"]) for run in runs}
        record["seeds"] = ", ".join(map(str, sorted(seeds)))
        fields = nodes.field_list(classes=["provenance"])
        for key, label in FIELDS.items():
            if record.get(key) not in (None, ""):
                fields += field(label, nodes.Text(str(record[key])))
        self.env.note_dependency(str(comparisons.path()))
        fields += field("State", nodes.Text(comparisons.summary(name)))
        health = stored["health"].values()
        ill = sum(map(bool, health))
        fields += field("Not healthy", self.explained(f"{ill} of {len(health)} runs"))
        self.env.temp_data[FOLDED] = name
        return [raw(FOLD), *links_of(self, name), fields, raw("</details>")]

    def explained(self, text: str) -> nodes.Node:
        """A text that links to the section on healthy runs, if the book has it."""
        if HEALTH not in self.env.found_docs:
            return nodes.Text(text)
        address = self.env.app.builder.get_relative_uri(self.env.docname, HEALTH)
        return nodes.reference("", text, refuri=f"{address}#which-runs-are-healthy", internal=True)


def field(label: str, value: nodes.Node) -> nodes.field:
    """One line of a field list."""
    body = nodes.field_body("", nodes.paragraph("", "", value))
    return nodes.field("", nodes.field_name(label, label), body)


class NotebookLinks(BookDirective):
    """``{notebook-links} NAME``: source, notebook, stored results, and the command to re-run.

    After ``{provenance} NAME``, whose fold has them, it shows nothing.
    """

    required_arguments = 1
    subtype = "notebook-links"

    def build(self) -> list[nodes.Node]:
        """A short list of downloads and the command."""
        name = self.arguments[0]
        if self.env.temp_data.get(FOLDED) == name:
            return []
        return links_of(self, name)


def links_of(directive: BookDirective, name: str) -> list[nodes.Node]:
    """A list of a notebook's downloads and stored runs, and the command to run it."""
    folder = Path(directive.env.srcdir) / "notebooks"
    files = [folder / f"src/{name}.py", folder / f"{name}.ipynb"]
    line = nodes.paragraph("", "Source and notebook: ")
    for number, path in enumerate(file for file in files if file.is_file()):
        if number:
            line += nodes.Text(", ")
        line += download_link(directive.env, path, path.name)
    entries = [nodes.list_item("", line)]
    stored = runs_in(folder_of(name))
    if stored:
        count = f"{len(stored)} runs, described in `results/{name}.json`"
        text = f"{count}, curves in `results/{name}.parquet`"
        entries.append(nodes.list_item("", nodes.paragraph("", "", *directive.inline(text))))
    command = command_of(name)
    return [
        nodes.bullet_list("", *entries, classes=["notebook-links"]),
        nodes.literal_block(command, command, language="bash"),
    ]


RUNS = "page.run("  # in the last of the cells that set up and run a study
ABOUT_CELL = "this cell"  # in a sentence that says what comes of a change of the cell below it


def fold_setup(app: Sphinx, doctree: nodes.document) -> None:
    """Moves the cells that set up and run a study into the fold at the end of its page."""
    folds = [node for node in doctree.findall(nodes.raw) if node.astext() == FOLD]
    if not folds:
        return
    fold = folds[0]
    position = fold.parent.index(fold) + 1
    for cell in setup_cells(doctree):
        section = cell.parent
        previous = section[section.index(cell) - 1]
        if isinstance(previous, nodes.paragraph) and ABOUT_CELL in previous.astext():
            section.remove(previous)
        section.remove(cell)
        fold.parent.insert(position, cell)
        position += 1
        only_title = len(section) == 1 and isinstance(section[0], nodes.title)
        if only_title and isinstance(section, nodes.section):
            section.parent.remove(section)


LEFT_OPEN = re.compile(r"leaves open|differs|short|stays open")  # in the title of what is settings
LONGER = "What the paper leaves open, and how to reproduce this page"


def fold_settings(app: Sphinx, doctree: nodes.document) -> None:
    """Moves a page's last section, what its paper leaves open, into the fold at its end."""
    folds = [node for node in doctree.findall(nodes.raw) if node.astext() == FOLD]
    if not folds:
        return
    fold = folds[0]
    section = fold.parent
    title = section[0]
    if not isinstance(title, nodes.title) or not LEFT_OPEN.search(title.astext()):
        return
    count = section.index(fold)
    content = section[1:count]
    remaining = section[count + 1 :]
    name = nodes.rubric("", title.astext(), ids=section["ids"])
    summary = raw(FOLD.replace("Reproduce this page", LONGER))
    section.replace_self([summary, name, *content, *remaining])


def setup_cells(doctree: nodes.document) -> Iterator[nodes.container]:
    """The code cells of a page up to the one that runs the study; none where no cell does."""
    cells = list(doctree.findall(is_code_cell))
    for number, cell in enumerate(cells, start=1):
        if RUNS in cell.astext():
            return iter(cells[:number])
    return iter(())


def drop_what_nobody_reads(app: Sphinx, error: Exception | None) -> None:
    """Remove the maps of the theme's scripts, a tenth of the book, and its translations."""
    del error
    static = Path(app.outdir) / "_static"
    for path in static.rglob("*.map"):
        path.unlink()
    shutil.rmtree(static / "locales", ignore_errors=True)


DIRECTIVES: dict[str, type[BookDirective]] = {
    "provenance": Provenance,
    "notebook-links": NotebookLinks,
}


def setup(app: Sphinx) -> None:
    """Registers the directives."""
    for name, directive in DIRECTIVES.items():
        app.add_directive(name, directive)
    app.connect("doctree-read", fold_settings, priority=460)  # after the cells are in the fold
    app.connect("doctree-read", fold_setup, priority=450)  # before Sphinx collects the contents
    app.connect("build-finished", drop_what_nobody_reads)
