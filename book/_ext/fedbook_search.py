"""The book's search: sections of its pages, found by MiniSearch in the reader's browser.

After the pages are written, their sections, claims, errata, statements and terms become records of
`_static/search-data.js`. `search.js` takes the place of Sphinx's `searchtools.js`, which the theme
calls, and loads the records and MiniSearch when a reader first searches. They are scripts and not
JSON because a page opened from a folder may not fetch other files.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup, Tag
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder

#: What is no prose, or stands in the page for other reasons than to be read.
SKIPPED = (
    "script, style, svg, img, pre, div.highlight, .headerlink, .math, div.toctree-wrapper, "
    "button, nav, details.hide > summary, .forest-plot td"
)
#: Places inside a section that are records of their own, and words for what they are.
PLACES = {
    "div[id^=claim-]": "claim",
    "tr[id^=erratum-]": "erratum",
    "div.proof[id]": "statement",
    "dt[id^=term-]": "term",
    "dt.sig[id]": "API",
}
TITLE_WORDS = 14  # that a record without a heading is called by
CLAIM = re.compile(r"claim-(\w+)-(\w+)")
VERDICTS = "verdicts"  # the section of a study that prints its claims again
#: A formula that is a single symbol, such as the sharpness beta.
SYMBOL = re.compile(r"\\\((\\?[A-Za-z]+|[A-Za-z]/[A-Za-z])(?:_\w)?\\\)")
SPACE = re.compile(r"\s+")
LOOSE = re.compile(r" ([,.;:)\]])")


@dataclass(frozen=True)
class Record:
    """A place of the book that the search finds.

    Attributes
    ----------
    url : address from the top of the book, with the place's anchor.
    page, title : the page's heading and the place's own.
    trail : the chapter and the headings above the place.
    names : what the place is called elsewhere, such as a claim by its number.
    text : its prose.
    sort : `section`, or one of the words in `PLACES`.
    """

    url: str
    page: str
    title: str
    trail: str
    names: str
    text: str
    sort: str


def words(element: Tag) -> str:
    """The text of an element, on one line."""
    text = SPACE.sub(" ", element.get_text(" ")).strip()
    return LOOSE.sub(r"\1", text)  # where a formula or a link ended


def records_of(url: str, html: str, chapter: str) -> Iterator[Record]:
    """The records of a built page."""
    article = BeautifulSoup(html, "html.parser").select_one("article")
    heading = article.select_one("h1") if article else None
    if article is None or heading is None:
        return
    for formula in article.select("span.math"):
        spell(formula)
    for element in article.select(SKIPPED):
        element.decompose()
    page = words(heading)
    yield from place_records(article, url, page, chapter)
    for section in article.select("section"):
        title = section.find(re.compile("h[1-6]"), recursive=False)
        if not isinstance(title, Tag):
            continue
        above = [words(h) for h in headings_above(section)]
        anchor = "" if title.name == "h1" else f"#{section.get('id', '')}"
        yield Record(
            url=f"{url}{anchor}",
            page=page,
            title=words(title),
            trail=" › ".join([chapter, *above]).strip(" ›"),
            names=lead_words(section),
            text=own_text(section),
            sort="claim" if section.get("id") == VERDICTS else "section",
        )


def headings_above(section: Tag) -> Iterator[Tag]:
    """The headings of the sections around one, from the outermost."""
    for parent in reversed([*section.find_parents("section")]):
        heading = parent.find(re.compile("h[1-6]"), recursive=False)
        if isinstance(heading, Tag):
            yield heading


def own_text(section: Tag) -> str:
    """The prose of a section without its heading and the sections in it."""
    children = [child for child in section.find_all(recursive=False) if isinstance(child, Tag)]
    prose = [child for child in children if child.name != "section" and not is_heading(child)]
    return " ".join(filter(None, map(words, prose)))


def lead_words(section: Tag) -> str:
    """The bold words that begin paragraphs of a section, which serve as headings."""
    leads = []
    for paragraph in section.find_all("p", recursive=False):
        first = next(paragraph.children, None)
        if isinstance(first, Tag) and first.name == "strong":
            leads.append(words(first))
    return " ".join(leads)


def spell(formula: Tag) -> None:
    """Replace a formula that is a single symbol by its name, such as `beta`."""
    match = SYMBOL.fullmatch(formula.get_text().strip())
    if match:
        formula.replace_with(match[1].removeprefix("\\"))


def is_heading(element: Tag) -> bool:
    """Whether an element is a heading."""
    return re.fullmatch("h[1-6]", element.name) is not None


def place_records(article: Tag, url: str, page: str, chapter: str) -> Iterator[Record]:
    """Records of claims, errata, statements and terms, which are then taken out of the page."""
    taken: list[Tag] = []
    for selector, sort in PLACES.items():
        for element in article.select(selector):
            elements = [element]
            explanation = element.find_next_sibling("dd") if element.name == "dt" else None
            if isinstance(explanation, Tag):
                elements.append(explanation)
            text = " ".join(map(words, elements))
            anchor = str(element["id"])
            yield Record(
                url=f"{url}#{anchor}",
                page=page,
                title=place_title(element, text, sort),
                trail=chapter,
                names=place_names(anchor),
                text=text,
                sort=sort,
            )
            if sort != "statement":  # a statement is also part of what its section says
                taken += elements
    for element in taken:
        element.decompose()


def place_title(element: Tag, text: str, sort: str) -> str:
    """What a record is called: its name, or the first words of its text."""
    anchor = str(element["id"])
    if sort == "API":
        return anchor.removeprefix("fedlib.")
    if sort == "term":
        return words(element)
    heading = element.select_one("p.admonition-title") if sort == "statement" else None
    if heading is not None:
        return words(heading)
    return " ".join(text.split()[:TITLE_WORDS])


def place_names(anchor: str) -> str:
    """What a claim or an erratum is called by its number."""
    if match := CLAIM.fullmatch(anchor):
        paper, number = match.groups()
        return f"{paper} {number} claim {number}"
    return anchor.replace("erratum-", "erratum ").replace("-", " ")


def chapters(app: Sphinx) -> dict[str, str]:
    """The caption of the menu's part in which each page stands."""
    toctrees = app.env.tocs[app.config.root_doc]
    captions: dict[str, str] = {}
    for node in toctrees.findall(lambda node: node.tagname == "toctree"):
        for _, docname in node["entries"]:
            for name in (docname, *below(app, docname)):
                captions[name] = node.get("caption") or ""
    return captions


def below(app: Sphinx, docname: str) -> Iterator[str]:
    """All pages below one in the menu."""
    for name in app.env.toctree_includes.get(docname, ()):
        yield name
        yield from below(app, name)


def write(app: Sphinx, error: Exception | None) -> None:
    """Writes the records, and puts the search in the place of Sphinx's own."""
    if error is not None or app.builder.name != "html":
        return
    root = Path(app.outdir)
    captions = chapters(app)
    records: list[dict[str, Any]] = []
    for docname in sorted(app.env.found_docs):
        path = root / f"{docname}.html"
        if path.is_file():
            html = path.read_text(encoding="utf-8")
            chapter = captions.get(docname, "")
            records += map(asdict, records_of(f"{docname}.html", html, chapter))
    data = json.dumps(records, ensure_ascii=False, separators=(",", ":"))
    static = root / "_static"
    (static / "search-data.js").write_text(f"window.bookRecords = {data};\n", encoding="utf-8")
    shutil.copy(static / "search.js", static / "searchtools.js")
    # the theme's pages name this file; Sphinx's index of words is not needed
    (root / "searchindex.js").write_text("", encoding="utf-8")


def read_no_index(app: Sphinx) -> None:
    """Let Sphinx read no index of an earlier build, which `write` has emptied: it would warn."""
    if isinstance(app.builder, StandaloneHTMLBuilder):
        app.builder.load_indexer = ignore  # type: ignore[method-assign]


def ignore(_docnames: Iterable[str]) -> None:
    """Do nothing with the pages that are to be built."""


def setup(app: Sphinx) -> None:
    """After everything else is written."""
    app.connect("builder-inited", read_no_index)
    app.connect("build-finished", write)
