"""Every table and every figure of the built book has its number and a caption."""

import re

import pytest

from tests.helpers.built_book import HTML, IS_BUILT, pages

pytestmark = IS_BUILT
PAGES = pages("book/**/*.html", "notebooks/**/*.html")
TABLE = re.compile(r"<table(?![^>]*forest-plot)[^>]*>(?P<captioned>\s*<caption>)?")
NUMBER = re.compile(r"<caption><b>Table (\d+)\.</b> [^\s<]")


@pytest.mark.parametrize("name", PAGES)
def test_every_table_has_a_caption_and_numbers_do_not_skip(name):
    text = (HTML / name).read_text(encoding="utf-8")
    main = text[text.index("<article") : text.index("</article>")]
    assert all(table["captioned"] for table in TABLE.finditer(main))
    numbers = list(map(int, NUMBER.findall(main)))
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("name", pages("notebooks/*.html"))
def test_the_figures_of_a_notebook_are_numbered(name):
    text = (HTML / name).read_text(encoding="utf-8")
    figures = re.findall(r'<figure class="fed-figure.*?</figure>', text, re.DOTALL)
    numbers = re.findall(r"<figcaption><b>Fig\. (\d+)", "".join(figures))
    assert numbers == [str(number + 1) for number in range(len(figures))]
