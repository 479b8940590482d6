"""Figures: one SVG for light and dark pages, with their files below.

A figure that a notebook draws brings its SVG and its table along in the notebook, and is shown from
there on that page as on any other. Under each stand the files, the command that draws it with other
values, and what the runs behind it were made with.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.parsers.rst import directives
from fedbook_data import (
    BookError,
    add_label,
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
from papers.kit import archive

if TYPE_CHECKING:
    pass

FIGURES = Path("_build", "figures")
SUMMARY = "Data and code of this figure"
PICTURE = re.compile(r'<img class="fig"([^>]*?) src="data:image/png;base64,[^"]+"')
CAPTION = re.compile(r"<figcaption>.*?</figcaption>", re.DOTALL)
PRINTED = re.compile(r"(figure|table)_(\d+)")  # name of a figure that repeats one of the paper
FORMULA = re.compile(r"\$([^$\n]+)\$")

WIDTH = re.compile(r'<svg[^>]* width="([\d.]+)pt"')
HEIGHT = re.compile(r'<svg[^>]* height="([\d.]+)pt"')
LETTERS = re.compile(r"<text[^>]*?font(?:-size)?: ?[^;\"]*?([\d.]+)px")
LEGIBLE = 9  # pixels, of the smallest letters as a reader sees them

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
MOST = 3  # different numbers that are listed
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")


def themed(svg: bytes) -> bytes:
    """The picture with the colours of words and grid for dark pages beside those for light ones."""
    from papers.kit.plot import STYLES

    rules = ""
    for name, color in STYLES["light"].items():
        dark = STYLES["dark"][name]
        for attribute in ("fill", "stroke"):
            rules += f'[style*="{attribute}: {color}"]{{{attribute}:{dark}!important}}'
    # matplotlib leaves out the colour of words that are black; ours never are
    style = f"<style>@media (prefers-color-scheme:dark){{{rules}}}</style>"
    return re.sub(rb"(<svg[^>]*>)", lambda tag: tag[0] + style.encode(), svg, count=1)


def legible_width(svg: str) -> int:
    """How many pixels wide a picture must be shown for its letters to be read; 0 without any."""
    sizes = list(map(float, LETTERS.findall(svg)))
    if not sizes:
        return 0
    width = float(WIDTH.findall(svg)[0])
    return math.ceil(width * LEGIBLE / min(sizes))


def write_if_changed(path: Path, content: bytes) -> None:
    """Writes whole, and leaves an equal file alone."""
    if not path.is_file() or path.read_bytes() != content:
        atomic_write(path, methodcaller("write", content))


def written(env: BuildEnvironment, name: str, svg: bytes, csv: str) -> dict[str, Path]:
    """The picture and, where there are data, the table, as files by their label."""
    contents = {"SVG": themed(svg)}
    if csv:
        contents["CSV"] = csv.encode()
    files = {}
    for label, content in contents.items():
        files[label] = Path(env.srcdir) / FIGURES / f"{name}.{label.lower()}"
        write_if_changed(files[label], content)
    return files


def fold(
    env: BuildEnvironment,
    name: str,
    files: Mapping[str, Path],
    runs: list[str],
    profile: str,
    title: str = "",
) -> list[nodes.Node]:
    """The folded lines under a figure of the notebook or study `name`: files, code, settings."""
    source = Path(env.srcdir) / f"notebooks/src/{name}.py"
    line = nodes.paragraph("", "", classes=["figure-downloads"])
    for label, path in {**files, "source": source}.items():
        if label == "SVG":  # the file that the page shows
            top = "../" * env.docname.count("/")
            address = f"{top}_images/{path.name}"
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
    folder = folder_of(f"{study}@{profile}")
    paths = [folder / f"{name}.json" for name in runs]
    configs = [flat(read_stored(env, path)["config"]) for path in paths if archive.exists(path)]
    if not configs:
        return []
    head, *rows = setting_rows(configs, of_paper(study, runs))
    return [table(head, rows, (1,) * len(head), "figure-settings")]


def setting_rows(configs: list[dict[str, str]], paper: dict[str, str]) -> list[list[str]]:
    """A head and a row a setting; methods that differ in none of them have one column."""
    by_method: dict[str, list[dict[str, str]]] = {}
    for config in configs:
        by_method.setdefault(config.get("method", ""), []).append(config)
    used = set[str]().union(*configs)
    labels = [label for label in MAIN if label in used and label != "method"]
    columns: dict[tuple[str, ...], list[str]] = {}
    for method, method_configs in by_method.items():
        values = [listed_values(method_configs, label) for label in labels]
        columns.setdefault(tuple(values), []).append(method)
    paper_values = tuple(paper.get(label, "") for label in labels)
    if any(paper_values):
        columns.setdefault(paper_values, []).append("the paper or its code")
    rows = [["", *map(", ".join, columns.values())]]
    for position, label in enumerate(labels):
        rows.append([label, *(values[position] for values in columns)])
    return rows


def listed_values(configs: list[dict[str, str]], label: str) -> str:
    """The different values of a setting."""
    values = [config[label] for config in configs if label in config]
    return listed(list(dict.fromkeys(values)))


def of_paper(study: str, runs: list[str]) -> dict[str, str]:
    """The paper's values of settings, as the claims on some of the runs have them, by label."""
    from papers import STUDIES

    values: dict[str, dict[str, None]] = {}
    for claim in STUDIES[study].claims if study in STUDIES else ():
        if not set(claim.runs) & set(runs):
            continue
        for path, value in claim.needs.paper.items():
            for label, paths in MAIN.items():
                if path.replace("algorithm", "method") in paths:
                    values.setdefault(label, {})[text_of(value)] = None
    return {label: listed(list(texts)) for label, texts in values.items()}


def say_once(cells: list[nodes.container]) -> None:
    """Links to the first figure of a page with the same settings where they would come again."""
    figures: dict[str, int] = {}
    for number, cell in enumerate(cells, start=1):
        for rows in list(cell.findall(nodes.table)):
            if "figure-settings" not in rows["classes"]:
                continue
            earlier = figures.setdefault(rows.astext(), number)
            if earlier < number:
                target = next(cells[earlier - 1].findall(nodes.target))
                link = nodes.reference("", f"Fig. {earlier}", refid=target["ids"][0])
                line = nodes.paragraph("", "The settings are the same as in ")
                line += [link, nodes.Text(".")]
                rows.replace_self(line)


def flat(config: Mapping[str, Any]) -> dict[str, str]:
    """The main settings of a configuration as label -> text."""
    method = config["algorithm"]
    if isinstance(method.get("method"), Mapping):
        method = method["method"]  # which something around it follows
    values = {"rounds": config["rounds"], "seeds": config["seeds"]}
    for name, settings in (("method", method), ("problem", config["problem"])):
        for key, value in settings.items():
            values[f"{name}.{key}"] = value
    texts = {}
    for label, paths in MAIN.items():
        present = [values[path] for path in paths if path in values]
        set_values = [value for value in present if value is not None]
        if set_values:
            texts[label] = text_of(set_values[0])
            if label == "data":
                texts[label] = texts[label].replace("_", " ")
        elif present and label in WHOLE:
            texts[label] = "all"
    return texts


def text_of(value: object) -> str:
    """A value of a configuration as a reader writes it."""
    match value:
        case {"type": class_name, **fields}:
            set_fields = {key: entry for key, entry in fields.items() if entry is not None}
            return in_words(str(class_name), set_fields)
        case Mapping():
            return ", ".join(f"{key} {text_of(entry)}" for key, entry in value.items())
        case [int(), int(), *_] if value == list(range(value[0], value[0] + len(value))):
            return f"{value[0]} to {value[-1]}"
        case list() | tuple():
            return ", ".join(map(text_of, value))
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.4g}"
    return str(value)


def in_words(class_name: str, fields: Mapping[str, Any]) -> str:
    """A part of a method as a reader calls it: its class is named only if it has no other name."""
    match class_name:
        case "Identity":
            return "none"
        case "TopK" | "RandK":
            name = class_name.replace("K", "-K")
            return f"{name}, {text_of(fields['fraction'])} of the entries"
        case "Rounding":
            return f"{fields['mantissa_bits']} bits of mantissa"
        case "PowerLaw":
            scale = text_of(fields["scale"])
            return f"{scale} / t^{text_of(fields['exponent'])}" if fields["exponent"] else scale
        case "Least":
            return text_of(fields["share"])
        case "TwoWay" | "OneWay":
            return f"{class_name.replace('Way', '-way').lower()}, {text_of(fields['sketch'])}"
        case "LowRank":
            return "low rank"
        case "Exact":
            return "exact"
    return f"{class_name}: {text_of(fields)}" if fields else class_name


def listed(values: list[str]) -> str:
    """Different values; of many numbers the smallest and the largest."""
    if len(values) > MOST and all(map(NUMBER.fullmatch, values)):
        ordered = sorted(values, key=float)
        return f"{ordered[0]} to {ordered[-1]} ({len(values)} values)"
    return ", ".join(values)


def carried(outputs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What a cell's outputs carry along: SVG, table, and the figure's name, runs and profile."""
    for output in outputs:
        packed: dict[str, Any] = output.get("metadata", {}).get("fedlib", {})
        if packed:
            return packed
    return {}


def unpacked_files(env: BuildEnvironment, label: str, packed: Mapping[str, Any]) -> dict[str, Path]:
    """The picture and the table that a notebook carries along, as files by their label."""
    from papers.kit import plot

    csv = plot.unpacked(packed["csv"])
    return written(env, label, plot.unpacked(packed["svg"]), csv.decode())


def figures_in(env: BuildEnvironment, name: str) -> dict[str, dict[str, Any]]:
    """The figures that a page's executed notebook carries along, by name."""
    path = Path(env.srcdir) / "notebooks" / f"{name}.ipynb"
    if not path.is_file():
        return {}
    env.note_dependency(str(path))
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    figures = [carried(cell["outputs"]) for cell in cells if cell["cell_type"] == "code"]
    return {packed["name"]: packed for packed in figures if packed.get("name")}


def add_to_notebook(app: Sphinx, doctree: nodes.document) -> None:
    """Shows every figure of a notebook as SVG, with an anchor before and its files under it."""
    env = app.env
    path = Path(env.doc2path(env.docname))
    if path.suffix != ".ipynb":
        return
    cells = list(filter(shows_figure, doctree.findall(nodes.container)))
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


def shows_figure(cell: nodes.container) -> bool:
    """Whether a node is a code cell with a figure among its outputs."""
    if cell.get("nb_element") != "cell_code":
        return False
    return any("fed-figure" in html.astext() for html in cell.findall(nodes.raw))


def add_files(
    env: BuildEnvironment,
    name: str,
    number: int,
    cell: nodes.container,
    source: Mapping[str, Any],
) -> None:
    """The same for one figure."""
    packed = carried(source["outputs"])
    figure = packed.get("name", "")
    label = f"{name}-{figure or cell['cell_index']}"
    files = unpacked_files(env, label, packed) if packed else {}
    runs = packed.get("runs", [])
    profile = packed.get("profile", "full")
    output = cell.children[-1]
    anchor = figure_anchor(label)
    for node in output.findall(nodes.raw):
        if "fed-figure" not in node.astext():
            continue
        node["number"] = numbered(number, figure)
        if "SVG" in files:
            node["svg"] = str(files["SVG"])
    output.insert(0, nodes.target("", "", ids=[anchor]))
    output.extend(fold(env, name, files, runs, profile, f"Fig. {number}: "))
    add_label(env, anchor, f"Fig. {number}, {label}")


def numbered(number: int, figure: str) -> str:
    """The number of a figure on its page, and its name in the paper if it repeats one of these."""
    printed = PRINTED.fullmatch(figure)
    if not printed:
        return f"Fig. {number}."
    return f"Fig. {number} (the paper's {printed[1].title()} {printed[2]})."


def put_pictures(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Puts the SVG of a notebook's figure in place of its PNG; marks its caption's formulas."""
    folder = Path(app.outdir) / "_images"
    top = "../" * docname.count("/") if app.builder.name == "html" else ""
    mark = r'<span class="math notranslate nohighlight">\\(\1\\)</span>'
    for node in doctree.findall(nodes.raw):
        html = node.astext()
        if node.get("format") != "html" or "fed-figure" not in html:
            continue
        if node.get("svg"):
            path = Path(node["svg"])
            content = path.read_bytes()
            write_if_changed(folder / path.name, content)
            attributes = shown_attributes(content.decode())
            address = f"{top}_images/{path.name}"
            image = rf'<img {attributes} class="fig dark-light"\1 src="{address}"'
            html = PICTURE.sub(image, html)
        html = CAPTION.sub(lambda caption: FORMULA.sub(mark, caption[0]), html)
        if node.get("number"):
            lead = f"<figcaption><b>{node['number']}</b> "
            html = html.replace("<figcaption>", lead, 1)
        node[0] = nodes.Text(html)


def shown_attributes(svg: str) -> str:
    """How a page shows a picture: in pixels, so that there is room before it is fetched."""
    attributes = ['loading="lazy"']
    for side, pattern in (("width", WIDTH), ("height", HEIGHT)):
        points = pattern.search(svg)
        if points:
            pixels = round(float(points[1]) * 4 / 3)
            attributes.append(f'{side}="{pixels}"')
    attributes.append(f'style="min-width: {legible_width(svg)}px"')
    return " ".join(attributes)


class ThemedFigure(SphinxDirective):
    """``{themed-figure} STUDY/FIGURE`` with ``:alt:``, ``:name:`` and the caption as content.

    It shows a figure of the study's page; ``{themed-figure} overview`` is the picture of the
    verdicts.
    """

    required_arguments = 1
    has_content = True
    option_spec = {  # noqa: RUF012 - docutils reads it from the class
        "alt": directives.unchanged_required,
        "name": directives.unchanged_required,
        "width": directives.length_or_percentage_or_unitless,
    }

    def run(self) -> list[nodes.Node]:
        """The numbered figure and what stands below it."""
        name, _, figure = self.arguments[0].partition("/")
        try:
            if not self.options.get("alt"):
                raise BookError(f"{self.arguments[0]}: a figure needs :alt:, a text in its place.")
            return self.overview() if name == "overview" else self.carried_by(name, figure)
        except BookError as error:
            warn(error, "themed-figure", self.get_location())
            return [nodes.warning("", nodes.paragraph("", str(error)))]

    def carried_by(self, name: str, figure: str) -> list[nodes.Node]:
        """A figure of a page, and what stands below it."""
        figures = figures_in(self.env, study_of(name).name)
        if figure not in figures:
            known = ", ".join(figures) or "none"
            raise BookError(f"{name} has no figure {figure!r}; known figures: {known}.")
        packed = figures[figure]
        files = unpacked_files(self.env, f"{name}-{figure}-page", packed)
        return [
            *self.picture(files),
            *fold(self.env, name, files, packed["runs"], packed["profile"]),
        ]

    def overview(self) -> list[nodes.Node]:
        """The verdicts on each paper."""
        from papers import STUDIES, overview
        from papers.kit import plot

        for study in STUDIES:
            for path in files_of(study):
                self.env.note_dependency(str(path))
        figure = plot.figure((4.8, 3.6))
        overview.draw(figure, overview.standings())
        files = plot.files_of(figure, None)
        return self.picture(unpacked_files(self.env, "overview", files))

    def picture(self, files: Mapping[str, Path]) -> list[nodes.Node]:
        """The numbered figure."""
        options = {**self.options, "class": ["fig", "dark-light"], "align": "center"}
        directive = Figure(
            "figure",
            [f"/{(FIGURES / files['SVG'].name).as_posix()}"],
            options,
            self.content,
            self.lineno,
            self.content_offset,
            self.block_text,
            self.state,
            self.state_machine,
        )
        return directive.run()


def setup(app: Sphinx) -> None:
    """Before Sphinx collects a page's downloads, which it does at priority 500."""
    app.add_directive("themed-figure", ThemedFigure)
    app.connect("doctree-read", add_to_notebook, priority=400)
    app.connect("doctree-resolved", put_pictures)
