"""The search of the built book, opened from a folder."""

import json
from urllib.parse import quote

import pytest

from tests.helpers.built_book import HTML, IN_A_BROWSER, url

pytestmark = IN_A_BROWSER
ENTRIES = "#search-results ol.search > li"


def results(page, words):
    """The addresses that a search finds, one a page, the nearest first."""
    page.goto(url(f"search.html?q={quote(words)}"))
    page.wait_for_selector("#search-results .search-summary")
    links = page.eval_on_selector_all(f"{ENTRIES} > a", "(all) => all.map((a) => a.href)")
    return [link.partition("/html/")[2] for link in links]


def pages(page, words):
    return [address.partition("#")[0] for address in results(page, words)]


@pytest.fixture(scope="module")
def records():
    text = (HTML / "_static" / "search-data.js").read_text(encoding="utf-8")
    array = text[text.index("[") : text.rindex("]") + 1]
    return json.loads(array)


def test_every_page_of_the_menu_has_records(records):
    recorded = {record["url"].partition("#")[0] for record in records}
    pages_of_book = {path.relative_to(HTML).as_posix() for path in HTML.glob("book/**/*.html")}
    assert pages_of_book <= recorded
    assert all(record["title"] for record in records)


@pytest.mark.parametrize("name", ["book/claims.html", "book/notation.html"])
def test_records_lead_to_places_of_a_page(records, name):
    page = (HTML / name).read_text(encoding="utf-8")
    for record in records:
        file, _, anchor = record["url"].partition("#")
        if file == name and anchor:
            assert f'id="{anchor}"' in page


def test_code_and_formulas_are_not_searched(records):
    for record in records:
        assert "\\(" not in record["text"]
        assert "from fedlib import" not in record["text"]


def test_bold_words_that_begin_paragraphs_are_headings(records):
    titles = {(record["url"].partition("#")[0], record["title"]) for record in records}
    assert ("book/methods/fedsgm.html", "Sharpness beta") in titles
    assert ("notebooks/tutorial_algorithm.html", "The method overwrites the state") in titles


@pytest.mark.parametrize(
    ("query", "misspelt"),
    [
        ("soft switching", "soft swithcing"),  # exchanged letters are two errors: one is a prefix
        ("fairness", "fairnes"),
        ("quantized messages", "quantize message"),
        ("run it on a GPU", "run it on cuda"),
        ("errata of the papers", "What are the mistakes in the papers?"),
        ("demographic parity", "demgraphic paritiy"),
        ("mini-batch SGD", "minibatch sgd"),
        ("bandwidth", "bits"),  # the first is not in the book
        ("sharpness β", "sharpness beta"),
        ("ℓ1 ball", "l_1 ball"),
    ],
)
def test_a_search_forgives(screen, query, misspelt):
    usual = pages(screen, query)
    forgiven = pages(screen, misspelt)
    assert {*usual[:3]} & {*forgiven[:5]}


@pytest.mark.parametrize(
    ("query", "address"),
    [
        ("FedSGM C3", "book/claims.html#claim-fedsgm-C3"),
        ("erratum Y1", "book/errata.html#erratum-Y1"),
        ("fedlib.from_frame(", "book/api.html#fedlib.problems.from_frame"),
    ],
)
def test_a_claim_an_erratum_and_a_name_of_the_library_are_found(screen, query, address):
    assert address in results(screen, query)[:3]


def test_a_result_shows_the_words_that_were_found(screen):
    results(screen, "demographic parity")
    marked = screen.eval_on_selector_all(f"{ENTRIES} mark", "(all) => all.map((m) => m.innerText)")
    words = {text.lower().strip(".,;()") for text in marked}
    assert {"demographic", "parity"} <= words


def test_nothing_found_says_so(screen):
    assert results(screen, "zzzzqqqq") == []
    assert "Nothing in the book resembles" in screen.inner_text("#search-results")


def test_a_search_on_a_page_leads_there_from_a_folder_below(screen):
    screen.goto(url("notebooks/np_unified.html"))
    screen.keyboard.press("Control+k")
    screen.keyboard.type("error feedback")
    screen.wait_for_selector(f"{ENTRIES} > a")
    address = screen.get_attribute(f"{ENTRIES} > a >> nth=0", "href")
    assert address.startswith("../")
    screen.click(f"{ENTRIES} > a >> nth=0")
    screen.wait_for_load_state("load")
    assert "error feedback" in screen.inner_text("article").lower()
