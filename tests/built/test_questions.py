"""Four questions of a reader who opens the book: answered within three clicks, wide and narrow."""

import re
import shutil
from pathlib import Path

import pytest

HTML = Path(__file__).resolve().parents[2] / "_build" / "html"
BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = [
    pytest.mark.skipif(
        not (HTML / "index.html").exists(), reason="no _build/html: make book builds it"
    ),
    pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine"),
]
WIDE, NARROW = {"width": 1400, "height": 1000}, {"width": 390, "height": 844}
#: The question -> the links to follow, by their text; where they lead; what then stands there.
WAYS = {
    "Does a claim hold?": (
        ["All claims"],
        "#main-content",
        r"\bC3\b[\s\S]*\b(reproduced|partly|undecided|not judged|not reproduced)\b",
    ),
    "What are the settings of a figure?": (
        ["All settings", "Neyman-Pearson classification, full paper"],
        "#settings-np_unified",
        r"(?i)figure \d[\s\S]*clients",
    ),
    "What if a parameter were another?": (
        ["One notebook with other parameters"],
        "#main-content",
        r"make notebook NAME=\w+ .*VIEW=html",
    ),
    "What does a theorem say": (
        ["FedSGM", "list of differences"],
        "#main-content",
        r"What the papers print differently",
    ),
}


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("question", WAYS)
def test_a_question_is_answered_within_three_clicks(browser, question, size):
    links, place, answer = WAYS[question]
    page = browser.new_page(viewport=size)
    page.goto((HTML / "book" / "index.html").as_uri())
    row = page.locator("main tr", has_text=question)
    for i, text in enumerate(links):
        link = (row if i == 0 else page.locator("main")).get_by_role("link", name=text).first
        link.click()
        page.wait_for_load_state("load")
    assert len(links) <= 3
    found = page.locator(place).first
    assert found.is_visible()
    assert re.search(answer, found.inner_text()), found.inner_text()[:500]
    if place.startswith("#settings"):  # what was asked for is on the screen
        assert found.bounding_box()["y"] < size["height"]
    page.close()
