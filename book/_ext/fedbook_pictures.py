"""The pictures that notebooks carry within their outputs, as files beside the pages.

A page is then half as heavy, and a browser fetches only those that are seen, in the theme that is
chosen. Other builders leave them where they are. The formulas of their captions are set, by all.
"""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

WITHIN = re.compile(r'src="data:image/png;base64,([^"]+)"')
CAPTION = re.compile(r"<figcaption>.*?</figcaption>", re.DOTALL)
FORMULA = re.compile(r"\$([^$\n]+)\$")
SIZE = slice(16, 24)  # of a PNG: width and height, four bytes each


def set_formulas(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Marks LaTeX in the captions of a page's figures as Sphinx does in its text."""

    def mark(caption: re.Match[str]) -> str:
        found = r'<span class="math notranslate nohighlight">\\(\1\\)</span>'
        return FORMULA.sub(found, caption[0])

    for node in doctree.findall(nodes.raw):
        if node.get("format") == "html" and "fed-figure" in node.astext():
            node[0] = nodes.Text(CAPTION.sub(mark, node.astext()))


def take_out(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Writes the pictures of a page's figures, and puts their addresses into the page."""
    if app.builder.name != "html" or app.config.fedbook_view:
        return
    folder = Path(app.outdir) / "_images"
    top = "../" * docname.count("/")

    def address(found: re.Match[str]) -> str:
        content = base64.b64decode(found[1])
        name = f"{hashlib.sha256(content).hexdigest()[:16]}.png"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        width, height = (int.from_bytes(content[SIZE][i : i + 4], "big") for i in (0, 4))
        return f'loading="lazy" width="{width}" height="{height}" src="{top}_images/{name}"'

    for node in doctree.findall(nodes.raw):
        text = node.astext()
        if node.get("format") == "html" and "fed-figure" in text:
            node[0] = nodes.Text(WITHIN.sub(address, text))


def setup(app: Sphinx) -> None:
    """When a page is about to be written, for the builder that is at work."""
    app.connect("doctree-resolved", set_formulas)
    app.connect("doctree-resolved", take_out)
