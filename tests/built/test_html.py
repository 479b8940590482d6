"""The built book, read as files: nothing from outside, no broken link, nothing unfinished."""

import json
import re
from functools import cache
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pandas as pd
import pytest

from papers import all_claims
from papers.kit.plot import COLUMNS
from papers.kit.rules import VERDICTS
from tests.helpers.built_book import HTML, IS_BUILT

pytestmark = IS_BUILT
PAGES = sorted(p for p in HTML.rglob("*.html") if "_static" not in p.parts)
LOADING = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src",
           "video": "src", "audio": "src", "embed": "src", "object": "data"}  # fmt: skip


class Page(HTMLParser):
    """Tags with their attributes, the ids, and the text outside of code and scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.ids = set()
        self.text = []
        self.inside = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        self.ids |= {attributes[key] for key in ("id", "name") if attributes.get(key)}
        if tag in ("script", "style", "pre", "code"):
            self.inside.append(tag)

    def handle_endtag(self, tag):
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data):
        if not self.inside:
            self.text.append(data)


@cache
def page(path):
    return Page(path.read_text(encoding="utf-8"))


def short(path):
    return path.relative_to(HTML).as_posix()


def is_outside(address):
    return bool(urlsplit(address).netloc) or address.startswith("//")


@pytest.mark.parametrize("path", PAGES, ids=short)
def test_page_loads_nothing_from_outside(path):
    outside = []
    for tag, attributes in page(path).tags:
        address = attributes.get(LOADING.get(tag, ""), "")
        is_loaded = tag != "link" or attributes.get("rel") not in ("canonical", "author", "license")
        if is_loaded and is_outside(address):
            outside.append(address)
    assert not outside, (
        f"{path.name} asks the network for {outside}; put the file under book/_static, or let the "
        "extension copy it from an installed package"
    )


def test_styles_load_nothing_from_outside():
    sheets = sorted(HTML.rglob("*.css"))
    assert sheets
    for sheet in sheets:
        text = sheet.read_text(encoding="utf-8", errors="replace")
        addresses = re.findall(r"url\(\s*['\"]?([^'\")\s]+)", text)
        addresses += re.findall(r"@import\s+['\"]([^'\"]+)", text)
        assert not [a for a in addresses if is_outside(a)], sheet


@pytest.mark.parametrize("path", PAGES, ids=short)
def test_internal_links_and_files_exist(path):
    broken = []
    for tag, attributes in page(path).tags:
        addresses = [attributes.get("href"), attributes.get("src")]
        for address in filter(None, addresses):
            is_inside = not urlsplit(address).scheme and not is_outside(address)
            if is_inside and not reaches(path, address):
                broken.append((tag, address))
    assert not broken, (
        f"{path.name} has links that lead nowhere: {broken}; correct their addresses, or put the "
        "page into book/_toc.yml"
    )


def reaches(path, address):
    address_parts = urlsplit(address)
    target = (path.parent / unquote(address_parts.path)).resolve() if address_parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return False
    if address_parts.fragment and target.suffix == ".html":
        return unquote(address_parts.fragment) in page(target).ids
    return True


@pytest.mark.parametrize("path", PAGES, ids=short)
def test_every_picture_has_a_text(path):
    images = [attributes for tag, attributes in page(path).tags if tag == "img"]
    mute = [i.get("src", "")[:80] for i in images if not says_something(i.get("alt") or "")]
    assert not mute, (
        f"{path.name} has pictures without a text: {mute}; say what is to be seen, in :alt: of the "
        "directive, between the brackets of ![...](...), or in alt= of plot.show"
    )


def test_figures_are_one_picture_for_both_themes():
    drawn = []
    for path in PAGES:
        for tag, attributes in page(path).tags:
            if tag == "img" and "fig" in (attributes.get("class") or "").split():
                drawn.append(attributes["src"])
    assert len(drawn) > 60
    without_theme = [address for address in drawn if not address.endswith(".svg")]
    assert len(without_theme) < 5  # films and other pictures that are none of matplotlib's


def says_something(alt):
    """Whether a text is one: without any, the builder puts the name of the file there."""
    return bool(alt.strip()) and not re.search(r"\.(png|svg|jpe?g|gif|webp)$", alt)


#: A figure, or the fold that stands below it.
FIGURE_OR_FILES = re.compile(
    r'<img [^>]*class="fig\b[^>]*>|<details class="figure-files">(.*?)</details>',
    re.DOTALL,
)


@pytest.mark.parametrize("path", PAGES, ids=short)
def test_every_figure_stands_above_its_files_and_commands(path):
    text = re.sub(r'src="data:[^"]*"', "", path.read_text(encoding="utf-8"))
    matches = [m for m in FIGURE_OR_FILES.finditer(text) if "overview.svg" not in m[0]]
    figures = matches[::2]
    folds = matches[1::2]
    assert len(figures) == len(folds)
    for figure, fold in zip(figures, folds, strict=True):
        assert figure[1] is None
        assert re.search(r'alt="[^"]{10,}"', figure[0])
        picture = re.search(r'src="([^"]+\.svg)"', figure[0])
        if picture:
            assert f'href="{picture[1]}"' in fold[1]
        assert "make notebook NAME=" in re.sub(r"<[^>]*>", "", fold[1])


def test_data_of_figures_are_tables():
    stored = {path.name for path in (HTML.parents[1] / "results").glob("*.csv")}
    tables = [*(HTML / "_downloads").rglob("*.csv")]
    of_figures = [path for path in tables if path.name not in {"claims.csv", *stored}]
    assert of_figures
    for path in of_figures:
        data = pd.read_csv(path)
        assert len(data), path
        if tuple(data.columns) == COLUMNS:  # points, read from the picture
            assert data[["x", "y"]].notna().all(axis=None), path
        else:  # the frame that was plotted
            assert data.notna().any().all(), path
            assert data.columns.is_unique, path
            assert data.select_dtypes("number").shape[1], path


def test_previews_belong_to_links_of_the_book():
    text = (HTML / "_static" / "preview-data.js").read_text(encoding="utf-8")
    previews = json.loads(text.removeprefix("window.fedPreviews = ").removesuffix(";\n"))
    assert any("#equation-" in key for key in previews)
    assert any("#claim-" in key for key in previews)
    for key, preview in previews.items():
        name, _, anchor = key.partition("#")
        assert anchor in page(HTML / name).ids, key
        assert "<a " not in preview
        assert " id=" not in preview
        assert preview.count("<div") == preview.count("</div>"), key


@pytest.mark.parametrize("path", PAGES, ids=short)
def test_nothing_is_left_unprocessed(path):
    text = "".join(page(path).text)
    assert "$$" not in text, f"{path.name} shows raw TeX: $$ needs an empty line before and after"
    assert not re.findall(r"</?(?:literal|inline|emphasis|strong|reference)\b", text)
    classes = " ".join(a.get("class") or "" for _, a in page(path).tags).split()
    assert not {"problematic", "system-message"} & set(classes)
    assert not re.findall(r"\{(?:result|claim|cite|numref|eq|ref|prf:ref)[:a-z]*\}`", text)


def test_every_claim_has_a_verdict():
    text = (HTML / "book" / "claims.html").read_text(encoding="utf-8")
    cards = re.findall(
        r'<div class="claim [^>]*id="(claim-[^"]+)">(.*?)<details',
        text,
        flags=re.S,
    )
    assert len(cards) == len(all_claims())
    for name, card in cards:
        shown = re.findall(r'class="badge-fed[^"]*">([^<:]*)', card)
        assert shown, name
        assert {*shown} <= {*VERDICTS}, name  # one for each reading
