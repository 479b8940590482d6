"""Prints the book to one PDF: the page that Sphinx's singlehtml builder made, in a browser.

    python book/pdf.py FOLDER OUT.pdf

FOLDER is the builder's output. Styles for paper are in book/_static/print.css.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Error, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu"]
PATIENCE = 600_000  # ms until the page must be ready, and until it must be printed

# What a style cannot do: leave out the reference of every function, print the rules of claims once,
# list all pages, open the folds, lead links that stay in the book to their place in it, take off
# those to files beside the pages; let an interval stand below its value where a table would be too
# wide. Then it counts.
PREPARE = """async () => {
  document.documentElement.dataset.theme = "light";
  for (const place of document.querySelectorAll('span[id^="document-book/api"]'))
    place.nextElementSibling.remove();
  const rules = document.querySelector('span[id="document-book/claims"]')?.nextElementSibling;
  for (const fold of document.querySelectorAll(".claims details"))
    if (rules && !rules.contains(fold)) fold.remove();
  const pages = document.querySelectorAll('span[id^="document-"] + section');
  document.querySelector("#jb-print-toc nav")?.replaceChildren(...[...pages].map((page) => {
    const line = document.createElement("div"), link = document.createElement("a");
    link.href = `#${page.id}`;
    link.textContent = page.querySelector("h1, h2, h3")?.textContent.replace(/#$/, "") ?? page.id;
    line.append(link);
    return line;
  }));
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  for (const cell of document.querySelectorAll("table.dataframe td:not(:has(*))"))
    cell.textContent = cell.textContent.replace(/\\u00a0(?=[[(])/, " ");
  for (const image of document.images) image.loading = "eager";
  for (const link of document.querySelectorAll("a[href]")) {
    const address = link.getAttribute("href");
    if (/^(https?:|mailto:)/.test(address)) continue;
    if (document.getElementById(decodeURIComponent(link.hash.slice(1)))) link.href = link.hash;
    else link.removeAttribute("href");
  }
  await window.MathJax?.startup?.promise;
  await Promise.all([...document.images].map((image) => image.decode().catch(() => null)));
  const count = (what) => document.querySelectorAll(what).length;
  return {
    typeset: count("mjx-container"),
    formulas: count(".math.notranslate"),
    errors: count("mjx-merror"),
    broken: [...document.images].filter((image) => !image.naturalWidth).map((image) => image.src),
  };
}"""


class PdfError(Exception):
    """The book could not be printed; the message is one sentence."""


def browser() -> str:
    """The first Chromium that is installed."""
    executable = next(filter(None, map(shutil.which, BROWSERS)), None)
    if executable is None:
        raise PdfError(f"pdf: a browser is needed, none of {', '.join(BROWSERS)} is installed.")
    return executable


def one_page(folder: Path) -> Path:
    """The page at the top of `folder`, where its relative addresses hold, ready to be printed."""
    pages = [p for p in folder.rglob("*.html") if p.parent != folder and "_static" not in p.parts]
    if len(pages) != 1:
        raise PdfError(f"pdf: {folder} must hold one page, found {len(pages)}; use `make pdf`.")
    target = folder / "print.html"
    target.write_text(pages[0].read_text(encoding="utf-8"), encoding="utf-8")
    return target


def print_page(page: Path, target: Path) -> str:
    """Prints, whole or not at all; returns what the page counted."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        written = Path(folder) / "book.pdf"
        opened = driver.chromium.launch(executable_path=browser(), args=FLAGS)
        try:
            sheet = opened.new_page()
            sheet.set_default_timeout(PATIENCE)
            sheet.goto(page.resolve().as_uri())
            counts = sheet.evaluate(PREPARE)
            check(counts)
            sheet.pdf(
                path=written,
                prefer_css_page_size=True,
                print_background=True,
                outline=True,
                tagged=True,
            )
        except Error as error:
            raise PdfError(f"pdf: the browser printed nothing: {error.message[:500]}") from error
        finally:
            opened.close()
        shutil.move(written, target)
    return summary(counts)


def check(counts: dict[str, Any]) -> None:
    """Raises PdfError for a page of which something is missing."""
    if counts["typeset"] < counts["formulas"] or counts["errors"] or counts["broken"]:
        names = ", ".join(address.rpartition("/")[2] for address in counts["broken"][:3])
        raise PdfError(
            f"pdf: the page is not whole ({summary(counts)}{names and ': '}{names}), nothing was "
            "written."
        )


def summary(counts: dict[str, Any]) -> str:
    """What was counted."""
    return (
        f"{counts['typeset']} of {counts['formulas']} formulas, {counts['errors']} with errors, "
        f"{len(counts['broken'])} broken pictures"
    )


def main(arguments: list[str]) -> int:
    """Command line entry; an error is one sentence on stderr and exit status 1."""
    folder, target = map(Path, arguments)
    try:
        counted = print_page(one_page(folder), target)
    except PdfError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"wrote {target} ({target.stat().st_size / 1e6:.1f} MB): {counted}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
