"""What a link shows before it is followed: theorems, equations, claims and terms of the glossary.

After the pages are written, the targets of their links are cut out of them into one file,
`_static/preview-data.js`, which `previews.js` loads when a reader first hovers over such a link.
It is a script and not JSON because a page opened from a folder may not fetch other files.
The search looks at prose alone, not at code and formulas, and learns claims by their number,
figures as the papers name them, and what `index_terms.toml` says that a page is about.
"""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.search import IndexBuilder, js_index

LINK = re.compile(r'<a class="[^"]*\binternal\b[^"]*" href="([^"#]*)#([^"]+)"')
TARGET = re.compile(
    r'<(?P<tag>div|tr|dt)\b[^>]*?\b(?:class="proof [^"]*" id="(?P<proof>[^"]+)"|'
    r'id="(?P<id>(?:equation|claim|term)-[^"]+)")[^>]*>'
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


def element(text: str, start: int, tag: str) -> str:
    """The element that begins at `start`, up to its own closing tag."""
    depth = 0
    for mark in re.compile(rf"<(/?){tag}\b").finditer(text, start):
        depth += -1 if mark[1] else 1
        if not depth:
            return text[start : text.index(">", mark.end()) + 1]
    return text[start:]


def shown(text: str, found: re.Match[str]) -> str:
    """What the preview of a target says, as HTML."""
    whole = element(text, found.start(), found["tag"])
    if found["tag"] == "dt":  # a term, with its explanation
        after = text.index("<dd", found.end())
        whole = f"<dl>{whole}{element(text, after, 'dd')}</dl>"
    for pattern in DROPPED:
        whole = pattern.sub("", whole)
    if found["tag"] == "tr":  # a claim: its name, paper, wording and verdict, a paragraph each
        cells = re.findall(r"<td>(.*?)</td>", whole, flags=re.DOTALL)
        name, wording, _, verdict = (re.findall(r"<p>.*?</p>", c, flags=re.DOTALL) for c in cells)
        whole = "".join([*name[:2], wording[0], verdict[0]])
    return whole


def article(page: Path) -> str:
    """The part of a page that the author wrote."""
    text = page.read_text(encoding="utf-8")
    start = text.find("<article")
    return EMBEDDED.sub("", text[start : text.rfind("</article>")]) if start >= 0 else ""


def snippets(root: Path) -> dict[str, str]:
    """Address from the top of the book -> preview, for every target that some link has."""
    pages = {p.relative_to(root).as_posix(): p for p in sorted(root.rglob("*.html"))}
    wanted: set[str] = set()
    found: dict[str, str] = {}
    for name in [n for n in pages if not n.startswith("_")]:
        text, folder = article(pages[name]), posixpath.dirname(name)
        for path, anchor in LINK.findall(text):
            place = posixpath.normpath(posixpath.join(folder, unquote(path))) if path else name
            wanted.add(f"{place}#{unquote(anchor)}")
        for match in TARGET.finditer(text):
            found[f"{name}#{match['proof'] or match['id']}"] = shown(text, match)
    return {key: found[key] for key in sorted(wanted & found.keys())}


def write(app: Sphinx, error: Exception | None) -> None:
    """Writes the previews beside the pages."""
    if error is None and app.builder.name == "html":
        data = json.dumps(snippets(Path(app.outdir)), ensure_ascii=False, indent=0)
        path = Path(app.outdir) / "_static" / "preview-data.js"
        path.write_text(f"window.fedPreviews = {data};\n", encoding="utf-8")


CLAIM = re.compile(r"claim-(\w+)-(\w+)")
FIGURE = re.compile(r"figure-(\w+)-(figure|table|theorem)_(\d+)")


def names_of(docname: str, anchor: str) -> Iterator[str]:
    """What a place of a page is called, other than by its heading."""
    from papers import STUDIES
    from papers.kit.claims import PAPERS

    if docname == "book/claims" and (found := CLAIM.fullmatch(anchor)):
        paper, number = found.groups()
        yield from (number, f"{paper} {number}", f"{paper}/{number}", f"claim {number}")
    elif (found := FIGURE.fullmatch(anchor)) and found[1] in STUDIES:
        paper = PAPERS.get(STUDIES[found[1]].paper, "").partition(",")[0]
        kind, number = found[2], found[3]
        kinds = [kind, "fig.", "fig"] if kind == "figure" else [kind]
        for name in (f"{kind} {number}" for kind in kinds):
            yield from (name, f"{paper} {name}", f"{found[1]} {name}")


NO_PROSE = (nodes.literal_block, nodes.math, nodes.math_block, nodes.raw)
feed = IndexBuilder.feed


def feed_prose(
    index: IndexBuilder, docname: str, filename: str, title: str, doctree: nodes.document
) -> None:
    """What the search's index takes of a page: no code, no formulas, no pictures as text."""
    prose = doctree.deepcopy()
    for node in [*prose.findall(lambda one: isinstance(one, NO_PROSE))]:
        node.parent.remove(node)
    feed(index, docname, filename, title, prose)


def terms_of(docname: str) -> list[str]:
    """What a page is about, in words that a reader may look for."""
    path = Path(__file__).resolve().parents[1] / "index_terms.toml"
    terms: dict[str, list[str]] = tomllib.loads(path.read_text(encoding="utf-8"))
    return terms.get(docname, [])


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
    places = sorted(app.env.get_domain("std").anonlabels.values())
    names = [(doc, anchor, name) for doc, anchor in places for name in names_of(doc, anchor)]
    names += [(doc, "", name) for doc in numbers for name in terms_of(doc)]
    for docname, anchor, name in names:
        found = held["indexentries"].setdefault(name.lower(), [])
        if (place := [numbers[docname], anchor, True]) not in found:
            found.append(place)
    path.write_text(js_index.dumps(held), encoding="utf-8")


def setup(app: Sphinx) -> None:
    """After everything else is written."""
    IndexBuilder.feed = feed_prose  # type: ignore[method-assign]
    app.add_js_file("previews.js", loading_method="defer")
    app.connect("build-finished", write)
    app.connect("build-finished", add_names)
