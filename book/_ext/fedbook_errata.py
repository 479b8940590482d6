"""One table of all that the papers print differently, read from the pages of the papers."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from fedbook_claims import filter_bar, group
from fedbook_data import BookDirective, BookError, Cell, table
from markdown_it import MarkdownIt
from sphinx import addnodes
from sphinx.application import Sphinx

PAPERS = {"fedsgm": "FedSGM", "fedcmoo": "FedCMOO", "ssca": "SSCA", "fedfw": "FedFW"}
TITLE = "Items that change a constant or the truth"
HEAD = ["no.", "where", "printed", "what holds", "how much it matters", "shown in"]
NUMBER = re.compile(r"[A-Z]\d+")
LINK = re.compile(r"\]\((?!\w+:|#)([^)\s#]+)")  # of a file, beside this one


class Item(NamedTuple):
    """One line of a paper's first table, its cells as Markdown."""

    paper: str
    number: str
    cells: list[str]  # after the number

    @property
    def linked(self) -> list[str]:
        """The files that the last cell links to, as the page writes them."""
        return LINK.findall(self.cells[-1])


def items(paper: str, text: str) -> list[Item]:
    """The items of one page.

    Raises
    ------
    BookError
        for a page without the table, or a table of another form: who, what is required, what there
        is.
    """
    found = first_table(paper, text)
    if found[:1] != [HEAD]:
        have = found[0] if found else "no table"
        raise BookError(
            f"errata of {paper}: the first table must have the head {HEAD}, got {have}."
        )
    made = [Item(paper, row[0], row[1:]) for row in found[1:]]
    for item in made:
        if not NUMBER.fullmatch(item.number) or not item.linked:
            raise BookError(
                f"errata of {paper}: every line must begin with a number such as E1 and end with "
                f"a link to the page that shows it, got {[item.number, item.cells[-1]]}."
            )
    return made


def first_table(paper: str, text: str) -> list[list[str]]:
    """The lines, head first, of the first table under the title."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    inside = False
    rows: list[list[str]] = []
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.type == "inline" and before is not None and before.type == "heading_open":
            inside = token.content.startswith(TITLE)
        elif inside and token.type == "tr_open":
            rows.append([])
        elif inside and rows and token.type == "inline" and before is not None:
            if before.type in ("td_open", "th_open"):
                rows[-1].append(token.content)
        elif rows and token.type == "table_close":
            return rows
    return rows


def moved(text: str, source: Path, target: Path) -> str:
    """`text` with its links to files beside `source` as links from beside `target`."""

    def relative(match: re.Match[str]) -> str:
        path = os.path.relpath(source.parent / match[1], target.parent)
        return f"]({path.replace(os.sep, '/')}"

    return LINK.sub(relative, text)


class AllErrata(BookDirective):
    """``{all-errata}``: the first table of every paper's page in one, with buttons by paper."""

    kind = "all-errata"

    def build(self) -> list[nodes.Node]:
        """Buttons and the table."""
        root, here = Path(self.env.srcdir), Path(self.env.doc2path(self.env.docname))
        done: list[Item] = []
        rows: list[list[Cell]] = []
        for paper in PAPERS:
            source = root / "book" / paper / "errata.md"
            self.env.note_dependency(str(source))
            for item in items(paper, source.read_text(encoding="utf-8")):
                cells = [self.inline(moved(cell, source, here)) for cell in item.cells]
                rows.append([self.first(item), *cells])
                done.append(item)
        head = ("No.", "Where", "Printed", "What holds", "How much it matters", "Shown in")
        result = table(head, rows, (9, 15, 20, 26, 20, 10), "errata")
        for row, item in zip(list(result.findall(nodes.row))[1:], done, strict=True):
            row["ids"].append(f"erratum-{item.number.lower()}")
            row["classes"].append(f"erratum-{item.paper}")
        papers = group("Paper", [(f"erratum-{key}", name) for key, name in PAPERS.items()])
        return [nodes.raw("", filter_bar([papers], len(done), "items"), format="html"), result]

    def first(self, item: Item) -> Cell:
        """The number, and the paper with a link to its page."""
        name = PAPERS[item.paper]
        link = addnodes.pending_xref(
            "", nodes.inline(name, name), refdomain="std", reftype="doc", refexplicit=True,
            refwarn=True, refdoc=self.env.docname, reftarget=f"/book/{item.paper}/errata",
        )  # fmt: skip
        return [
            nodes.paragraph("", "", nodes.strong(item.number, item.number)),
            nodes.paragraph("", "", link),
        ]


def setup(app: Sphinx) -> None:
    """Registers the directive."""
    app.add_directive("all-errata", AllErrata)
