"""Every page of the built book in a browser: nothing clipped, wide and narrow; axe is content.

One load a page; axe looks at the light page as a whole and at the colours
of the dark one.
"""

import gzip
import json
import re
import statistics
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pytest

from tests.helpers.built_book import AXE, HTML, IN_A_BROWSER, NARROW, pages, sampled, url

pytestmark = IN_A_BROWSER
PAGES = pages("book/**/*.html", "notebooks/**/*.html", "search.html", "genindex.html")
LOOKED_AT = sampled(PAGES, 18)

# In the page: what is cut off, and what axe refuses.
CLIPPED = Path(__file__).with_name("clipped.js").read_text(encoding="utf-8")
LETTERS = Path(__file__).with_name("letters.js").read_text(encoding="utf-8")
LEGIBLE = 9  # pixels
VIOLATIONS = """(options) => axe.run(document, {resultTypes: ["violations"], ...options}).then(
  (found) => found.violations.map(({id, nodes}) =>
    `${id}: ${nodes.map((node) => node.target.join(" ")).slice(0, 4).join(" | ")}`))"""


def axe(page, **options):
    return page.evaluate(VIOLATIONS, options)


def small_letters(page):
    """What is written smaller than `LEGIBLE`; powers and indices of figures are not looked at."""
    found = page.evaluate(LETTERS, LEGIBLE)
    small = found["small"]
    for shown, address in found["shown"]:
        if address is None:  # it shows pictures alone
            continue
        svg = Path(unquote(urlsplit(address).path)).read_text(encoding="utf-8")
        natural = float(re.search(r'<svg[^>]* width="([\d.]+)pt"', svg)[1])
        sizes = re.findall(r"<text[^>]*?font(?:-size)?: ?[^;\"]*?([\d.]+)px", svg)
        size = min(map(float, sizes), default=LEGIBLE) * shown / natural
        if sizes and size < LEGIBLE - 0.01:
            small.append(f"{size:.1f} px: {Path(address).name}")
    return small


@pytest.mark.parametrize("name", LOOKED_AT)
def test_nothing_is_clipped_or_tiny_and_axe_finds_nothing(tab, name):
    page = tab(name)
    assert page.evaluate(CLIPPED) == []
    assert small_letters(page) == []
    script = Path(AXE.origin).parent / "axe.min.js"
    page.evaluate(script.read_text(encoding="utf-8"))
    assert axe(page) == []
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert axe(page, runOnly=["color-contrast"]) == []
    page.set_viewport_size(NARROW)
    assert page.evaluate(CLIPPED) == []
    assert small_letters(page) == []


def test_what_is_clipped_and_what_axe_refuses_would_be_seen(tab):
    page = tab("book/index.html")
    page.evaluate(
        """() => document.querySelector("article").insertAdjacentHTML("afterbegin",
        `<p style="width: 3000px">far too wide</p><div style="overflow: hidden; width: 3em">
        <p style="width: 9em">cut off here</p></div><button></button>
        <p style="font-size: 8px">hardly seen</p>`)"""
    )
    assert any("hardly seen" in one for one in small_letters(page))
    page.add_style_tag(content="img.fig { min-width: 0 !important; width: 300px }")
    assert any(".svg" in one for one in small_letters(page))
    found = " ".join(page.evaluate(CLIPPED))
    assert "far too wide" in found
    assert "cut off here" in found
    page.evaluate((Path(AXE.origin).parent / "axe.min.js").read_text(encoding="utf-8"))
    assert any(one.startswith("button-name") for one in axe(page))


@pytest.mark.parametrize("asked", ["paper-f", "claim-partly"])
def test_a_filter_is_in_the_address(tab, asked):
    page = tab("book/claims.html")
    page.click(f'.claims-filter [data-show="{asked}"]')
    left = page.inner_text(".claims-count")
    assert f"show={asked}" in page.evaluate("location.search")
    page.reload()
    page.wait_for_selector(".claims-filter:not([hidden])")
    assert page.inner_text(".claims-count") == left


def test_on_a_phone_a_claim_is_a_card_with_its_verdict_after_its_name(tab):
    page = tab("book/claims.html")
    page.set_viewport_size(NARROW)
    tops = page.evaluate(
        "[...document.querySelector('table.claims tbody tr').cells]"
        ".map((cell) => cell.getBoundingClientRect().top)"
    )
    assert [tops[0], tops[-1]] == sorted(tops)[:2]
    assert len(set(tops)) == len(tops)


@pytest.mark.parametrize("by", ["keyboard", "touch"])
def test_the_origin_of_a_number_needs_no_mouse(tab, by):
    page = tab("book/index.html")
    number = page.locator(".result").first
    if by == "keyboard":
        number.focus()
        page.keyboard.press("Enter")
    else:
        number.dispatch_event("click")
    page.wait_for_selector("#preview:not([hidden])")
    assert "seeds" in page.inner_text("#preview")


def found(page, words):
    """The pages that a search finds, in order."""
    page.goto(url(f"search.html?q={quote(words)}"))
    page.wait_for_selector("#search-results ul li a")
    page.wait_for_function(
        "!document.querySelector('#search-progress')?.textContent.includes('...')"
    )
    links = page.eval_on_selector_all("#search-results ul li a", "(all) => all.map((a) => a.href)")
    return [link.partition("/html/")[2].partition("?")[0] for link in links]


#: What a reader asks for -> the page that answers.
QUERIES = {
    "which method": "book/methods/index",
    "which method should I use": "book/methods/index",
    "rerun": "book/rerun",
    "soft switching violates 4 times less often": "notebooks/np_workshop",
    "soft switching four times": "notebooks/np_workshop",
    "four times fewer violations": "notebooks/np_workshop",
    "FedCMOO Figure 2": "notebooks/cmoo_sweeps",
    "FedCMOO Table 1": "notebooks/cmoo_pairs",
    "FedFW algorithm": "book/methods/fedfw",
    "Frank-Wolfe": "book/fedfw/index",
    "SSCA convergence theorem": "book/statements",
    "SSCA erratum": "book/errata",
    "error feedback": "notebooks/note_compression",
    "fairness": "notebooks/fairness",
    "CIFAR": "notebooks/cmoo_pairs",
    "privacy": "notebooks/note_ssca_privacy",
    "gradient inversion attack": "notebooks/fw_leakage",
    "communication cost bits": "book/methods/index",
    "Neyman-Pearson": "notebooks/np_unified",
    "GPU": "book/rerun",
    "install": "book/rerun",
    "download data": "book/rerun",
    "learning rate": "notebooks/np_workshop",
    "hyperparameters FedSGM": "notebooks/np_unified",
    "non-iid": "notebooks/fw_tables",
    "cite this book": "book/index",
    "compression 50 clients one constraint": "book/methods/index",
}


@pytest.mark.parametrize("words", QUERIES)
def test_the_search_finds_what_a_reader_asks_for(screen, words):
    links = [link.partition("#")[0] for link in found(screen, words)]
    assert f"{QUERIES[words]}.html" in links[:3], links[:8]
    ranks = [link.startswith("book/api") for link in links]
    assert ranks == sorted(ranks)  # the API comes last


@pytest.mark.parametrize(
    ("words", "page", "anchor"),
    [
        ("FedSGM C3", "book/claims.html", "claim-fedsgm-C3"),
        ("fedcmoo/C12", "book/claims.html", "claim-fedcmoo-C12"),
        ("C12", "book/claims.html", "claim-"),
        ("Figure 2", "notebooks/", "_2"),
        ("FedFW Figure 3", "notebooks/fw_rates.html", "figure-fw_rates-figure_3"),
    ],
)
def test_the_search_finds_a_claim_and_a_figure_by_name(screen, words, page, anchor):
    first, _, place = found(screen, words)[0].partition("#")
    assert first.startswith(page)
    assert anchor in place


def test_the_book_is_light():
    """What a page and all that it asks for weigh as a server sends them, compressed."""
    weights, sizes = [], {}
    for name in PAGES:
        text = (HTML / name).read_text(encoding="utf-8")
        weights.append(weight(HTML / name, text, sizes))
    assert statistics.median(weights) < 5e5
    total = sum(p.stat().st_size for p in HTML.rglob("*") if p.is_file())
    assert total < 80e6, json.dumps({p.name: p.stat().st_size for p in HTML.iterdir()})


def weight(path, text, sizes):
    asked = re.findall(r'<(?:script|img)[^>]* src="([^":#]+?)(?:\?[^"]*)?"', text)
    asked += re.findall(r'<link[^>]* href="([^":#]+?\.css)(?:\?[^"]*)?"', text)
    whole = len(gzip.compress(text.encode(), 6))
    for address in set(asked):
        file = (path.parent / address).resolve()
        if file not in sizes and file.is_file():
            sizes[file] = len(gzip.compress(file.read_bytes(), 6))
        whole += sizes.get(file, 0)
    return whole
