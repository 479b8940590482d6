"""The pictures that move: they start when seen, obey their knobs and the wish for no motion."""

import re

import pytest

from tests.helpers.built_book import IN_A_BROWSER, url

pytestmark = IN_A_BROWSER
SAID = ".live .live-said"
LAPTOP = {"width": 1280, "height": 800}


@pytest.fixture
def still(browser):
    """Opens a method's page for a reader who asked for no motion."""
    with browser.new_page(viewport=LAPTOP, reduced_motion="reduce") as page:

        def load(name):
            page.goto(url(f"book/methods/{name}.html"))
            page.wait_for_selector(".live svg circle")
            return page

        yield load


def distances(page):
    """FedFW's picture: how far both means end from the optimum."""
    numbers = re.findall(r"\d\.\d\d", page.inner_text(SAID))
    return [float(number) for number in numbers]


def turn(page, selector, value):
    """Moves a slider."""
    page.locator(selector).evaluate(
        "(slider, value) => { slider.value = value; slider.dispatchEvent(new Event('input')); }",
        value,
    )


@pytest.mark.parametrize("name", ["fedsgm", "fedcmoo", "ssca", "fedfw"])
def test_a_picture_starts_when_its_controls_are_seen(browser, name):
    with browser.new_page(viewport={**LAPTOP, "height": 300}) as page:
        page.goto(url(f"book/methods/{name}.html"))
        page.wait_for_selector(".live svg circle")
        assert page.inner_text(SAID).startswith("round 0")
        page.locator(".live-bar").first.scroll_into_view_if_needed()
        page.wait_for_function(
            "!document.querySelector('.live .live-said').innerText.startsWith('round 0')"
        )


def test_nothing_moves_for_a_reader_who_asked_for_that(still):
    page = still("fedsgm")
    assert page.inner_text(SAID).startswith("round 90")
    assert page.inner_text(".live button >> nth=0") == "Play"


def test_the_corners_cancel_and_fedfw_gets_near_only_with_a_penalty(still):
    page = still("fedfw")
    corners, with_penalty = distances(page)
    assert with_penalty < 0.2 < corners
    turn(page, ".live input", 0)
    assert distances(page)[1] > 0.4


def test_a_large_sharpness_brings_the_zigzags_back(still):
    def above(page):
        return int(re.search(r": (\d+) of", page.inner_text(SAID))[1])

    page = still("fedsgm")
    hard = above(page)
    assert page.locator(".live input").is_disabled()
    page.select_option(".live select >> nth=0", "soft")
    soft = above(page)
    turn(page, ".live input", 30)
    assert soft < hard / 2 < above(page)


def test_a_sweep_shows_the_stored_numbers_of_its_knob(still):
    page = still("fedsgm")
    stage = page.locator(".live-sweeps")
    sentence = stage.locator(".live-said")
    assert sentence.inner_text().startswith("participants 10")
    stage.locator("input").focus()
    page.keyboard.press("ArrowRight")
    assert sentence.inner_text().startswith("participants 15")
    stage.locator("select").select_option("error feedback at share 0.1")
    assert "with: f" in sentence.inner_text()
    stage.locator("summary").click()
    row = stage.locator("tbody tr", has_text="without").inner_text().split()
    turn(page, ".live-sweeps input", 0)
    assert f"f {row[-4]} and g {row[-3]} under hard" in sentence.inner_text()
