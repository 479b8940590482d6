"""On the page of every study the first figure stands on the first two screens of a laptop."""

import pytest

from papers import STUDIES
from tests.helpers.built_book import HTML, IN_A_BROWSER

pytestmark = IN_A_BROWSER
LAPTOP = {"width": 1280, "height": 800}
LOWEST = 1800  # pixels from the top of the page
FIGURE = "fed-figure"  # its class


def has_figure(name):
    page = HTML / "notebooks" / f"{name}.html"
    return page.is_file() and FIGURE in page.read_text(encoding="utf-8")


WITH_FIGURES = list(filter(has_figure, STUDIES))
TOPS = """() => [...document.querySelectorAll("article figure img")]
  .filter((picture) => picture.getClientRects().length)
  .map((picture) => picture.getBoundingClientRect().top + scrollY)"""


def tops_of(tab, name):
    """How far below the top of a page its pictures begin."""
    page = tab(f"notebooks/{name}.html")
    page.set_viewport_size(LAPTOP)
    return page.evaluate(TOPS)


@pytest.mark.parametrize("name", WITH_FIGURES)
def test_the_first_figure_is_on_the_first_two_screens(tab, name):
    tops = tops_of(tab, name)
    assert tops[0] < LOWEST


WIDER = """() => [...document.querySelectorAll("article figure img")]
  .filter((picture) => picture.getClientRects().length)
  .filter((picture) => picture.width > picture.closest("figure").clientWidth + 1)
  .map((picture) => picture.src)"""


@pytest.mark.parametrize("name", WITH_FIGURES)
def test_no_figure_is_wider_than_its_column(tab, name):
    page = tab(f"notebooks/{name}.html")
    page.set_viewport_size(LAPTOP)
    assert page.evaluate(WIDER) == []
    page.add_style_tag(content="article figure { width: 200px; }")
    assert page.evaluate(WIDER), "a figure in a narrow column is noticed"


@pytest.mark.parametrize("name", WITH_FIGURES)
def test_the_cells_that_set_a_study_up_are_in_the_fold_at_the_end(tab, name):
    page = tab(f"notebooks/{name}.html")
    fold = page.locator("details.reproduce")
    assert fold.count() == 1
    assert "page.run(" in fold.text_content()
    assert page.locator("article .tag_parameters").count() == 1
    assert fold.locator(".tag_parameters").count() == 1
