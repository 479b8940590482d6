"""Numbers and captions of a page's tables, wherever they come from: Markdown, cells, directives.

A table is called by the heading that it stands under, unless its class says what it is. Figures
have their numbers from `fedbook_figures`; both count on their page.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

PLACES = re.compile(
    r"<h[1-6][^>]*>(?P<title>.*?)</h[1-6]>|<table(?P<attributes>[^>]*)>(?P<captioned>\s*<caption)?",
    re.DOTALL,
)
SIGN = re.compile(r'<a class="headerlink".*?</a>', re.DOTALL)
PICTURE = "forest-plot"  # a table in its marks alone
SETTINGS = "figure-settings"
PRINTED = "printed-values"


def with_captions(body: str) -> str:
    """A page whose tables have captions; one that has a caption keeps it."""
    title = ""
    number = 0
    seen = dict[str, int]()

    def captioned(match: re.Match[str]) -> str:
        nonlocal title, number
        if match["title"] is not None:
            title = SIGN.sub("", match["title"]).strip()
            return match[0]
        attributes = match["attributes"]
        if match["captioned"] or PICTURE in attributes:
            return match[0]
        if SETTINGS in attributes:
            return f"{match[0]}<caption>Settings of the runs in this figure</caption>"
        name = "The paper's printed values beside ours" if PRINTED in attributes else title
        number += 1
        seen[name] = seen.get(name, 0) + 1
        suffix = f", part {seen[name]}" if seen[name] > 1 else ""
        return f"{match[0]}<caption><b>Table {number}.</b> {name}{suffix}</caption>"

    return PLACES.sub(captioned, body)


def caption_tables(
    app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Puts the captions into a page before it is written."""
    del app, name, template
    if doctree is not None and "body" in context:
        context["body"] = with_captions(context["body"])


def setup(app: Sphinx) -> None:
    """Registers what runs before a page is written."""
    app.connect("html-page-context", caption_tables)
