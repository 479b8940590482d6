"""The book's Sphinx extension: numbers from stored runs, generated tables, offline mathematics.

Roles ``result`` and ``seeds``, and the roles and directives of the modules beside. Whatever is
missing is a typed warning, so that a build with ``-W`` fails rather than prints an old or an empty
number.
"""

from __future__ import annotations

import gc
import re
import shutil
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import fedbook_api
import fedbook_captions
import fedbook_claims
import fedbook_figures
import fedbook_methods
import fedbook_narrow
import fedbook_previews
import fedbook_repository
import fedbook_search
import fedbook_speed
import fedbook_study
from docutils import nodes
from fedbook_data import BookError, number_of, provenance_of, seeds_of, warn
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.docutils import SphinxRole

if TYPE_CHECKING:
    from papers.kit.numbers import Number

MODULES = (
    fedbook_api,
    fedbook_captions,
    fedbook_claims,
    fedbook_figures,
    fedbook_methods,
    fedbook_narrow,
    fedbook_previews,
    fedbook_repository,
    fedbook_search,
    fedbook_speed,
    fedbook_study,
)
MATHJAX = "vendor/mathjax"
# The combined component, its fonts, and the TeX extensions that it loads when a page needs them.
ICON_NAME = re.compile(r"\bfa-([\w-]+)")
NAMES = re.compile(r"(?:fa-)?([\w-]+)")
#: File of the theme -> an icon in it, whose names are its first group.
ICONS = {
    "scripts/fontawesome.js": re.compile(
        r'("[\w-]+"|\b\w+):\[\d+,\d+,\[[^\]]*\],"\w*",(?:"[^"]*"|\["[^"]*"(?:,"[^"]*")*\])\],?'
    ),
    "styles/pydata-sphinx-theme.css": re.compile(r'((?:,?\.fa-[\w-]+:before)+)\{content:"[^"]*"\}'),
}
MATHJAX_PARTS = (
    "tex-mml-chtml.js",
    "output/chtml/fonts/woff-v2",
    "input/tex/extensions",
    "ui/lazy.js",
)


def with_origin(text: str, title: str) -> nodes.abbreviation:
    """A number in the text, with its interval and origin as title."""
    return nodes.abbreviation(text, text, explanation=title, classes=["result"])


class ResultRole(SphinxRole):
    """``{result}`study/key:.1f` ``: a number of the full profile, formatted as Python formats.

    Of the paper's setting: ``{result}`study@paper/key:.1f` ``.
    """

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """The number, or a typed warning."""
        path, _, spec = self.text.partition(":")
        study, _, key = path.partition("/")
        try:
            number = number_of(self.env, study, key)
            text = format(number.value, spec)
            title = origin(number, provenance_of(self.env, study), spec)
        except (BookError, ValueError) as error:
            warn(error, "result", self.get_location())
            return [nodes.problematic(self.rawtext, self.text)], []
        return [with_origin(text, title)], []


#: A number in a sentence of an executed notebook, which is read everywhere; here it is the role.
WRITTEN = re.compile(r"\[[^\[\]\n]*\]\(result:([^)\s]+)\)")


def read_numbers(app: Sphinx, docname: str, source: list[str]) -> None:
    """Reads the numbers of an executed notebook as the roles that they were written from."""
    if "notebooks/" in docname:
        source[0] = WRITTEN.sub(r"{result}`\1`", source[0])


class SeedsRole(SphinxRole):
    """``{seeds}`study/run` ``: how many seeds a stored run of the full profile has."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """The count, or a typed warning."""
        study, _, run = self.text.partition("/")
        try:
            seeds = seeds_of(self.env, study, run)
        except BookError as error:
            warn(error, "seeds", self.get_location())
            return [nodes.problematic(self.rawtext, self.text)], []
        listed = ", ".join(map(str, seeds))
        title = f"the seeds {listed} of {self.text}"
        return [with_origin(str(len(seeds)), title)], []


def origin(number: Number, provenance: dict[str, object], spec: str) -> str:
    """One line for the title: unit, interval, seeds, commit, device."""
    facts = []
    if number.unit:
        facts.append(number.unit)
    if number.once:
        facts.append("one seed, no interval")
    elif len(number.per_seed) == 1:
        facts.append("the same for all seeds")
    else:
        facts.append(f"95 % interval {number.low:{spec}} to {number.high:{spec}}")
        facts.append(f"{len(number.per_seed)} seeds")
    facts += [f"{key} {provenance[key]}" for key in ("commit", "device") if provenance.get(key)]
    return "; ".join(facts)


#: The first cell of a line of the errata, and such a name in the table of statements.
ERRATUM = re.compile(r"\b[EMYD]\d+\b")


def link_errata(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Makes each line of the errata a target, and its name in the table of statements a link."""
    if app.builder.format != "html":
        return
    if docname == "book/errata":
        for row in doctree.findall(nodes.row):
            name = ERRATUM.match(row[0].astext())  # words in brackets may follow
            if name:
                row["ids"].append(f"erratum-{name[0]}")
    if docname == "book/statements":
        for row in doctree.findall(nodes.row):
            for text in list(row.findall(nodes.Text)):
                if not isinstance(text.parent, nodes.math | nodes.reference):
                    text.parent.replace(text, list(linked(str(text))))


def linked(text: str) -> Iterator[nodes.Node]:
    """A text whose names of errata are links."""
    end = 0
    for match in ERRATUM.finditer(text):
        name = match[0]
        yield nodes.Text(text[end : match.start()])
        yield nodes.reference("", name, refuri=f"errata.html#erratum-{name}", internal=True)
        end = match.end()
    yield nodes.Text(text[end:])


def theme_options(app: Sphinx, config: Config) -> None:
    """Adds to jupyter-book's theme options; setting them in _config.yml would replace them all."""
    config.html_theme_options.setdefault("navbar_persistent", [])  # one search bar, not two
    config.html_theme_options.setdefault("search_as_you_type", True)
    config.html_theme_options["use_download_button"] = False  # it is among a page's own links
    config.html_theme_options["max_navbar_depth"] = 2  # chapters and their pages, no headings
    config.mathjax_path = f"{MATHJAX}/tex-mml-chtml.js"


def formulas_in_sight(app: Sphinx) -> None:
    """Of hundreds of formulas a page sets those that come into sight."""
    if app.builder.name == "html":
        app.config.mathjax3_config["loader"] = {"load": ["ui/lazy"]}
        app.config.mathjax3_config["options"]["lazyMargin"] = "1000px"


def without_thebe(app: Sphinx, config: Config) -> None:
    """Takes out what jupyter-book brings to run cells in the page: its script comes from outside.

    It would name the theme's own repository to Binder, on every page.
    """
    for listeners in app.events.listeners.values():
        listeners[:] = [item for item in listeners if item.handler.__module__ != "sphinx_thebe"]
    styles = app.registry.css_files
    styles[:] = [style for style in styles if "thebe" not in style[0]]


def copy_mathjax(app: Sphinx, error: Exception | None) -> None:
    """Puts MathJax beside the pages, out of an installed package, so that they work offline."""
    if error is not None or app.builder.format != "html":
        return
    # The package's module name has hyphens and cannot be imported.
    files = metadata.files("sphinx-mathjax-offline") or []
    (script,) = (f for f in files if f.match("static/mathjax/tex-mml-chtml.js"))
    source = Path(str(script.locate())).parent
    for name in MATHJAX_PARTS:
        original = source / name
        target = Path(app.outdir) / "_static" / MATHJAX / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if original.is_dir():
            shutil.copytree(original, target, dirs_exist_ok=True)
        else:
            shutil.copy(original, target)


def drop_unused_icons(app: Sphinx, error: Exception | None) -> None:
    """Takes the icons that no page shows out of the theme's files: half of what a page weighed."""
    if error is not None or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    texts = [*Path(app.outdir).rglob("*.html"), *static.glob("scripts/*theme.js")]
    used: set[str] = set()
    for path in texts:
        used.update(ICON_NAME.findall(path.read_text(encoding="utf-8")))

    def if_used(icon: re.Match[str]) -> str:
        return "" if used.isdisjoint(NAMES.findall(icon[1])) else icon[0]

    for name, icon in ICONS.items():
        for path in static.glob(name):
            text = path.read_text(encoding="utf-8")
            path.write_text(icon.sub(if_used, text), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, object]:
    """Registers everything with Sphinx."""
    gc.set_threshold(500_000, 20, 100)  # a book is millions of small objects that live to the end
    app.add_role("result", ResultRole())
    app.add_role("seeds", SeedsRole())
    for module in MODULES:
        module.setup(app)
    app.add_js_file("names.js", loading_method="defer")
    # On a first visit the theme finds no mode stored and would complain on the console.
    app.add_js_file(None, body='document.documentElement.dataset.mode ||= "auto";')
    app.connect("source-read", read_numbers)
    app.connect("config-inited", theme_options)
    app.connect("config-inited", without_thebe)
    app.connect("doctree-resolved", link_errata)
    app.connect("build-finished", copy_mathjax)
    app.connect("build-finished", drop_unused_icons)
    app.connect("builder-inited", formulas_in_sight)
    return {"env_version": 2, "parallel_read_safe": True, "parallel_write_safe": True}
