"""Directives about one study: provenance and downloads."""

from __future__ import annotations

import shutil
from pathlib import Path

from docutils import nodes
from fedbook_data import (
    BookDirective,
    command_of,
    download_link,
    folder_of,
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


class Provenance(BookDirective):
    """``{provenance} STUDY``: how the stored numbers of the full profile came about."""

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
            record["commit"] = f"{record['commit']}, with uncommitted changes"
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
        fields += field("Not healthy", nodes.Text(f"{ill} of {len(health)} runs"))
        return [fields]


def field(label: str, value: nodes.Node) -> nodes.field:
    """One line of a field list."""
    body = nodes.field_body("", nodes.paragraph("", "", value))
    return nodes.field("", nodes.field_name(label, label), body)


class NotebookLinks(BookDirective):
    """``{notebook-links} NAME``: source, notebook, stored results, and the command to re-run."""

    required_arguments = 1
    subtype = "notebook-links"

    def build(self) -> list[nodes.Node]:
        """A short list of downloads and the command."""
        name = self.arguments[0]
        folder = Path(self.env.srcdir) / "notebooks"
        files = [folder / f"src/{name}.py", folder / f"{name}.ipynb"]
        present = [file for file in files if file.is_file()]
        entries = [self.entry("Source and notebook", present)]
        if stored := runs_in(folder_of(name)):
            count = f"{len(stored)} runs, described in `results/{name}.json`"
            text = f"{count}, curves in `results/{name}.parquet`"
            entries.append(nodes.list_item("", nodes.paragraph("", "", *self.inline(text))))
        command = command_of(name)
        return [
            nodes.bullet_list("", *entries, classes=["notebook-links"]),
            nodes.literal_block(command, command, language="bash"),
        ]

    def entry(self, label: str, files: list[Path]) -> nodes.list_item:
        """One line of downloads."""
        line = nodes.paragraph("", f"{label}: ")
        for number, path in enumerate(files):
            if number:
                line += nodes.Text(", ")
            line += download_link(self.env, path, path.name)
        return nodes.list_item("", line)


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
    app.connect("build-finished", drop_what_nobody_reads)
