"""One browser for all tests of the built book."""

import pytest

from tests.helpers.built_book import BROWSER, SET, WHOLE, WIDE, url

#: Nothing fades while it is looked at.
STILL = "*, *::before, *::after { transition: none !important; animation: none !important; }"


@pytest.fixture(scope="session")
def browser():
    """A browser that finds no host."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND"]
        )
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def screen(browser):
    """One page for all: the next one opened in it is there in half the time."""
    with browser.new_page() as page:
        page.add_init_script(WHOLE)
        yield page


@pytest.fixture
def tab(screen):
    """Opens a page of the book from its file: light, still, at full width, its formulas set."""
    screen.set_viewport_size(WIDE)

    def load(name):
        screen.goto(url(name))
        screen.add_style_tag(content=STILL)
        screen.evaluate("document.documentElement.dataset.theme = 'light'")
        screen.evaluate(SET)
        return screen

    yield load
    screen.evaluate("localStorage.clear()")
