"""Names that a reader types into the search: claims by their number, figures as the papers do.

`FedSGM C3`, `fedsgm/C3` and `C3` lead to the claim's line, `Figure 2` and `FedFW Figure 2` to the
figure on its study's page. Only the search knows these names; the general index is not theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

CLAIMS = "book/claims"
CLAIM = re.compile(r"claim-(\w+)-(\w+)")
FIGURE = re.compile(r"figure-(\w+)-(figure|table|theorem)_(\d+)")


def names_of(docname: str, anchor: str) -> Iterator[str]:
    """What a place of a page is called, other than by its heading."""
    from papers import STUDIES
    from papers.kit.claims import PAPERS

    if docname == CLAIMS and (found := CLAIM.fullmatch(anchor)):
        paper, number = found.groups()
        yield from (number, f"{paper} {number}", f"{paper}/{number}", f"claim {number}")
    elif (found := FIGURE.fullmatch(anchor)) and found[1] in STUDIES:
        paper = PAPERS.get(STUDIES[found[1]].paper, "").partition(",")[0]
        kind, number = found[2], found[3]
        kinds = [kind, "fig.", "fig"] if kind == "figure" else [kind]
        for name in (f"{kind} {number}" for kind in kinds):
            yield from (name, f"{paper} {name}", f"{found[1]} {name}")


def add_names(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Puts the names into a page that is about to be written, where the search index sees them."""
    if app.builder.name != "html":
        return
    entries = [
        ("single", name, anchor, "main", None)
        for node in doctree.findall(nodes.Element)
        for anchor in node.get("ids", ())
        for name in names_of(docname, anchor)
    ]
    if entries:
        doctree += addnodes.index(entries=entries)


def setup(app: Sphinx) -> None:
    """After the general index was made, before the search's."""
    app.connect("doctree-resolved", add_names)
