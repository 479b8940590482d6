"""What a link shows before it is followed: theorems, equations, claims, terms, errata, citations.

After the pages are written, the targets of their links are cut out of them into one file,
`_static/preview-data.js`, which `previews.js` loads when a reader first hovers over such a link.
It is a script and not JSON because a page opened from a folder may not fetch other files.
"""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from urllib.parse import unquote

from sphinx.application import Sphinx

LINK = re.compile(r'<a class="[^"]*\binternal\b[^"]*" href="([^"#]*)#([^"]+)"')
TARGET = re.compile(
    r'<(?P<tag>div|dt|tr)\b[^>]*?\b(?:class="(?:proof [^"]*|citation)" id="(?P<named>[^"]+)"|'
    r'id="(?P<id>(?:equation|claim|term|erratum)-[^"]+)")[^>]*>'
)
EMBEDDED = re.compile(r'src="data:[^"]*"')
#: Left out of a preview: marks of the page itself, what is folded away, and other links' frames.
DROPPED = (
    re.compile(r'<a class="headerlink".*?</a>', re.DOTALL),
    re.compile(r"<details.*?</details>", re.DOTALL),
    re.compile(r"</?a\b[^>]*>"),
    re.compile(r'\s(?:id|title|name)="[^"]*"'),
    re.compile(r"\\label\{[^}]*\}"),
)


#: Cells of a claim's plot that only a click shows: condition, seeds, control.
HIDDEN_CELLS = re.compile(r"(?:<td>[^<]*){3}</tr>")


def element(text: str, start: int, tag: str) -> str:
    """The element that begins at `start`, up to its own closing tag."""
    depth = 0
    for mark in re.compile(rf"<(/?){tag}\b").finditer(text, start):
        depth += -1 if mark[1] else 1
        if not depth:
            return text[start : text.index(">", mark.end()) + 1]
    return text[start:]


def shown(text: str, target: re.Match[str]) -> str:
    """What the preview of a target says, as HTML."""
    html = element(text, target.start(), target["tag"])
    if target["tag"] == "dt":  # a term, with its explanation
        start = text.index("<dd", target.end())
        html = f"<dl>{html}{element(text, start, 'dd')}</dl>"
    if target["tag"] == "tr":  # a line of a table
        html = f"<table>{html}</table>"
    for pattern in DROPPED:
        html = pattern.sub("", html)
    return HIDDEN_CELLS.sub("</tr>", html)


def article(page: Path) -> str:
    """The part of a page that the author wrote."""
    text = page.read_text(encoding="utf-8")
    start = text.find("<article")
    if start < 0:
        return ""
    end = text.rfind("</article>")
    return EMBEDDED.sub("", text[start:end])


def snippets(root: Path) -> dict[str, str]:
    """Address from the top of the book -> preview, for every target that some link has."""
    linked: set[str] = set()
    previews: dict[str, str] = {}
    for page in sorted(root.rglob("*.html")):
        name = page.relative_to(root).as_posix()
        if name.startswith("_"):
            continue
        text = article(page)
        for path, anchor in LINK.findall(text):
            address = name
            if path:
                joined = posixpath.join(posixpath.dirname(name), unquote(path))
                address = posixpath.normpath(joined)
            linked.add(f"{address}#{unquote(anchor)}")
        for target in TARGET.finditer(text):
            anchor = target["named"] or target["id"]
            previews[f"{name}#{anchor}"] = shown(text, target)
    return {address: previews[address] for address in sorted(linked & previews.keys())}


def write(app: Sphinx, error: Exception | None) -> None:
    """Writes the previews beside the pages."""
    if error is None and app.builder.name == "html":
        data = json.dumps(snippets(Path(app.outdir)), ensure_ascii=False, indent=0)
        path = Path(app.outdir) / "_static" / "preview-data.js"
        path.write_text(f"window.fedPreviews = {data};\n", encoding="utf-8")


def setup(app: Sphinx) -> None:
    """After everything else is written."""
    app.add_js_file("previews.js", loading_method="defer")
    app.connect("build-finished", write)
