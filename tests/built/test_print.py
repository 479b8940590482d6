"""Pages of the built book as they are printed: no controls, nothing wider than the paper."""

import importlib.util

import pytest

from tests.helpers.built_book import IN_A_BROWSER, ROOT, WHOLE, url

SPEC = importlib.util.spec_from_file_location("pdf", ROOT / "book" / "pdf.py")
pytestmark = IN_A_BROWSER
PAGES = (
    "book/claims", "book/methods/index", "book/exercises", "book/methods/fedsgm",
    "notebooks/arena", "notebooks/note_stochastic",
)  # fmt: skip
PAPER = {"width": 680, "height": 1000}  # A4 without its margins (print.css), in pixels

# What is seen of the page that was made ready to be printed.
SEEN = """() => {
  const seen = (what) => [...document.querySelectorAll(what)].filter((e) => e.checkVisibility());
  const say = (e) => `${e.tagName}.${e.className} ${e.textContent.slice(0, 40)}`;
  const content = seen(".bd-content *").filter((e) => !e.closest("svg, mjx-container"));
  const fixed = (e) => {
    const { overflowY, breakInside } = getComputedStyle(e);
    return breakInside.includes("avoid") || !["visible", "clip"].includes(overflowY);
  };
  return {
    controls: seen("button, input, select, .headerlink, .claims-filter").map(say),
    wide: [...content, ...seen(".bd-content mjx-math")]
      .filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map(say),
    whole: content.filter((e) => fixed(e) && e.offsetHeight > innerHeight).map(say),
    code: seen(".cell:not(.tag_parameters) > details.hide").map(say),
  };
}"""


@pytest.fixture(scope="module")
def printed(browser):
    pdf = importlib.util.module_from_spec(SPEC)
    SPEC.loader.exec_module(pdf)
    with browser.new_page(viewport=PAPER) as page:
        page.add_init_script(WHOLE)
        page.emulate_media(media="print")

        def look(name, script=SEEN):
            page.goto(url(f"{name}.html"))
            page.evaluate(pdf.PREPARE)
            return page.evaluate(script)

        yield look


@pytest.mark.parametrize("name", PAGES)
def test_a_page_on_paper(printed, name):
    assert printed(name) == {"controls": [], "wide": [], "whole": [], "code": []}
