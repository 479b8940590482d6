"""Names that a reader types into the search: claims by their number, figures as the papers do.

`FedSGM C3`, `fedsgm/C3` and `C3` lead to the claim's line, `Figure 2` and `FedFW Figure 2` to the
figure on its study's page. Only the search knows these names; the general index is not theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.search import js_index

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


def add_names(app: Sphinx, error: Exception | None) -> None:
    """Puts the names of all places into the search's index, as if an index directive gave them.

    The index is written whole by every build, but Sphinx forgets these entries of pages that it
    does not read again.
    """
    if error is not None or app.builder.name != "html":
        return
    path = Path(app.outdir) / "searchindex.js"
    held = js_index.loads(path.read_text(encoding="utf-8"))
    numbers = {docname: number for number, docname in enumerate(held["docnames"])}
    for docname, anchor in sorted(app.env.get_domain("std").anonlabels.values()):
        for name in names_of(docname, anchor):
            places = held["indexentries"].setdefault(name.lower(), [])
            if (place := [numbers[docname], anchor, True]) not in places:
                places.append(place)
    path.write_text(js_index.dumps(held), encoding="utf-8")


def setup(app: Sphinx) -> None:
    """After the search's index was written."""
    app.connect("build-finished", add_names)
