"""What stands under every figure: its files, and the command that draws it with other values.

Figures of a study are drawn again from its stored runs, which gives the SVG and the table of what
is drawn; those of a note's own code carry both in the notebook. `themed-figure` uses the same fold.
"""

from __future__ import annotations

import ast
import base64
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import fedbook_explorer
from docutils import nodes
from fedbook_data import (
    BookError,
    commands_of,
    download_link,
    figure_anchor,
    files_of,
    raw,
    study_of,
    warn,
)
from fedbook_gallery import hang
from fedbook_settings import below, note, runs_of_figure
from fedbook_svg import legible_width, slim
from fedbook_tables import joined
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

if TYPE_CHECKING:
    from fedlib.core import Trace
    from papers.kit.study import Study

FIGURES = Path("_build", "figures")
SUMMARY = "Data and code of this figure"
IMAGE = re.compile(r'<img class="fig-light[^>]* src="data:image/png;base64,([^"]+)"')


class Shown(NamedTuple):
    """What a cell shows: the name, the study's figure if it is one, and its size."""

    name: str
    figure: str
    size: tuple[float, float] | None


class Watched(Mapping[str, "Trace"]):
    """The runs of a study, which remembers those that a figure looks at."""

    def __init__(self, traces: Mapping[str, Trace]) -> None:
        self.traces, self.seen = traces, dict[str, None]()

    def __getitem__(self, name: str) -> Trace:
        """The run, noted."""
        trace = self.traces[name]
        self.seen[name] = None
        return trace

    def __contains__(self, name: object) -> bool:
        """Whether there is such a run; to ask is not to look at it."""
        return name in self.traces

    def __iter__(self) -> Iterator[str]:
        """The names; looking at them is not looking at the runs."""
        return iter(self.traces)

    def __len__(self) -> int:
        """How many runs there are."""
        return len(self.traces)


def write_if_changed(path: Path, content: bytes) -> None:
    """Writes whole, and leaves an equal file alone."""
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(content)
    os.replace(temporary, path)


def traces_of(study: Study) -> dict[str, Trace]:
    """The stored runs of the full profile."""
    try:
        return study.load("full")
    except ValueError as error:
        raise BookError(str(error)) from None


def exported(
    env: BuildEnvironment, study: Study, figure: str, traces: Mapping[str, Trace],
    size: tuple[float, float] | None = None, suffix: str = "",
) -> dict[str, list[Path]]:  # fmt: skip
    """Draws a study's figure and writes its files; label -> files.

    The suffix tells a picture of the prose pages from that of the notebook, whose size may differ.
    """
    from papers.kit import plot

    watched = Watched(traces)
    svg, data = plot.export(study.figures[figure](watched), size or plot.SIZE)
    csv = joined(plot.to_csv(data)).encode()
    files = written(env, f"{study.name}-{figure}", svg, csv, suffix)
    note(env, study.name, figure, watched.seen)
    return {**files, "JSON": files_of(study.name)[:1]}


def written(
    env: BuildEnvironment, name: str, svg: bytes, csv: bytes, suffix: str = ""
) -> dict[str, list[Path]]:
    """The picture and, where there are data, the table, as files."""
    base = Path(env.srcdir) / FIGURES
    files = {"SVG": [base / f"{name}{suffix}.svg"]}
    write_if_changed(files["SVG"][0], slim(svg))
    if csv:
        files["CSV"] = [base / f"{name}.csv"]
        write_if_changed(files["CSV"][0], csv)
    return files


def fold(
    env: BuildEnvironment,
    name: str,
    files: dict[str, list[Path]],
    figure: str = "",
    title: str = "",
) -> list[nodes.Node]:
    """The folded lines under a figure of the notebook or study `name`: files, code, settings."""
    root = Path(env.srcdir)
    own = {
        "notebook": [root / f"notebooks/{name}.ipynb"],
        "source": [root / f"notebooks/src/{name}.py"],
    }
    line = nodes.paragraph("", "", classes=["figure-downloads"])
    for label, paths in {**files, **own}.items():
        for path in paths:
            if path.is_file():
                line += [download_link(env, path, label), nodes.Text(" ")]
    runs = runs_of_figure(env, name, figure)
    if runs:
        line += fedbook_explorer.link(env, name, runs)
    again = "Draw it again, from the stored runs or with your own parameters:"
    made = folded(line, again, "\n".join(commands_of(env, name)), title)
    return [*made, *below(env, name, runs)]


def folded(line: nodes.paragraph, sentence: str, command: str, title: str = "") -> list[nodes.Node]:
    """A line of downloads and a command, folded away; `title` has the figure's number."""
    return [
        raw(f'<details class="figure-files"><summary>{title}{SUMMARY}</summary>'),
        line,
        nodes.paragraph("", sentence),
        nodes.literal_block(command, command, language="bash"),
        raw("</details>"),
    ]


def shown_by(source: str, name: str, number: int) -> Shown:
    """What the cell's call of `plot.show`, by itself or in a function of the page, shows."""
    calls = [c for c in ast.walk(ast.parse(source)) if isinstance(c, ast.Call)]
    show = next((c for c in calls if ast.unparse(c.func) == "plot.show"), None)
    if show is None:
        return Shown(f"{name}-{number}", "", None)
    sizes = [k.value for k in show.keywords if k.arg == "size"]
    try:
        size = ast.literal_eval(sizes[0]) if sizes else None
    except ValueError:  # a name: only figures that are not drawn again have one
        size = None
    match show.args[0]:
        case ast.Call(func=ast.Subscript(slice=ast.Constant(value=str(figure)))):
            return Shown(f"{name}-{figure}", figure, size)
    return Shown(f"{name}-{number}", "", size)


def add_to_notebook(app: Sphinx, doctree: nodes.document) -> None:
    """Puts an anchor before and the files under every figure that a notebook's cells show."""
    env = app.env
    path = Path(env.doc2path(env.docname))
    if path.suffix != ".ipynb" or app.config.fedbook_view:
        return
    cells = [c for c in doctree.findall(nodes.container) if c.get("nb_element") == "cell_code"]
    cells = [c for c in cells if any("fed-figure" in r.astext() for r in c.findall(nodes.raw))]
    if not cells:
        return
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        add_files(env, path.stem, cells, notebook["cells"])
    except BookError as error:
        warn(error, "figure", env.docname)


def add_files(
    env: BuildEnvironment, name: str, cells: list[nodes.container], sources: list[dict[str, Any]]
) -> None:
    """The same for the cells of one notebook."""
    from fedlib.data import DataError
    from papers import STUDIES

    traces: Mapping[str, Trace] = {}
    if name in STUDIES:
        traces = traces_of(study_of(name))
        for stored in files_of(name):
            env.note_dependency(str(stored))
    domain = env.get_domain("std")
    for number, cell in enumerate(cells, start=1):
        source = sources[cell["cell_index"]]
        shown = shown_by("".join(source["source"]), name, cell["cell_index"])
        files = {}
        if shown.figure:
            with suppress(DataError):  # it shows rows of a data set that is not on this machine
                files = exported(env, study_of(name), shown.figure, traces, shown.size)
        files = files or carried(env, shown.name, source["outputs"])
        anchor = figure_anchor(shown.name)
        output = cell.children[-1]
        widen(output, files)
        output.insert(0, nodes.target("", "", ids=[anchor]))
        output.extend(fold(env, name, files, shown.figure, f"Fig. {number}: "))
        hang(env, f"Fig. {number}", anchor, shown.figure, picture_of(source["outputs"]))
        domain.labels[anchor] = (env.docname, anchor, f"Fig. {number}, {shown.name}")
        domain.anonlabels[anchor] = (env.docname, anchor)


def carried(
    env: BuildEnvironment, name: str, outputs: list[dict[str, Any]]
) -> dict[str, list[Path]]:
    """The files that a figure drawn by a notebook's own code brings along; else its picture."""
    from papers.kit import plot

    for output in outputs:
        files = output.get("metadata", {}).get("fedlib")
        if files:
            return written(env, name, plot.unpacked(files["svg"]), plot.unpacked(files["csv"]))
    if not (picture := picture_of(outputs)):
        return {}
    path = Path(env.srcdir) / FIGURES / f"{name}.png"
    write_if_changed(path, picture)
    return {"PNG": [path]}


def widen(output: nodes.Element, files: dict[str, list[Path]]) -> None:
    """Keeps a figure so wide that its letters can be read; a narrow window scrolls it."""
    if "SVG" not in files:
        return
    width = legible_width(files["SVG"][0].read_text(encoding="utf-8"))
    for node in output.findall(nodes.raw):
        text = node.astext()
        if "fed-figure" in text:
            node[0] = nodes.Text(text.replace("<img ", f'<img style="min-width: {width}px" '))


def picture_of(outputs: list[dict[str, Any]]) -> bytes:
    """The picture that a cell shows on light pages, as PNG."""
    html = "".join(text for o in outputs for text in o.get("data", {}).get("text/html", ""))
    found = IMAGE.search(html)
    return base64.b64decode(found[1]) if found else b""


def setup(app: Sphinx) -> None:
    """Before Sphinx collects a page's downloads, which it does at priority 500."""
    app.add_config_value("fedbook_view", default=False, rebuild="env")  # a notebook run again
    app.connect("doctree-read", add_to_notebook, priority=400)
