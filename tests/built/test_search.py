"""The search of the built book, opened from a folder."""

import json
import re
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
    return json.loads(text[text.index("[") : text.rindex("]") + 1])


def test_every_page_of_the_menu_has_records(records):
    found = {record["url"].partition("#")[0] for record in records}
    written = {path.relative_to(HTML).as_posix() for path in HTML.glob("book/**/*.html")}
    assert written - found == set()
    assert all(record["title"] for record in records)
    anchors = re.compile(r'\bid="([^"]+)"')
    for name in ("book/claims.html", "book/notation.html"):
        there = set(anchors.findall((HTML / name).read_text(encoding="utf-8")))
        asked = {r["url"].partition("#")[2] for r in records if r["url"].startswith(f"{name}#")}
        assert asked <= there


def test_code_and_formulas_are_not_searched(records):
    for record in records:
        assert "\\(" not in record["text"]
        assert "from fedlib import" not in record["text"]


def test_an_error_and_a_command_of_the_shell_are_searched(records, screen):
    prose = " ".join(record["text"] for record in records)
    assert "must hold the column" in prose
    found = pages(screen, "ValueError: from_frame: frame must hold the column 'age', got ['year']")
    assert found[0] == "notebooks/tutorial_problem.html"
    assert "book/rerun.html" in pages(screen, "make reproduce NAME=np_workshop")[:3]


def test_bold_words_that_begin_paragraphs_are_headings(records):
    titles = {(r["url"].partition("#")[0], r["title"]) for r in records}
    assert ("book/methods/fedsgm.html", "Sharpness beta") in titles
    assert ("notebooks/tutorial_algorithm.html", "The method overwrites the state") in titles
    whole = [r for r in records if r["url"] == "book/methods/fedsgm.html"]
    assert len(whole) == 1


def test_a_figure_and_a_table_are_called_as_in_their_paper(records, screen):
    assert not any(re.search(r"\bFig\. \d+ \(", record["text"]) for record in records)
    for asked in ("FedSGM Figure 5", "fedsgm fig. 5", "FedSGM fig 5"):
        assert pages(screen, asked)[0] == "notebooks/np_unified.html"
    assert pages(screen, "fedfw tab. 3")[0] == "notebooks/fw_stochastic.html"


@pytest.mark.parametrize(
    ("asked", "same"),
    [
        ("soft switching", "soft swithcing"),  # exchanged letters are two errors: one is a prefix
        ("fairness", "fairnes"),
        ("quantized messages", "quantize message"),
        ("run it on a GPU", "run it on cuda"),
        ("learning rate", "step size"),
        ("errata of the papers", "What are the mistakes in the papers?"),
        ("communication", "comunication"),  # a word that stands for another one
        ("demographic parity", "demgraphic paritiy"),
        ("mini-batch SGD", "minibatch sgd"),
        ("top-k compressor", "top_k compressor"),
        ("bandwidth", "bits"),  # the first is not in the book
    ],
)
def test_a_search_forgives(screen, asked, same):
    first, second = pages(screen, asked), pages(screen, same)
    assert second
    assert len({*first[:3]} & {*second[:5]}) >= 1


def test_words_that_no_page_has_together_find_the_nearest(screen):
    found = pages(screen, "demographic parity zebra")
    assert found
    assert found == pages(screen, "zebra demographic parity")


def test_a_claim_an_erratum_and_a_name_of_the_library_are_found(screen):
    assert results(screen, "FedSGM C3")[0] == "book/claims.html#claim-fedsgm-C3"
    assert results(screen, "fedcmoo/C12")[0] == "book/claims.html#claim-fedcmoo-C12"
    assert results(screen, "erratum Y1")[0] == "book/errata.html#erratum-Y1"
    assert "book/api.html" in pages(screen, "NuclearBall")
    assert results(screen, "fedlib.from_frame(")[0] == "book/api.html#fedlib.problems.from_frame"


def test_a_greek_letter_is_found_by_its_name(screen, records):
    prose = " ".join(record["text"] for record in records)
    assert "Sharpness beta" in prose
    assert "rho and gamma" in prose
    assert "book/methods/fedsgm.html" in pages(screen, "how large should beta be")[:3]
    assert pages(screen, "sharpness β") == pages(screen, "sharpness beta")


def test_a_norm_is_found_as_it_is_typed(screen):
    assert (
        pages(screen, "ℓ1 ball")[:3]
        == pages(screen, "l_1 ball")[:3]
        == pages(screen, "l1 ball")[:3]
    )


def test_a_word_of_a_question_is_looked_for_if_it_stands_alone(screen):
    assert pages(screen, "example")
    assert pages(screen, "example of error feedback") == pages(screen, "error feedback")


def test_a_page_that_is_called_so_comes_first(screen):
    assert results(screen, "FedFW")[0] == "book/methods/fedfw.html"
    assert results(screen, "explain FedCMOO")[0] == "book/methods/fedcmoo.html"


def test_prose_comes_before_the_api(screen):
    found = pages(screen, "which method")
    assert found[0] == "book/methods/index.html"


def test_a_result_shows_the_words_that_were_found(screen):
    results(screen, "demographic parity")
    marked = screen.eval_on_selector_all(f"{ENTRIES} mark", "(all) => all.map((m) => m.innerText)")
    assert {"demographic", "parity"} <= {text.lower().strip(".,;()") for text in marked}


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
