"""The status page: every notebook with its last run, its stored runs, and what is amiss."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jupytext
from docutils import nodes
from fedbook_data import (
    BookDirective,
    Cell,
    badge,
    folder_of,
    health_of,
    is_stored,
    page_link,
    runs_of,
    table,
)
from fedbook_pages import program
from sphinx.application import Sphinx

if TYPE_CHECKING:
    from sphinx.environment import BuildEnvironment

KINDS = ("study", "note", "tutorial")
#: Which notebook stands where: the book's page, and what the tests compare.
FOLDERS = {"page": "executed", "quick notebook": "quick"}
HEAD = ("Notebook", "Kind", "State", "Last run", "Profile, device", "Page, s", "Quick, s",
        "Runs", "Not healthy", "Computed", "Runs, h", "Commit")  # fmt: skip
WIDTHS = (14, 7, 17, 10, 10, 7, 7, 7, 7, 10, 7, 10)
NONE = "–"


@dataclass(frozen=True)
class Runs:
    """The stored runs of a study's full profile: how many there should be, and what there is.

    `ill` are those that are not healthy; None where no numbers were stored with them.
    """

    expected: int
    provenance: tuple[dict[str, Any], ...]
    ill: int | None

    @property
    def wall_s(self) -> float:
        """How long they took, one after the other."""
        return float(sum(p["wall_s"] for p in self.provenance))

    def newest(self) -> str:
        """The date of the latest."""
        return max(str(p["date"]) for p in self.provenance)

    def faults(self) -> list[str]:
        """What is missing."""
        lacking = self.expected - len(self.provenance)
        return [f"{lacking} of {self.expected} runs not stored"] if lacking > 0 else []


@dataclass(frozen=True)
class Line:
    """One notebook: its kind, the stamps of its two executions, its runs, and its faults."""

    name: str
    kind: str
    records: dict[str, dict[str, Any]]
    runs: Runs | None
    faults: tuple[str, ...]

    def ran(self, which: str, key: str) -> Any:
        """What the stamp says about one execution; None where it says nothing."""
        return self.records.get(which, {}).get("ran", {}).get(key)


def lines_of(env: BuildEnvironment) -> list[Line]:
    """All notebooks that have a source; those with a fault first, then by kind and name."""
    root = Path(env.srcdir) / "notebooks"
    found = [line_of(env, root, path.stem) for path in sorted(root.glob("src/*.py"))]
    return sorted(found, key=lambda line: (not line.faults, KINDS.index(line.kind), line.name))


def line_of(env: BuildEnvironment, root: Path, name: str) -> Line:
    """The line of one notebook."""
    from papers import STUDIES

    source = root / "src" / f"{name}.py"
    env.note_dependency(str(source))
    today, records, faults = source_digest(source), {}, []
    for which, folder in FOLDERS.items():
        record = record_of(env, root / folder / f"{name}.ipynb")
        if record is None:
            faults.append(f"{which} not executed")
            continue
        records[which] = record
        if record["digest"] != today:
            faults.append(f"{which} of another source")
    runs = stored(env, name) if name in STUDIES else None
    if runs is not None:
        faults += runs.faults()
        ran = records.get("page", {}).get("ran", {}).get("date")
        if runs.provenance and ran and ran < runs.newest():
            faults.append("page older than its runs")
    kind = "study" if runs else "note" if name.startswith("note_") else "tutorial"
    return Line(name, kind, records, runs, tuple(faults))


def record_of(env: BuildEnvironment, path: Path) -> dict[str, Any] | None:
    """What the stamp left in an executed notebook; None where there is no notebook."""
    if not path.is_file():
        return None
    env.note_dependency(str(path))
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["metadata"]["fedlib"]
    return record


def source_digest(path: Path) -> str:
    """The digest of a source's code, as the stamp takes it."""
    stamping = program("stamping")
    return str(stamping.source_digest(jupytext.read(path, fmt="py:percent")))


def stored(env: BuildEnvironment, study: str) -> Runs:
    """The stored runs of a study, each read and checked against its digest."""
    from papers import STUDIES

    expected = STUDIES[study].specs(STUDIES[study].resolve("full"))
    held = runs_of(env, study)
    provenance = tuple(run["provenance"] for run in held)
    whole = is_stored(folder_of(study) / "numbers.json")
    ill = sum(bool(one["wrong"]) for one in health_of(env, study).values()) if whole else None
    return Runs(len(expected), provenance, ill)


class Status(BookDirective):
    """``{status}``: one sentence, and a table of all notebooks with a line of totals."""

    kind = "status"

    def build(self) -> list[nodes.Node]:
        """The summary and the table; the page is built again when a study declares other runs."""
        from fedlib.core.provenance import ROOT

        for path in (ROOT / "papers").rglob("*.py"):
            self.env.note_dependency(str(path))
        lines = lines_of(self.env)
        rows = [*(self.row(line) for line in lines), totals(lines)]
        result = table(HEAD, rows, WIDTHS, "status")
        text = summary(lines)
        return [nodes.paragraph(text, text, classes=["status-summary"]), result]

    def row(self, line: Line) -> list[Cell]:
        """The cells of one notebook."""
        profile = str(line.records.get("page", {}).get("profile", NONE))
        device = line.ran("page", "device")
        return [
            page_link(self.env, line.name),
            line.kind,
            state(line),
            line.ran("page", "date") or NONE,
            f"{profile}, {device}" if device else profile,
            seconds(line.ran("page", "wall_s")),
            seconds(line.ran("quick notebook", "wall_s")),
            *run_cells(line.runs),
        ]


def state(line: Line) -> list[nodes.Node]:
    """`in order`, or a badge for every fault."""
    badges = [badge(fault, "stale") for fault in line.faults] or [badge("in order", "fresh")]
    return [nodes.paragraph("", "", item) for item in badges]


def run_cells(runs: Runs | None) -> list[Cell]:
    """Number, those not healthy, last date, hours and commits of the stored runs."""
    if runs is None or not runs.provenance:
        return [NONE if runs is None else f"0 of {runs.expected}", NONE, NONE, NONE, NONE]
    there, devices = len(runs.provenance), sorted({p["device"] for p in runs.provenance})
    commits = {f"{p['commit'][:7]}{'+' * bool(p['dirty'])}": None for p in runs.provenance}
    return [
        str(there) if there == runs.expected else f"{there} of {runs.expected}",
        NONE if runs.ill is None else str(runs.ill),
        f"{runs.newest()}, {', '.join(devices)}",
        hours(runs.wall_s),
        ", ".join(commits),
    ]


def totals(lines: Sequence[Line]) -> list[Cell]:
    """The last line of the table."""
    runs = [line.runs for line in lines if line.runs]
    cells = [
        "All", str(len(lines)), f"{sum(not line.faults for line in lines)} in order", "", "",
        seconds(took(lines, "page", "wall_s")), seconds(took(lines, "quick notebook", "wall_s")),
        str(sum(len(r.provenance) for r in runs)), str(sum(r.ill or 0 for r in runs)), "",
        hours(sum(r.wall_s for r in runs)), "",
    ]  # fmt: skip
    return [nodes.strong(text, text) for text in cells]


def took(lines: Sequence[Line], which: str, key: str) -> float:
    """Seconds of all executions that are recorded."""
    return float(sum(line.ran(which, key) or 0.0 for line in lines))


def summary(lines: Sequence[Line]) -> str:
    """What the table comes to."""
    bad = [line.name for line in lines if line.faults]
    runs = list(chain.from_iterable(line.runs.provenance for line in lines if line.runs))
    head = f"{len(lines) - len(bad)} of {len(lines)} notebooks are in order"
    minutes = {which: took(lines, which, "cpu_s") / 60 for which in ("quick notebook", "page")}
    spent = [f"the {which}s {m:.1f} minutes of CPU time" for which, m in minutes.items() if m]
    spent.append(f"the stored runs {hours(sum(p['wall_s'] for p in runs))} hours")
    return (
        f"{head}{'; not so: ' + ', '.join(bad) if bad else ''}. "
        f"{len(runs)} runs are stored. What was recorded took: {', '.join(spent)}."
    )


def seconds(value: float | None) -> str:
    """Whole seconds."""
    return NONE if value is None else f"{value:.0f}"


def hours(value: float) -> str:
    """Hours with two digits after the point below ten, one above."""
    return f"{value / 3600:.{2 if value < 36000 else 1}f}"


def setup(app: Sphinx) -> None:
    """Registers the directive."""
    app.add_directive("status", Status)
