"""The picture of the front page: what each paper promises, its verdicts, its printed numbers."""

from __future__ import annotations

from pathlib import Path

from fedbook_data import BookError, folder_of
from fedbook_figures import THEMES, ThemedFigure, write_if_changed
from sphinx.application import Sphinx

SIZE = (9.6, 4.4)


class Overview(ThemedFigure):
    """``{overview}`` with ``:alt:``, ``:name:`` and the caption as content."""

    required_arguments = 0

    def pictures(self) -> tuple[str, str]:
        """The source-relative addresses of the light and the dark picture."""
        from fedlib import plot
        from fedlib.studies import STUDIES, overview

        for study in STUDIES:
            self.env.note_dependency(str(folder_of(study) / "numbers.json"))
        try:
            found = overview.standings()
        except (ValueError, KeyError) as error:
            raise BookError(str(error)) from None
        addresses = []
        for theme in THEMES:
            path = Path("_build", "figures", f"overview-{theme}.svg")
            picture = plot.render(lambda fig: overview.draw(fig, found), theme, "svg", SIZE)
            write_if_changed(Path(self.env.srcdir) / path, picture)
            addresses.append(f"/{path.as_posix()}")
        return addresses[0], addresses[1]


def setup(app: Sphinx) -> None:
    """Registers the directive."""
    app.add_directive("overview", Overview)
