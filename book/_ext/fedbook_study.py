"""Directives about one study: provenance, downloads; the explorer of all runs.

Directive ``explorer`` makes the controls; `explorer.js` fills them. The drawing is a Vega-Altair
chart whose data the browser puts in. Curves are scripts and not JSON, one file a study, because a
page opened from a folder may not fetch other files.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from docutils import nodes
from fedbook_data import (
    BookDirective,
    commands_of,
    download_link,
    files_of,
    folder_of,
    health_of,
    provenance_of,
    raw,
    runs_in,
    runs_of,
    shown,
)
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

if TYPE_CHECKING:
    from papers.kit.study import Study

FIELDS = {
    "commit": "Commit", "device": "Device", "runs": "Runs", "seeds": "Seeds a run", "date": "Date",
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
            line = nodes.paragraph("", "", *self.where(name, len(stored)))
            entries.append(nodes.list_item("", line))
        command = "\n".join(commands_of(self.env, name))
        return [
            nodes.bullet_list("", *entries, classes=["notebook-links"]),
            nodes.literal_block(command, command, language="bash"),
        ]

    def where(self, name: str, count: int) -> list[nodes.Node]:
        """Where the runs themselves are, and how to look at them."""
        return [
            nodes.Text(f"{count} stored runs: "),
            nodes.literal("", f"results/{name}.json"),
            nodes.Text(", their curves in "),
            nodes.literal("", f"results/{name}.npz"),
            nodes.Text(" "),
            *explorer_link(self.env, name, []),
        ]

    def entry(self, label: str, files: list[Path]) -> nodes.list_item:
        """One line of downloads."""
        line = nodes.paragraph("", f"{label}: ")
        for number, path in enumerate(files):
            line += [nodes.Text(", ")] if number else []
            line += download_link(self.env, path, path.name)
        return nodes.list_item("", line)


PAGE = "book/explorer"
MOST_LINKED = 10  # runs that a link under a figure chooses


class Explorer(BookDirective):
    """``{explorer}``: the scripts that fill the page's controls."""

    kind = "explorer"

    def build(self) -> list[nodes.Node]:
        """What they begin with; the scripts are of this page alone."""
        from papers import STUDIES
        from papers.kit.explore import AXES

        titles = {name: study.title for name, study in STUDIES.items()}
        start = json.dumps({"studies": titles, "axes": AXES, "chart": chart()})
        return [
            raw(
                f"<script>window.fedExplorer = {start};</script>"
                '<script src="../_static/vendor/vega.js" defer></script>'
                '<script src="../_static/explorer.js" defer></script>'
            )
        ]


def chart() -> dict[str, Any]:
    """The chart as Vega-Lite: mean and band a run; the browser adds data, titles and scales."""
    import altair as alt

    from papers.kit.plot import COLORS

    near = alt.selection_point(
        name="near", on="pointerover", nearest=True, fields=["run"], empty=False, clear="pointerout"
    )
    empty = alt.Data(name="curves")
    color = alt.Color("run:N", sort=None, scale=alt.Scale(range=list(COLORS))).legend(
        orient="bottom",
        columns=3,
        labelLimit=260,
        title=None,
        symbolType="stroke",
        symbolOpacity=1,
        symbolStrokeWidth=3,
    )
    base = alt.Chart(empty).encode(x=alt.X("x:Q"), color=color)
    band = base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q"), y2="high:Q")
    line = base.mark_line().encode(
        y=alt.Y("mean:Q"), strokeWidth=alt.when(near).then(alt.value(3.5)).otherwise(alt.value(1.7))
    )
    points = base.mark_point(opacity=0, size=60).encode(y="mean:Q").add_params(near)
    layers = alt.layer(band, line, points)
    made: dict[str, Any] = layers.properties(height=380).to_dict()
    return made


def curves_of(study: Study) -> dict[str, Any]:
    """Everything that the explorer draws of a study; settings that all runs share stand once."""
    from fedbook_figures import flat

    from papers.kit.explore import thinned

    traces = study.load("full")
    settings = {name: flat(trace.config) for name, trace in traces.items()}
    first = next(iter(settings.values()))
    shared = {k: v for k, v in first.items() if all(one.get(k) == v for one in settings.values())}
    return {
        "title": study.title,
        "shared": shared,
        "runs": {
            name: {
                **thinned(trace),
                "set": {k: v for k, v in settings[name].items() if k not in shared},
            }
            for name, trace in traces.items()
            if trace.metrics or trace.info
        },
    }


def explorer_link(env: BuildEnvironment, study: str, runs: Iterable[str]) -> list[nodes.Node]:
    """A link to the explorer with the choice in its address; nothing in a book without it."""
    if PAGE not in env.found_docs:
        return []
    chosen = list(runs)[:MOST_LINKED]
    asked = {"study": study, **({"runs": ",".join(chosen)} if chosen else {})}
    query = urlencode(asked, safe=",")
    top = "../" * env.docname.count("/")
    text = "explore these runs" if chosen else "explore them"
    return [nodes.reference(text, text, refuri=f"{top}{PAGE}.html?{query}", classes=["explore"])]


def write_explorer(app: Sphinx, error: Exception | None) -> None:
    """Writes Vega's scripts and the curves of every study beside the pages."""
    for path in (Path(app.outdir) / "_static").rglob("*.map"):
        path.unlink()  # of the theme's scripts, for those who change them: a tenth of the book
    shutil.rmtree(Path(app.outdir) / "_static" / "locales", ignore_errors=True)  # of the theme
    if error is not None or app.builder.name != "html" or PAGE not in app.env.found_docs:
        return
    import vl_convert

    from papers import STUDIES

    folder = Path(app.outdir) / "_static"
    vega = folder / "vendor" / "vega.js"
    if not vega.is_file():
        bundle = vl_convert.javascript_bundle()  # its short names are those of other scripts too
        vega.write_text(f"(() => {{{bundle}}})();\n", encoding="utf-8")
    (folder / "runs").mkdir(exist_ok=True)
    for name, study in STUDIES.items():
        path = folder / "runs" / f"{name}.js"
        stored = max(p.stat().st_mtime for p in files_of(name))
        if path.is_file() and path.stat().st_mtime > stored:
            continue
        path.write_text(script(name, curves_of(study)), encoding="utf-8")


def script(name: str, data: Mapping[str, Any]) -> str:
    """A script that hands the data of a study to the page."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return f"window.fedRuns({json.dumps(name)}, {text});\n"


DIRECTIVES: dict[str, type[BookDirective]] = {
    "provenance": Provenance,
    "notebook-links": NotebookLinks,
    "explorer": Explorer,
}


def setup(app: Sphinx) -> None:
    """Registers the directives."""
    for name, directive in DIRECTIVES.items():
        app.add_directive(name, directive)
    app.connect("build-finished", write_explorer)
