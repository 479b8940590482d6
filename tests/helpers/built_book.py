"""The built book, and what the tests that look at it with a browser need."""

import importlib.util
import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
BROWSERS = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
BROWSER = next(filter(None, BROWSERS), None)
AXE = importlib.util.find_spec("axe_playwright_python")  # brings playwright
IS_BUILT = pytest.mark.skipif(
    not (HTML / "index.html").exists(), reason="no _build/html: make book builds it"
)
IN_A_BROWSER = [
    IS_BUILT,
    pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine"),
    pytest.mark.skipif(AXE is None, reason="axe-playwright-python is not installed"),
]
EVERY = os.environ.get("PAGES") == "all"
WIDE = {"width": 1400, "height": 1000}
NARROW = {"width": 390, "height": 844}
#: Resolves when the formulas are set.
SET = "() => window.MathJax?.startup?.promise"
#: Before a page is read: MathJax shall set all formulas at once, not those alone that are in sight.
WHOLE = """Object.defineProperty(window, "MathJax", {
  configurable: true,
  set(value) {
    delete value.loader;
    Object.defineProperty(window, "MathJax", { value, writable: true });
  },
});"""


def pages(*patterns):
    """The addresses of the pages below the book's folder."""
    names = []
    for pattern in patterns:
        names += [path.relative_to(HTML).as_posix() for path in HTML.glob(pattern)]
    return sorted(names)


def sampled(pages, step):
    """Those that are looked at in a browser: always these, and every so many of the others.

    All pages take six minutes: PAGES=all looks at all of them.
    """
    if EVERY:
        return pages
    always = [f"book/{name}.html" for name in ("index", "claims", "methods/index")]
    further = sorted(set(pages) - set(always))
    return [*always, *further[1::step]]


def url(name):
    """Where a page is opened as a file; `name` may end with a search or an anchor."""
    return f"{HTML.as_uri()}/{name}"
