"""Three questions of a reader who opens the book: answered within three clicks, wide and narrow."""

import re

import pytest

from tests.helpers.built_book import IN_A_BROWSER, NARROW, WIDE

pytestmark = IN_A_BROWSER
#: The question -> the links to follow, by their text; where they lead; what then stands there.
WAYS = {
    "Does a claim hold?": (
        ["All claims"],
        "#main-content",
        r"\bC3\b[\s\S]*\b(reproduced|mixed|open|not judged|not reproduced)\b",
    ),
    "What happens if I change a parameter?": (
        ["One notebook with other parameters"],
        "#main-content",
        r"make notebook NAME=\w+ .*-p rounds 50",
    ),
    "What does a theorem say": (
        ["FedSGM", "errata"],
        "#main-content",
        r"(?i)errata",
    ),
}


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("question", WAYS)
def test_a_question_is_answered_within_three_clicks(tab, question, size):
    links, place, answer = WAYS[question]
    page = tab("book/index.html")
    page.set_viewport_size(size)
    row = page.locator("main tr", has_text=question)
    for i, text in enumerate(links):
        link = (row if i == 0 else page.locator("main")).get_by_role("link", name=text).first
        link.click()
        page.wait_for_load_state("load")
    assert len(links) <= 3
    found = page.locator(place).first
    assert found.is_visible()
    assert re.search(answer, found.inner_text()), found.inner_text()[:500]
