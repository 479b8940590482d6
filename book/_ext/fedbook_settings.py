"""What the runs behind a figure were made with, under the figure and on one page of all studies.

While a figure is drawn it is noted which stored runs it looks at (`note`). Their configurations are
shown folded below the picture; directive ``settings`` shows those of all figures of all studies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from docutils import nodes
from fedbook_data import (
    BookDirective,
    BookError,
    Cell,
    figure_link,
    folder_of,
    page_link,
    raw,
    read_stored,
    table,
    warn,
)
from fedbook_noted import Noted
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform

PAGE = "book/settings"
#: (study, figure) -> the runs that the figure looks at.
NOTED: Noted[dict[tuple[str, str], list[str]]] = Noted("figures", dict, PAGE)
#: Label -> where it is in a configuration, the first that is there.
MAIN = {
    "method": ("method.type",),
    "clients N": ("problem.clients",),
    "participants n": ("method.participants", "method.participation"),
    "local steps E": ("method.local_steps",),
    "step size": ("method.lr", "method.eta", "method.step", "method.gamma"),
    "up (K/d)": ("method.uplink", "method.compressor", "method.gram"),
    "down (K/d)": ("method.downlink",),
    "batch": ("method.batch_size",),
    "rounds T": ("rounds",),
    "seeds": ("seeds",),
    "data": ("problem.data", "problem.name"),
}
SKIPPED = ("bits", "bits_up", "bits_down", "evaluate_every", "problem.metrics")
MOST = 6  # different values that are listed


class AllSettings(nodes.General, nodes.Element):
    """The place of the tables of all studies, which are known when all pages are read."""


def flat(config: Mapping[str, Any]) -> dict[str, str]:
    """A configuration as label -> text: the main ones first, then every other by its own name."""
    from papers.kit.explore import method_of

    method = method_of(config)
    whole = {**config, "method": method, "algorithm": None}
    parts = {f"{part}.{k}": v for part in ("method", "problem") for k, v in whole[part].items()}
    parts |= {k: v for k, v in whole.items() if k not in ("method", "problem", "algorithm")}
    found = {}
    for label, places in MAIN.items():
        values = [parts[p] for p in places if parts.get(p) is not None]
        if values:
            found[label] = text_of(values[0])
        elif any(p in parts for p in places):
            found[label] = "all"  # no number of participants, no batch: whoever, whatever there is
    used = {place for places in MAIN.values() for place in places}
    for name, value in parts.items():
        if name not in used and name not in SKIPPED and value is not None:
            found[name.removeprefix("method.")] = text_of(value)
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


def settings_of(env: BuildEnvironment, study: str, runs: Iterable[str]) -> dict[str, str]:
    """The settings of some runs together: label -> the different values, and the engine."""
    found: dict[str, dict[str, None]] = {}
    for name in runs:
        run = read_stored(env, folder_of(study) / f"{name}.json")
        made = run["provenance"]
        engine = f"Vectorized, {made['device']}, torch {made['torch']}"
        for label, text in {**flat(run["config"]), "engine": engine}.items():
            found.setdefault(label, {})[text] = None
    return {label: listed([*values]) for label, values in found.items()}


def listed(values: list[str]) -> str:
    """Different values, the first and the last of many."""
    if len(values) <= MOST:
        return "; ".join(values)
    return f"{'; '.join(values[: MOST - 1])}; … {values[-1]} ({len(values)} values)"


def note(env: BuildEnvironment, study: str, figure: str, runs: Iterable[str]) -> None:
    """Remembers which runs a figure looks at."""
    NOTED.here(env)[study, figure] = list(runs)


def runs_of_figure(env: BuildEnvironment, study: str, figure: str) -> list[str]:
    """The runs that a figure on the page being read looks at."""
    return NOTED.here(env).get((study, figure), [])


def below(env: BuildEnvironment, study: str, runs: list[str]) -> list[nodes.Node]:
    """The folded settings of a figure."""
    if not runs:
        return []
    held = settings_of(env, study, runs)
    main = "; ".join(f"{k} {held[k]}" for k in (*MAIN, "engine") if k in held)
    rest = "; ".join(f"{k} {v}" for k, v in held.items() if k not in MAIN and k != "engine")
    more = []
    if PAGE in env.found_docs:
        more = [
            nodes.Text(" "),
            addnodes.pending_xref(
                "", nodes.inline("", "All settings of this study"), refdomain="std", reftype="ref",
                refexplicit=True, refwarn=True, refdoc=env.docname, reftarget=f"settings-{study}",
            ),
        ]  # fmt: skip
    return [
        raw('<details class="figure-files figure-settings"><summary>Settings</summary>'),
        nodes.paragraph("", "", nodes.strong("", "Hyperparameters: "), nodes.Text(f"{main}.")),
        nodes.paragraph("", "", nodes.Text(f"{rest}." if rest else ""), *more),
        raw("</details>"),
    ]


class Settings(BookDirective):
    """``{settings}``: every study with its title, and what its figures' runs were made with."""

    kind = "settings"

    def build(self) -> list[nodes.Node]:
        """A line that leads to every study, and a section each; tables come when all are read."""
        from papers import STUDIES

        line = nodes.paragraph(classes=["settings-studies"])
        made: list[nodes.Node] = [line]
        domain = self.env.get_domain("std")
        for name, study in STUDIES.items():
            anchor = f"settings-{name}"
            title = f"{study.title} ({name})"
            section = nodes.section("", nodes.title("", title), ids=[anchor], names=[title])
            place = AllSettings()
            place["study"] = name
            section += [nodes.paragraph("", "", page_link(self.env, name)), place]
            made.append(section)
            line += [
                nodes.reference("", study.title, refid=anchor, internal=True),
                nodes.Text(" · "),
            ]
            domain.labels[anchor] = (self.env.docname, anchor, title)
            domain.anonlabels[anchor] = (self.env.docname, anchor)
        line.pop()
        return made


class Fill(SphinxPostTransform):
    """Puts the tables in, before the links within them are resolved."""

    default_priority = 5

    def run(self, **_: Any) -> None:
        """Replaces every place by what the pages have noted."""
        for place in [*self.document.findall(AllSettings)]:
            study = place["study"]
            found = {
                figure: runs
                for page in NOTED.all(self.env).values()
                for (name, figure), runs in page.items()
                if name == study and runs
            }
            try:
                made = table_of(self.env, self.env.docname, study, found)
            except BookError as error:  # a typed warning, as of every directive
                warn(error, "settings", self.env.docname)
                made = [nodes.warning("", nodes.paragraph("", str(error)))]
            place.replace_self(made)


def table_of(
    env: BuildEnvironment, docname: str, study: str, found: Mapping[str, list[str]]
) -> list[nodes.Node]:
    """One column a figure, one line a setting."""
    held = {figure: settings_of(env, study, runs) for figure, runs in found.items()}
    labels = [*MAIN, "engine", *{k: None for one in held.values() for k in one}]
    rows: list[list[Cell]] = []
    for label in dict.fromkeys(labels):
        values = [one.get(label, "") for one in held.values()]
        if any(values):
            rows.append([label, *values])
    links: list[Cell] = []
    for figure in held:
        link = figure_link(env, study, figure)
        if isinstance(link, addnodes.pending_xref):
            link["refdoc"] = docname
        links.append(link)
    head: list[Any] = ["Setting", *links]
    return [table(head, rows, (16, *(84 // max(1, len(held)) for _ in held)), "settings")]


def setup(app: Sphinx) -> None:
    """Registers the directive, and keeps what figures note."""
    app.add_node(AllSettings)
    app.add_directive("settings", Settings)
    app.add_post_transform(Fill)
    NOTED.connect(app)
