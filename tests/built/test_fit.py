"""Every page of the built book in a browser: nothing clipped, wide and narrow; axe is content.

One load a page; axe looks at the light page as a whole and at the colours
of the dark one.
"""

from pathlib import Path

import pytest

from tests.helpers.built_book import AXE, HTML, IN_A_BROWSER, NARROW, WIDE, pages, sampled

pytestmark = IN_A_BROWSER
PAGES = pages("book/**/*.html", "notebooks/**/*.html", "search.html", "genindex.html")
LOOKED_AT = sampled(PAGES, 18)

# In the page: what is cut off, and what axe refuses.
CLIPPED = Path(__file__).with_name("clipped.js").read_text(encoding="utf-8")
VIOLATIONS = """(options) => axe.run(document, {resultTypes: ["violations"], ...options}).then(
  (found) => found.violations.map(({id, nodes}) =>
    `${id}: ${nodes.map((node) => node.target.join(" ")).slice(0, 4).join(" | ")}`))"""


def axe(page, **options):
    return page.evaluate(VIOLATIONS, options)


@pytest.mark.parametrize("name", LOOKED_AT)
def test_nothing_is_clipped_and_axe_finds_nothing(tab, name):
    page = tab(name)
    assert page.evaluate(CLIPPED) == []
    script = Path(AXE.origin).parent / "axe.min.js"
    page.evaluate(script.read_text(encoding="utf-8"))
    assert axe(page) == []
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert axe(page, runOnly=["color-contrast"]) == []
    page.set_viewport_size(NARROW)
    assert page.evaluate(CLIPPED) == []
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    assert axe(page) == []


def test_what_is_clipped_and_what_axe_refuses_would_be_seen(tab):
    page = tab("book/index.html")
    page.evaluate(
        """() => document.querySelector("article").insertAdjacentHTML("afterbegin",
        `<p style="width: 3000px">far too wide</p><div style="overflow: hidden; width: 3em">
        <p style="width: 9em">cut off here</p></div><button></button>`)"""
    )
    clipped = " ".join(page.evaluate(CLIPPED))
    assert "far too wide" in clipped
    assert "cut off here" in clipped
    page.evaluate((Path(AXE.origin).parent / "axe.min.js").read_text(encoding="utf-8"))
    assert any(violation.startswith("button-name") for violation in axe(page))


@pytest.mark.parametrize("choice", ["paper-f", "claim-mixed"])
def test_a_filter_is_in_the_address(tab, choice):
    page = tab("book/claims.html")
    page.click(f'.claims-filter [data-show="{choice}"]')
    left = page.inner_text(".claims-count")
    assert f"show={choice}" in page.evaluate("location.search")
    page.reload()
    page.wait_for_selector(".claims-filter:not([hidden])")
    assert page.inner_text(".claims-count") == left


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_plot_of_a_part_is_wide_and_a_click_shows_its_condition(tab, size):
    page = tab("book/claims.html")
    page.set_viewport_size(size)
    if size == NARROW:
        page.click("#claim-fedsgm-C5 .claim-opener")
    row = page.locator("#claim-fedsgm-C5 .forest-plot tr:not(.p, .x)").first
    words = row.locator("th").first.bounding_box()
    picture = row.locator("svg").first.bounding_box()
    condition = row.locator("td:nth-child(4)").first
    assert picture["width"] > 120
    is_below = words["y"] + words["height"] <= picture["y"] + 2
    assert is_below == (size == NARROW)
    assert not condition.is_visible()
    page.locator("#claim-fedsgm-C5 .forest summary").first.click()
    assert condition.is_visible()


LINES = """() => [...document.querySelectorAll(".claims > .claim")]
  .map((claim) => claim.getBoundingClientRect().height)"""


def test_on_a_phone_a_claim_is_a_line_that_opens(tab):
    page = tab("book/claims.html")
    page.set_viewport_size(NARROW)
    lines = page.evaluate(LINES)
    assert max(lines) < 100  # its number and verdict, and two lines of its sentence
    assert page.evaluate("document.documentElement.scrollHeight") < 20_000
    claim = page.locator(".claims > .claim").nth(2)
    opener = claim.locator(".claim-opener")
    assert opener.get_attribute("aria-expanded") == "false"
    opener.focus()
    page.keyboard.press("Enter")
    assert opener.get_attribute("aria-expanded") == "true"
    assert claim.bounding_box()["height"] > 100
    page.evaluate("location.hash = document.querySelectorAll('.claim')[5].id")
    page.wait_for_function("!document.querySelectorAll('.claim')[5].matches('.is-folded')")


@pytest.mark.parametrize("by", ["keyboard", "touch"])
def test_the_origin_of_a_number_needs_no_mouse(tab, by):
    page = tab("book/index.html")
    number = page.locator(".result:visible").first
    if by == "keyboard":
        number.focus()
        page.keyboard.press("Enter")
    else:
        number.dispatch_event("click")
    page.wait_for_selector("#preview:not([hidden])")
    assert "seeds" in page.inner_text("#preview")


def test_the_book_is_light():
    sizes = [path.stat().st_size for path in HTML.rglob("*") if path.is_file()]
    assert sum(sizes) < 80e6
