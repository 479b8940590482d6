"""Figures: drawn from stored runs as one SVG for light and dark pages, with their files below.

A study's figure is drawn again from its runs, on its notebook's page as on any other; one that a
notebook's own code draws brings its SVG and its table along in the notebook. Under each stand the
files, the command that draws it with other values, and what the runs behind it were made with.
"""

from __future__ import annotations

import ast
import base64
import io
import json
import math
import re
from collections import UserDict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.parsers.rst import directives
from fedbook_data import (
    BookError,
    command_of,
    download_link,
    figure_anchor,
    files_of,
    folder_of,
    raw,
    read_stored,
    study_of,
    table,
    warn,
)
from sphinx.application import Sphinx
from sphinx.directives.patches import Figure
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from fedlib.core.files import atomic_write

if TYPE_CHECKING:
    from fedlib.core import Trace
    from papers.kit.study import Study

FIGURES = Path("_build", "figures")
SUMMARY = "Data and code of this figure"
PICTURE = re.compile(r'<img class="fig"([^>]*?) src="data:image/png;base64,[^"]+"')
CAPTION = re.compile(r"<figcaption>.*?</figcaption>", re.DOTALL)
FORMULA = re.compile(r"\$([^$\n]+)\$")

METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
BLANKS = re.compile(r"(?<=>)\s+(?=<(?!/?tspan|/text))")
TAG = re.compile(r"<[^>]*>")
LONG = re.compile(r"-?\d+\.\d{3,}")
WIDTH = re.compile(r'<svg[^>]* width="([\d.]+)pt"')
HEIGHT = re.compile(r'<svg[^>]* height="([\d.]+)pt"')
LETTERS = re.compile(r"<text[^>]*?font(?:-size)?: ?[^;\"]*?([\d.]+)px")
LEGIBLE = 9  # pixels, of the smallest letters as a reader sees them
PNG = re.compile(r'<img class="fig"[^>]*? src="data:image/png;base64,([^"]+)"')
PIXELS_PER_INCH = 110  # of the pictures that `plot.show` leaves in a notebook

#: Label -> where it is in a configuration, the first that is there.
MAIN = {
    "method": ("method.type",),
    "clients N": ("problem.clients",),
    "participants n": ("method.participants", "method.participation"),
    "local steps E": ("method.local_steps",),
    "step size": ("method.lr", "method.eta", "method.step", "method.gamma"),
    "server's step size": ("method.server_lr",),
    "least weight": ("method.least",),
    "uplink": ("method.uplink", "method.compressor", "method.gram"),
    "downlink": ("method.downlink",),
    "batch": ("method.batch_size",),
    "rounds T": ("rounds",),
    "seeds": ("seeds",),
    "data": ("problem.data", "problem.name"),
    "Dirichlet split": ("problem.alpha",),
}
WHOLE = ("participants n", "batch")  # where no value means all clients, or all rows
MOST = 3  # different values that are listed


class Watched(UserDict[str, "Trace"]):
    """The runs of a study, which remembers those that a figure looks at."""

    def __init__(self, traces: Mapping[str, Trace]) -> None:
        self.seen = dict[str, None]()
        super().__init__(traces)

    def __getitem__(self, name: str) -> Trace:
        """The run, noted."""
        self.seen[name] = None
        return super().__getitem__(name)


def slim(svg: bytes) -> bytes:
    """The same picture without metadata and indentation, numbers with two digits."""
    text = METADATA.sub("", svg.decode())
    text = TAG.sub(lambda tag: LONG.sub(lambda x: f"{float(x[0]):.2f}", tag[0]), text)
    return BLANKS.sub("\n", text).encode()


def themed(svg: bytes) -> bytes:
    """The picture with the colours of words and grid for dark pages beside those for light ones."""
    from papers.kit.plot import STYLES

    rules = "".join(
        f'[style*="{what}: {color}"]{{{what}:{STYLES["dark"][name]}!important}}'
        for name, color in STYLES["light"].items()
        for what in ("fill", "stroke")
    )
    # matplotlib leaves out the colour of words that are black; ours never are
    style = f"<style>@media (prefers-color-scheme:dark){{{rules}}}</style>"
    return re.sub(rb"(<svg[^>]*>)", lambda m: m[0] + style.encode(), svg, count=1)


def legible_width(svg: str) -> int:
    """How many pixels wide a picture must be shown for its letters to be read; 0 without any."""
    sizes = [float(size) for size in LETTERS.findall(svg)]
    return math.ceil(float(WIDTH.findall(svg)[0]) * LEGIBLE / min(sizes)) if sizes else 0


def write_if_changed(path: Path, content: bytes) -> None:
    """Writes whole, and leaves an equal file alone."""
    if not path.is_file() or path.read_bytes() != content:
        atomic_write(path, methodcaller("write", content))


def written(env: BuildEnvironment, name: str, svg: bytes, csv: str) -> dict[str, Path]:
    """The picture and, where there are data, the table, as files by their label."""
    contents = {"SVG": themed(slim(svg))} | ({"CSV": csv.encode()} if csv else {})
    files = {x: Path(env.srcdir) / FIGURES / f"{name}.{x.lower()}" for x in contents}
    for label, path in files.items():
        write_if_changed(path, contents[label])
    return files


def exported(
    env: BuildEnvironment,
    study: Study,
    figure: str,
    size: tuple[float, float] | None,
    name: str,
    profile: str = "full",
) -> tuple[dict[str, Path], list[str]]:
    """Draws a study's figure and writes its files; these by label, and the runs it looks at."""
    from papers.kit import plot

    try:
        watched = Watched(study.load(profile))
    except ValueError as error:
        raise BookError(str(error)) from None
    svg, data = plot.export(study.figures[figure](watched), size or plot.SIZE)
    return written(env, name, svg, plot.to_csv(data)), [*watched.seen]


def fold(
    env: BuildEnvironment,
    name: str,
    files: Mapping[str, Path],
    runs: list[str],
    profile: str,
    title: str = "",
) -> list[nodes.Node]:
    """The folded lines under a figure of the notebook or study `name`: files, code, settings."""
    root = Path(env.srcdir)
    own = {"source": root / f"notebooks/src/{name}.py"}
    line = nodes.paragraph("", "", classes=["figure-downloads"])
    for label, path in {**files, **own}.items():
        if label == "SVG":  # the file that the page shows
            address = f"{'../' * env.docname.count('/')}_images/{path.name}"
            link: nodes.Node = nodes.reference("", "", nodes.literal("", label), refuri=address)
        elif path.is_file():
            link = download_link(env, path, label)
        else:
            continue
        line += [link, nodes.Text(" ")]
    line += [nodes.Text(" "), nodes.literal("", command_of(name))]
    return [
        raw(f'<details class="figure-files"><summary>{title}{SUMMARY}</summary>'),
        line,
        *settings(env, name, runs, profile),
        raw("</details>"),
    ]


def settings(env: BuildEnvironment, study: str, runs: list[str], profile: str) -> list[nodes.Node]:
    """What the runs behind a figure were made with, a column a method, and what the paper has."""
    if not runs:
        return []
    folder = folder_of(f"{study}@{profile}")
    configs = [flat(read_stored(env, folder / f"{name}.json")["config"]) for name in runs]
    head, *rows = setting_rows(configs, of_paper(study, runs))
    return [table(head, rows, (1,) * len(head), "figure-settings")]


def setting_rows(configs: list[dict[str, str]], paper: dict[str, str]) -> list[list[str]]:
    """A head and a row a setting; methods that differ in none of them have one column."""
    columns: dict[tuple[str, ...], list[str]] = {}
    labels = [x for x in MAIN if x != "method" and any(x in config for config in configs)]
    for method in dict.fromkeys(config.get("method", "") for config in configs):
        own = [config for config in configs if config.get("method", "") == method]
        values = (listed([*dict.fromkeys(c[x] for c in own if x in c)]) for x in labels)
        columns.setdefault(tuple(values), []).append(method)
    known = tuple(paper.get(x, "") for x in labels)
    if any(known):
        columns.setdefault(known, []).append("the paper or its code")
    head = ["", *(", ".join(names) for names in columns.values())]
    return [head, *([x, *row] for x, row in zip(labels, zip(*columns, strict=True), strict=True))]


def of_paper(study: str, runs: list[str]) -> dict[str, str]:
    """The paper's values of settings, as the claims on some of the runs have them, by label."""
    from papers import STUDIES

    claims = STUDIES[study].claims if study in STUDIES else ()
    needs = [claim.needs.paper for claim in claims if {*claim.runs} & {*runs}]
    found: dict[str, dict[str, None]] = {}
    for place, value in (item for need in needs for item in need.items()):
        for label in (k for k, v in MAIN.items() if place.replace("algorithm", "method") in v):
            found.setdefault(label, {})[text_of(value)] = None
    return {label: listed([*texts]) for label, texts in found.items()}


def say_once(cells: list[nodes.container]) -> None:
    """Links to the first figure of a page with the same settings where they would come again."""
    first: dict[str, int] = {}
    for number, cell in enumerate(cells, start=1):
        for rows in [x for x in cell.findall(nodes.table) if "figure-settings" in x["classes"]]:
            same = first.setdefault(rows.astext(), number)
            if same < number:
                anchor = next(cells[same - 1].findall(nodes.target))["ids"][0]
                line = nodes.paragraph("", "The settings are the same as in ")
                line += [nodes.reference("", f"Fig. {same}", refid=anchor), nodes.Text(".")]
                rows.replace_self(line)


def flat(config: Mapping[str, Any]) -> dict[str, str]:
    """The main settings of a configuration as label -> text."""
    inner = config["algorithm"].get("method")  # of a method that is followed by something around it
    whole = {**config, "method": inner if isinstance(inner, Mapping) else config["algorithm"]}
    parts = {f"{part}.{k}": v for part in ("method", "problem") for k, v in whole[part].items()}
    parts |= {k: whole[k] for k in ("rounds", "seeds")}
    found = {}
    for label, places in MAIN.items():
        values = [parts[p] for p in places if parts.get(p) is not None]
        if values:
            found[label] = text_of(values[0])
        elif label in WHOLE and any(p in parts for p in places):
            found[label] = "all"
    return found


def text_of(value: object) -> str:
    """A value of a configuration as a reader writes it."""
    match value:
        case {"type": kind, **rest}:
            inner = ", ".join(f"{k} {text_of(v)}" for k, v in rest.items() if v is not None)
            return f"{kind} ({inner})" if inner else str(kind)
        case Mapping():
            return ", ".join(f"{k} {text_of(v)}" for k, v in value.items())
        case [int(), int(), *_] if value == list(range(value[0], value[0] + len(value))):
            return f"{value[0]} to {value[-1]}"
        case list() | tuple():
            return ", ".join(text_of(v) for v in value)
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.4g}"
    return str(value)


def listed(values: list[str]) -> str:
    """Different values, the first and the last of many."""
    if len(values) <= MOST:
        return ", ".join(values)
    return f"{', '.join(values[: MOST - 1])}, … {values[-1]} ({len(values)} values)"


def shown_by(source: str) -> tuple[str, str]:
    """The study's figure that a cell's call of `plot.show` shows, if it is one, and its profile.

    Traces called `longer` are those at the paper's scale.
    """
    calls = [c for c in ast.walk(ast.parse(source)) if isinstance(c, ast.Call)]
    show = next((c for c in calls if ast.unparse(c.func) == "plot.show"), None)
    if show is None:
        return "", "full"
    match show.args[0]:
        case ast.Call(func=ast.Subscript(slice=ast.Constant(value=str(figure))), args=[given]):
            return figure, "paper" if ast.unparse(given) == "longer" else "full"
    return "", "full"


def shown_size(outputs: Iterable[Mapping[str, Any]]) -> tuple[float, float] | None:
    """Width and height in inches of the picture that a cell's outputs hold; None without one."""
    from PIL import Image

    for output in outputs:
        html = "".join(output.get("data", {}).get("text/html", ""))
        if found := PNG.search(html):
            with Image.open(io.BytesIO(base64.b64decode(found[1]))) as picture:
                return picture.width / PIXELS_PER_INCH, picture.height / PIXELS_PER_INCH
    return None


def add_to_notebook(app: Sphinx, doctree: nodes.document) -> None:
    """Shows every figure of a notebook as SVG, with an anchor before and its files under it."""
    env = app.env
    path = Path(env.doc2path(env.docname))
    if path.suffix != ".ipynb":
        return
    cells = [c for c in doctree.findall(nodes.container) if c.get("nb_element") == "cell_code"]
    cells = [c for c in cells if any("fed-figure" in r.astext() for r in c.findall(nodes.raw))]
    if not cells:
        return
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for number, cell in enumerate(cells, start=1):
        source = notebook["cells"][cell["cell_index"]]
        try:
            add_files(env, path.stem, number, cell, source)
        except BookError as error:
            warn(error, "figure", env.docname)
    say_once(cells)


def add_files(
    env: BuildEnvironment,
    name: str,
    number: int,
    cell: nodes.container,
    source: Mapping[str, Any],
) -> None:
    """The same for one figure."""
    from fedlib.data import DataError
    from papers import STUDIES
    from papers.kit import plot

    figure, profile = shown_by("".join(source["source"]))
    size = shown_size(source["outputs"])
    label = f"{name}-{figure or cell['cell_index']}"
    files: dict[str, Path] = {}
    runs: list[str] = []
    if figure and name in STUDIES:
        for stored in files_of(name):
            env.note_dependency(str(stored))
        with suppress(DataError):  # it shows rows of a data set that is not on this machine
            files, runs = exported(env, study_of(name), figure, size, label, profile)
    for output in source["outputs"] if not files else ():
        if packed := output.get("metadata", {}).get("fedlib"):
            svg, csv = (plot.unpacked(packed[kind]) for kind in ("svg", "csv"))
            files = written(env, label, svg, csv.decode())
    output, anchor = cell.children[-1], figure_anchor(label)
    for node in output.findall(nodes.raw):
        if "fed-figure" in node.astext() and "SVG" in files:
            node["svg"] = str(files["SVG"])
    output.insert(0, nodes.target("", "", ids=[anchor]))
    output.extend(fold(env, name, files, runs, profile, f"Fig. {number}: "))
    domain = env.get_domain("std")
    domain.labels[anchor] = (env.docname, anchor, f"Fig. {number}, {label}")
    domain.anonlabels[anchor] = (env.docname, anchor)


def put_pictures(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Puts the SVG of a notebook's figure in place of its PNG; marks its caption's formulas."""
    folder = Path(app.outdir) / "_images"
    top = "../" * docname.count("/") if app.builder.name == "html" else ""
    mark = r'<span class="math notranslate nohighlight">\\(\1\\)</span>'
    for node in doctree.findall(nodes.raw):
        html = node.astext()
        if node.get("format") != "html" or "fed-figure" not in html:
            continue
        if svg := node.get("svg"):
            content = Path(svg).read_bytes()
            write_if_changed(folder / Path(svg).name, content)
            text = content.decode()
            size = [
                f'{side}="{round(float(found[1]) * 4 / 3)}"'  # pixels: room before it is fetched
                for side, form in (("width", WIDTH), ("height", HEIGHT))
                if (found := form.search(text))
            ]
            least = f"min-width: {legible_width(text)}px"
            style = f'loading="lazy" {" ".join(size)} style="{least}"'
            address = f"{top}_images/{Path(svg).name}"
            image = rf'<img {style} class="fig dark-light"\1 src="{address}"'
            html = PICTURE.sub(image, html)
        node[0] = nodes.Text(CAPTION.sub(lambda found: FORMULA.sub(mark, found[0]), html))


class ThemedFigure(SphinxDirective):
    """``{themed-figure} STUDY/FIGURE`` with ``:alt:``, ``:name:`` and the caption as content.

    ``:profile: paper`` draws the runs at the paper's scale; ``{themed-figure} overview`` is the
    picture of the verdicts.
    """

    required_arguments = 1
    has_content = True
    option_spec = {  # noqa: RUF012 - docutils reads it from the class
        "alt": directives.unchanged_required,
        "name": directives.unchanged_required,
        "width": directives.length_or_percentage_or_unitless,
        "profile": lambda word: directives.choice(word, ("full", "paper")),
    }

    def run(self) -> list[nodes.Node]:
        """The numbered figure and what stands below it."""
        name, _, figure = self.arguments[0].partition("/")
        try:
            if not self.options.get("alt"):
                raise BookError(f"{self.arguments[0]}: a figure needs :alt:, a text in its place.")
            files, runs = self.overview() if name == "overview" else self.drawn(name, figure)
        except BookError as error:
            warn(error, "themed-figure", self.get_location())
            return [nodes.warning("", nodes.paragraph("", str(error)))]
        options = {**self.options, "class": ["fig", "dark-light"], "align": "center"}
        picture = f"/{(FIGURES / files['SVG'].name).as_posix()}"
        made = Figure(
            "figure", [picture], options, self.content, self.lineno, self.content_offset,
            self.block_text, self.state, self.state_machine,
        ).run()  # fmt: skip
        profile = self.options.get("profile", "full")
        return made if name == "overview" else [*made, *fold(self.env, name, files, runs, profile)]

    def drawn(self, name: str, figure: str) -> tuple[dict[str, Path], list[str]]:
        """The files of a study's figure, and its runs."""
        study = study_of(name)
        if figure not in study.figures:
            known = ", ".join(study.figures)
            raise BookError(f"{name} has no figure {figure!r}; known figures: {known}.")
        for path in files_of(name):
            self.env.note_dependency(str(path))
        profile = self.options.get("profile", "full")
        return exported(self.env, study, figure, None, f"{name}-{figure}-page", profile)

    def overview(self) -> tuple[dict[str, Path], list[str]]:
        """The verdicts on each paper."""
        from papers import STUDIES, overview
        from papers.kit import plot

        for path in (path for study in STUDIES for path in files_of(study)):
            self.env.note_dependency(str(path))
        found = overview.standings()
        svg, data = plot.export(lambda fig: overview.draw(fig, found), (4.8, 3.6))
        return written(self.env, "overview", svg, plot.to_csv(data)), []


def setup(app: Sphinx) -> None:
    """Before Sphinx collects a page's downloads, which it does at priority 500."""
    app.add_directive("themed-figure", ThemedFigure)
    app.connect("doctree-read", add_to_notebook, priority=400)
    app.connect("doctree-resolved", put_pictures)
