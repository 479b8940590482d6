"""One numbered figure, drawn twice: for light and for dark pages."""

from __future__ import annotations

import inspect
from functools import partial
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from fedbook_data import BookError, files_of, study_of, warn
from fedbook_downloads import FIGURES, exported, fold, traces_of, write_if_changed
from fedbook_svg import darkened
from sphinx.application import Sphinx
from sphinx.directives.patches import Figure
from sphinx.util.docutils import SphinxDirective


def functions(figure: Any) -> list[Any]:
    """The functions that a figure is made of: itself, or those within a `functools.partial`."""
    if not isinstance(figure, partial):
        return [figure]
    within = [x for x in (figure.func, *figure.args) if callable(x)]
    return [found for x in within for found in functions(x)]


class ThemedFigure(SphinxDirective):
    """``{themed-figure} STUDY/FIGURE`` with ``:alt:``, ``:name:`` and the caption as content."""

    required_arguments = 1
    has_content = True
    option_spec = {  # noqa: RUF012 - docutils reads it from the class
        "alt": directives.unchanged_required,
        "name": directives.unchanged_required,
        "width": directives.length_or_percentage_or_unitless,
    }

    def run(self) -> list[nodes.Node]:
        """Draws both pictures and puts them under one caption."""
        try:
            light, dark = self.pictures()
        except BookError as error:
            warn(error, "themed-figure", self.get_location())
            return [nodes.warning("", nodes.paragraph("", str(error)))]
        options = {**self.options, "class": ["fig-light", "dark-light"], "align": "center"}
        made = Figure(
            "figure", [light], options, self.content, self.lineno, self.content_offset,
            self.block_text, self.state, self.state_machine,
        ).run()  # fmt: skip
        (image,) = made[0].findall(nodes.image)
        twin = image.deepcopy()
        twin["uri"], twin["classes"] = dark, ["fig-dark", "dark-light"]
        image.parent.insert(image.parent.index(image) + 1, twin)
        return [*made, *self.below()]

    def below(self) -> list[nodes.Node]:
        """The files and commands under the figure."""
        name, _, figure = self.arguments[0].partition("/")
        return fold(self.env, name, self.files, figure)

    def pictures(self) -> tuple[str, str]:
        """The source-relative addresses of the light and the dark picture."""
        from papers.kit import plot

        name, _, figure = self.arguments[0].partition("/")
        study = study_of(name)
        if figure not in study.figures:
            known = ", ".join(study.figures)
            raise BookError(f"{name} has no figure {figure!r}; known figures: {known}.")
        if not self.options.get("alt"):
            raise BookError(f"{name}/{figure}: a figure needs :alt:, a text that replaces it.")
        code = {inspect.getsourcefile(item) for item in (*functions(study.figures[figure]), plot)}
        for path in [*files_of(name), *code]:
            self.env.note_dependency(str(path))
        traces = traces_of(study)
        self.files = exported(self.env, study, figure, traces, suffix="-light")
        dark = FIGURES / f"{name}-{figure}-dark.svg"
        light = self.files["SVG"][0]
        write_if_changed(Path(self.env.srcdir) / dark, darkened(light.read_bytes()))
        return f"/{(FIGURES / light.name).as_posix()}", f"/{dark.as_posix()}"


def setup(app: Sphinx) -> None:
    """Registers the directive."""
    app.add_directive("themed-figure", ThemedFigure)
