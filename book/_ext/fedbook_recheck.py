"""What was recomputed of the stored runs, as the status page tells it."""

from __future__ import annotations

from docutils import nodes
from fedbook_data import (
    BookDirective,
    Cell,
    files_of,
    folder_of,
    is_stored,
    page_link,
    table,
)
from sphinx.application import Sphinx

HEAD = ("Study", "Runs", "Recomputed", "To the end", "Share of rounds", "By nobody yet")
WIDTHS = (16, 8, 11, 11, 14, 40)
FEW = 4  # runs that are named


class Rechecked(BookDirective):
    """``{rechecked}``: of every study, how many stored runs were computed again, and how far."""

    kind = "rechecked"

    def build(self) -> list[nodes.Node]:
        """A sentence, and one line a study."""
        from papers import STUDIES
        from papers.kit import ledger

        self.env.note_dependency(str(ledger.path()))
        found = {}
        for name in STUDIES:
            if is_stored(folder_of(name) / "numbers.json"):
                for path in files_of(name):
                    self.env.note_dependency(str(path))
                found[name] = ledger.of_study(name)
        everything = [one for runs in found.values() for one in runs.values()]
        complete = sum(one.rounds == one.of for one in everything if one is not None)
        text = (
            f"The stored runs, those in the paper's setting included, were "
            f"{ledger.summary(everything)}; {complete} of them to the end."
        )
        rows = [self.row(name, runs) for name, runs in found.items()]
        return [nodes.paragraph(text, text), table(HEAD, rows, WIDTHS, "rechecked")]

    def row(self, study: str, runs: dict[str, object]) -> list[Cell]:
        """The counts of one study, and which runs are left."""
        from papers.kit.ledger import CheckedRun

        done = [one for one in runs.values() if isinstance(one, CheckedRun)]
        left = [name for name, one in runs.items() if one is None]
        share = sum(one.share for one in done) / len(done) if done else 0.0
        more = f" and {len(left) - FEW} more" if len(left) > FEW else ""
        return [
            page_link(self.env, study),
            str(len(runs)),
            str(len(done)),
            str(sum(one.rounds == one.of for one in done)),
            f"{100 * share:.0f} %" if done else "–",
            f"{', '.join(left[:FEW])}{more}" if left else "none",
        ]


def setup(app: Sphinx) -> None:
    """Registers the directive."""
    app.add_directive("rechecked", Rechecked)
