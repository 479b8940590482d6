"""How often the book's intervals hold the true value."""

from __future__ import annotations

from docutils import nodes
from fedbook_data import BookDirective, table
from sphinx.application import Sphinx


class CoverageTable(BookDirective):
    """``{coverage-table}``: simulated coverage by kind of number, distribution and seeds."""

    kind = "coverage-table"

    def build(self) -> list[nodes.Node]:
        """One line a kind and distribution, in percent."""
        from papers.kit import coverage

        rows = [
            [kind, of, *(f"{100 * x:.1f}" for x in found)] for kind, of, found in coverage.table()
        ]
        head = ["Number", "Values of the seeds", *(f"{n} seeds" for n in coverage.SEEDS)]
        return [table(head, rows, (28, 24, 12, 12, 12, 12), "coverage")]


def setup(app: Sphinx) -> None:
    """Registers the directive."""
    app.add_directive("coverage-table", CoverageTable)
