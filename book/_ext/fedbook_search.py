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
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bs4 import BeautifulSoup, Tag
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder

#: What is no prose, or stands in the page for other reasons than to be read.
SKIPPED = (
    "script, style, svg, img, div.highlight:not(:has(.read)), .headerlink, div.math, "
    "div.toctree-wrapper, button, nav, details.hide > summary, .forest-plot td, .figure-files, "
    "details.reproduce > :not(:has(table))"
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
#: Sections that repeat what another place says: a study's claims, and what a note's tests assert.
SORTS = {"verdicts": "claim", "checks": "check"}
SEVERAL = 2  # bold leads that divide a section
#: What a figure or a table is called on its page, and what in the paper.
NUMBERED = re.compile(r"(?:Fig\.|Table) \d+(?: \(the paper's ([^)]*)\))?\.")
PRINTED = re.compile(r"((?:Figure|Table)s? \d[^.]*)\.")
#: A cell of a table without words, such as `0.87 [0.81, 0.92]`.
NUMBERS = re.compile(r"[\W\d_]*")
#: An output of a cell that is the message of an error: it says what must be.
MESSAGE = re.compile(r"\bmust\b|\w+Error: |Diverged: ")
#: A formula that is a single symbol, such as the sharpness beta.
SYMBOL = re.compile(r"\\\((\\?[A-Za-z]+|[A-Za-z]/[A-Za-z])(?:_\w)?\\\)")
NORM = re.compile(r"\\\(\\ell_\{?([12]|\\infty)\}?\\\)")
SPACE = re.compile(r"\s+")
LOOSE = re.compile(r" (?=[,.;:)\]])|(?<=[(\[]) ")


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
    sort : `section`, or one of the words in `SORTS` and `PLACES`.
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
    return LOOSE.sub("", text)  # where a formula or a link begins or ends


def records_of(url: str, html: str, chapter: str) -> Iterator[Record]:
    """The records of a built page."""
    article = BeautifulSoup(html, "html.parser").select_one("article")
    heading = article.select_one("h1") if article else None
    if article is None or heading is None:
        return
    for formula in article.select("span.math"):
        spell(formula)
    for output in article.select(".cell_output pre, .highlight-bash pre"):
        if output.find_parent(class_="highlight-bash") or MESSAGE.search(output.get_text()):
            output["class"] = "read"
    for cell in article.select("td"):
        if NUMBERS.fullmatch(cell.get_text()):
            cell.clear()
    for caption in article.select("figcaption, caption"):
        rename(caption)
    for element in article.select(SKIPPED):
        element.decompose()
    page = words(heading)
    yield from place_records(article, url, page, chapter)
    for section in article.select("section"):
        title = section.find(re.compile("h[1-6]"), recursive=False)
        if not isinstance(title, Tag):
            continue
        anchor = "" if title.name == "h1" else f"#{section.get('id', '')}"
        whole = Record(
            url=f"{url}{anchor}",
            page=page,
            title=words(title),
            trail=" › ".join([chapter, *map(words, headings_above(section))]).strip(" ›"),
            names=" ".join(printed_places(section)),
            text="",
            sort=SORTS.get(str(section.get("id")), "section"),
        )
        yield from parts_of(section, whole)


def headings_above(section: Tag) -> Iterator[Tag]:
    """The headings of the sections around one, from the outermost."""
    for parent in reversed([*section.find_parents("section")]):
        heading = parent.find(re.compile("h[1-6]"), recursive=False)
        if isinstance(heading, Tag):
            yield heading


def parts_of(section: Tag, whole: Record) -> Iterator[Record]:
    """The record of a section without the sections in it.

    Bold words that begin a paragraph serve as a heading. If a section has several of them, each
    paragraph with what follows is a record of its own.
    """
    children = [child for child in section.find_all(recursive=False) if isinstance(child, Tag)]
    prose = [child for child in children if child.name != "section" and not is_heading(child)]
    leads = [child for child in prose if lead(child)]
    is_page = "#" not in whole.url
    if len(leads) < SEVERAL or is_page or whole.sort != "section":
        yield replace(
            whole,
            names=" ".join(filter(None, [*map(lead, leads), whole.names])),
            text=" ".join(filter(None, map(words, prose))),
        )
        return
    part = whole
    texts: list[str] = []
    for child in prose:
        if child in leads:
            yield replace(part, text=" ".join(filter(None, texts)))
            part = replace(
                whole, title=lead(child), trail=f"{whole.trail} › {whole.title}", names=""
            )
            texts = []
        texts.append(words(child))
    yield replace(part, text=" ".join(filter(None, texts)))


def lead(element: Tag) -> str:
    """The bold words that begin a paragraph, or nothing."""
    if element.name != "p":
        return ""
    first = next(element.children, None)
    if not isinstance(first, Tag) or first.name != "strong":
        return ""
    return words(first).strip(" .:,")


def rename(caption: Tag) -> None:
    """Call a figure or a table by its number in the paper, not by that on its page."""
    label = caption.find(string=NUMBERED)
    match = NUMBERED.search(label) if label else None
    if label and match:
        label.replace_with(label.replace(match[0], f"{match[1]}." if match[1] else ""))


def printed_places(section: Tag) -> Iterator[str]:
    """What the captions of a section call its figures and tables, if they are those of a paper."""
    for caption in section.select("figcaption, caption"):
        match = PRINTED.match(words(caption))
        if match and caption.find_parent("section") is section:
            yield match[1]


def spell(formula: Tag) -> None:
    """Replace a formula by dots, a single symbol by its name (`beta`), and a norm by `l1`."""
    text = formula.get_text().strip()
    if match := NORM.fullmatch(text):
        formula.replace_with(f"l{match[1]}")
    elif match := SYMBOL.fullmatch(text):
        formula.replace_with(match[1].removeprefix("\\"))
    else:
        formula.replace_with("…")


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
            anchor = str(element["id"])
            text = " ".join(map(words, elements))
            if sort == "API" and isinstance(explanation, Tag):
                text = words(explanation)
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
        return ".".join(anchor.split(".")[-2:])
    if sort == "term":
        return words(element)
    heading = element.select_one("p.admonition-title") if sort == "statement" else None
    if heading is not None:
        return words(heading)
    if sort == "claim":
        place, sentence = element.find_all("p", limit=2)
        number = words(place).split()[0]
        return f"{number} {first_words(words(sentence))}"
    return first_words(text)


def first_words(text: str) -> str:
    """The beginning of a text, to call it by."""
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


def script(root: Path, chapters: dict[str, str]) -> str:
    """The records of built pages, whose chapters are given by address, as a script."""
    records: list[dict[str, str]] = []
    for url, chapter in chapters.items():
        path = root / url
        if path.is_file():
            records += map(asdict, records_of(url, path.read_text(encoding="utf-8"), chapter))
    data = json.dumps(records, ensure_ascii=False, separators=(",", ":"))
    return f"window.bookRecords = {data};\n"


def write(app: Sphinx, error: Exception | None) -> None:
    """Writes the records, and puts the search in the place of Sphinx's own."""
    if error is not None or app.builder.name != "html":
        return
    root = Path(app.outdir)
    captions = chapters(app)
    urls = {f"{docname}.html": captions.get(docname, "") for docname in sorted(app.env.found_docs)}
    static = root / "_static"
    (static / "search-data.js").write_text(script(root, urls), encoding="utf-8")
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
