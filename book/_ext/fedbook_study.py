"""Directives about one study: provenance, paper against ours, profiles, downloads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import fedbook_explorer
from docutils import nodes
from fedbook_data import (
    BookDirective,
    BookError,
    Cell,
    badge,
    commands_of,
    download_link,
    files_of,
    folder_of,
    health_of,
    numbers_of,
    provenance_of,
    runs_in,
    runs_of,
    shown,
    study_of,
    table,
)
from sphinx.application import Sphinx

if TYPE_CHECKING:
    from papers.kit.claims import PaperValue
    from papers.kit.numbers import Number

FIELDS = {
    "commit": "Commit", "fedlib": "fedlib", "torch": "torch",
    "numpy": "numpy", "python": "Python", "device": "Device", "cpu": "CPU", "threads": "Threads",
    "runs": "Runs", "seeds": "Seeds a run", "wall_s": "Wall time in s", "date": "Date",
}  # fmt: skip


class Provenance(BookDirective):
    """``{provenance} STUDY``: how the stored numbers of the full profile came about."""

    required_arguments = 1
    kind = "provenance"

    def build(self) -> list[nodes.Node]:
        """A field list from numbers.json, and when the runs were last recomputed."""
        from papers.kit import ledger

        name = self.arguments[0]
        record = provenance_of(self.env, name)
        runs = runs_of(self.env, name)
        if record.get("dirty"):
            record["commit"] = f"{record['commit']}, with uncommitted changes"
        record["seeds"] = ", ".join(sorted({str(len(run["seeds"])) for run in runs}, key=int))
        fields = nodes.field_list(classes=["provenance"])
        for key, label in FIELDS.items():
            if record.get(key) not in (None, ""):
                fields += field(label, nodes.Text(shown(record[key])))
        self.env.note_dependency(str(ledger.path()))
        fields += field("State", nodes.Text(ledger.summary(ledger.of_study(name).values())))
        health = health_of(self.env, name)
        ill = sum(bool(one["wrong"]) for one in health.values())
        fields += field("Not healthy", nodes.Text(f"{ill} of {len(health)} runs"))
        return [fields]


def field(label: str, value: nodes.Node) -> nodes.field:
    """One line of a field list."""
    body = nodes.field_body("", nodes.paragraph("", "", value))
    return nodes.field("", nodes.field_name(label, label), body)


class PaperTable(BookDirective):
    """``{paper-table} STUDY``: every number that the paper prints, beside ours."""

    required_arguments = 1
    kind = "paper-table"

    def build(self) -> list[nodes.Node]:
        """The table; agreement is computed, never typed in."""
        name = self.arguments[0]
        numbers = numbers_of(self.env, name)
        head = ("Quantity", "Paper", "Place", "Ours [95 % interval]", "Within", "")
        rows = [self.line(value, numbers, name) for value in study_of(name).paper_values]
        return [table(head, rows, (26, 16, 14, 24, 10, 10), "paper-table")]

    def line(self, value: PaperValue, numbers: dict[str, Number], name: str) -> list[Cell]:
        """One quantity: label, the paper's number and place, ours, tolerance, agreement."""
        if value.key not in numbers:
            raise BookError(f"{name} has no number {value.key!r}, which its paper table asks for.")
        ours = numbers[value.key]
        status = value.status(ours)
        return [
            self.inline(value.label), self.inline(value.paper_text), self.inline(value.place),
            ours.text(".4g"), f"{100 * value.rtol:.3g} %", badge(status, status),
        ]  # fmt: skip


class Params(BookDirective):
    """``{params} STUDY``: the parameters of all profiles side by side."""

    required_arguments = 1
    kind = "params"

    def build(self) -> list[nodes.Node]:
        """One line per parameter, one column per profile."""
        study = study_of(self.arguments[0])
        names = list(study.parameters)
        names += [k for p in study.profiles.values() for k in p if k not in study.parameters]
        rows = [
            [nodes.literal(key, key), self.inline(study.parameters.get(key, ""))]
            + [listed(profile.get(key, "")) for profile in study.profiles.values()]
            for key in dict.fromkeys(names)
        ]
        head = ["Parameter", "Meaning", *study.profiles]
        return [table(head, rows, [16, 44] + [14] * len(study.profiles), "params")]


def listed(value: object) -> str:
    """A parameter as a reader writes it: a list without Python's brackets."""
    return ", ".join(map(shown, value)) if isinstance(value, (tuple, list)) else shown(value)


class NotebookLinks(BookDirective):
    """``{notebook-links} NAME``: source, notebook, stored results, and the commands to re-run."""

    required_arguments = 1
    kind = "notebook-links"

    def build(self) -> list[nodes.Node]:
        """A short list of downloads and the commands."""
        name, root = self.arguments[0], Path(self.env.srcdir)
        files = [root / f"notebooks/src/{name}.py", root / f"notebooks/{name}.ipynb"]
        stored = runs_in(folder_of(name))
        entries = [self.entry("Source and notebook", [f for f in files if f.is_file()])]
        if stored:
            entry = self.entry("Stored results", files_of(name)[:1])
            entry.children[0].extend(self.where(name, len(stored)))
            entries.append(entry)
        command = "\n".join(commands_of(self.env, name))
        return [
            nodes.bullet_list("", *entries, classes=["notebook-links"]),
            nodes.literal_block(command, command, language="bash"),
        ]

    def where(self, name: str, count: int) -> list[nodes.Node]:
        """Where the runs themselves are, and how to look at them."""
        return [
            nodes.Text(f", {count} runs with their curves in "),
            nodes.literal("", f"results/{name}.npz"),
            nodes.Text(" "),
            *fedbook_explorer.link(self.env, name, []),
        ]

    def entry(self, label: str, files: list[Path]) -> nodes.list_item:
        """One line of downloads."""
        line = nodes.paragraph("", f"{label}: ")
        for number, path in enumerate(files):
            line += [nodes.Text(", ")] if number else []
            line += download_link(self.env, path, path.name)
        return nodes.list_item("", line)


DIRECTIVES: dict[str, type[BookDirective]] = {
    "provenance": Provenance,
    "paper-table": PaperTable,
    "params": Params,
    "notebook-links": NotebookLinks,
}


def setup(app: Sphinx) -> None:
    """Registers the directives."""
    for name, directive in DIRECTIVES.items():
        app.add_directive(name, directive)
