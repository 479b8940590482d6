"""What a reader of the built book would stumble over: raw marks, tables without their labels."""

import html
import re

import pytest

from tests.helpers.built_book import HTML, IN_A_BROWSER, NARROW, WIDE, pages

pytestmark = IN_A_BROWSER
PAGES = pages("book/**/*.html", "notebooks/**/*.html")
UNSEEN = re.compile(r"<(script|style|pre|code|dt|title)\b.*?</\1>", re.DOTALL)
MARKS = re.compile(
    r"\$[^$\n]{1,80}\$|(?<![\w*])\*[A-Za-z][^*\n|<>=]{2,80}\w\*(?!\w)|\{\w+\}`|\]\([^)\s]+\)"
)


def marks(page):
    """LaTeX, emphasis, roles and links of a page's text that nobody has rendered."""
    main = page[page.index("<article") : page.index("</article>")]
    return MARKS.findall(html.unescape(re.sub(r"<[^>]*>", "", UNSEEN.sub(" ", main))))


@pytest.mark.parametrize("name", PAGES)
def test_no_page_shows_raw_marks(name):
    assert marks((HTML / name).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("raw", [r"$\lambda_t$", "*A Title*", "{claim}`a/C1`", "[there](a.md)"])
def test_raw_marks_would_be_seen(raw):
    assert marks(f"<article><p>Before <b>x</b> {raw} after.</p></article>")
    assert not marks(f"<article><pre>{raw}</pre> the norm w* and F*</article>")


# Tables that are wider than their column: how many, and what is wrong after they were scrolled.
SCROLLED = """() => {
  const found = [];
  let wide = 0;
  for (const table of document.querySelectorAll("table.dataframe")) {
    const box = table.closest(".text_html"), label = table.querySelector("tbody th");
    if (!label || table.querySelector("tbody th + th") || box.scrollWidth <= box.clientWidth + 1)
      continue;
    wide += 1;
    box.scrollLeft = 120;
    const left = box.getBoundingClientRect().left;
    for (const th of table.querySelectorAll("tbody th")) {
      if (Math.abs(th.getBoundingClientRect().left - left) > 2) found.push(`gone: ${th.innerText}`);
      if (/\\balpha|, 0\\.|transparent/.test(getComputedStyle(th).backgroundColor))
        found.push(`values shine through: ${th.innerText}`);
    }
    for (const td of table.querySelectorAll("tbody td"))
      if (/^rgb\\(/.test(getComputedStyle(td.parentElement).backgroundColor))
        found.push(`no shadow: ${td.innerText}`);
  }
  return [wide, found];
}"""
LOOKED_AT = ["fairness", "cmoo_pairs", "arena"]


@pytest.mark.parametrize("name", LOOKED_AT)
def test_a_wide_table_fits_a_desk_and_keeps_its_labels_while_a_phone_scrolls_it(tab, name):
    page = tab(f"notebooks/{name}.html")
    page.set_viewport_size({**WIDE, "width": 1280})
    assert page.evaluate(SCROLLED) == [0, []]
    page.set_viewport_size(NARROW)
    for theme in ("light", "dark"):
        page.evaluate("(theme) => document.documentElement.dataset.theme = theme", theme)
        wide, faults = page.evaluate(SCROLLED)
        assert wide > 0
        assert faults == []
