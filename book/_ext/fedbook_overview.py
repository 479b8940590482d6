"""The picture of the front page: what each paper promises, its verdicts, its printed numbers."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from fedbook_data import BookError, download_link, files_of
from fedbook_downloads import FIGURES, folded, write_if_changed, written
from fedbook_figures import ThemedFigure
from fedbook_svg import darkened
from sphinx.application import Sphinx

SIZE = (8.2, 4.3)


class Overview(ThemedFigure):
    """``{overview}`` with ``:alt:``, ``:name:`` and the caption as content."""

    required_arguments = 0

    def pictures(self) -> tuple[str, str]:
        """The source-relative addresses of the light and the dark picture."""
        from papers import STUDIES, overview
        from papers.kit import plot

        for study in STUDIES:
            for path in files_of(study):
                self.env.note_dependency(str(path))
        try:
            found = overview.standings()
        except (ValueError, KeyError) as error:
            raise BookError(str(error)) from None
        svg, data = plot.export(lambda fig: overview.draw(fig, found), SIZE)
        self.files = written(self.env, "overview", svg, plot.to_csv(data).encode(), "-light")
        dark = FIGURES / "overview-dark.svg"
        light = self.files["SVG"][0]
        write_if_changed(Path(self.env.srcdir) / dark, darkened(light.read_bytes()))
        return f"/{(FIGURES / light.name).as_posix()}", f"/{dark.as_posix()}"

    def below(self) -> list[nodes.Node]:
        """The picture, its data, and the command that prints the verdicts."""
        line = nodes.paragraph("", "", classes=["figure-downloads"])
        source = Path(self.env.srcdir) / "papers" / "overview.py"
        for label, (path, *_) in {**self.files, "source": [source]}.items():
            line += [download_link(self.env, path, label), nodes.Text(" ")]
        return folded(line, "The verdicts from the stored runs, in the terminal:", "make claims")


def setup(app: Sphinx) -> None:
    """Registers the directive."""
    app.add_directive("overview", Overview)
