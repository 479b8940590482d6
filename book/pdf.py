"""Prints the book to one PDF: the page that Sphinx's singlehtml builder made, in a browser.

    python book/pdf.py FOLDER OUT.pdf

FOLDER is the builder's output. Styles for paper are in book/_static/print.css.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-extensions", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--enable-logging=stderr", "--no-pdf-header-footer",
         "--generate-pdf-document-outline")  # fmt: skip
PATIENCE = 600  # seconds of the page's own clock, which jumps over all waiting

# What a style cannot do: open the folds, show every figure in its light version, lead links that
# stay in the book to their place in it, take off those to files beside the pages. Then it counts.
PREPARE = """
<script>
addEventListener("load", async () => {
  document.documentElement.dataset.theme = "light";
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  for (const twin of document.querySelectorAll("img.fig-dark")) twin.remove();
  for (const image of document.images) image.loading = "eager";
  for (const link of document.querySelectorAll("a[href]")) {
    const address = link.getAttribute("href");
    if (/^(https?:|mailto:)/.test(address)) continue;
    if (document.getElementById(decodeURIComponent(link.hash.slice(1)))) link.href = link.hash;
    else link.removeAttribute("href");
  }
  await MathJax.startup.promise;
  await Promise.all([...document.images].map((image) => image.decode().catch(() => null)));
  const count = (what) => document.querySelectorAll(what).length;
  const broken = [...document.images].filter((image) => !image.naturalWidth).length;
  const typeset = `${count("mjx-container")} of ${count(".math.notranslate")} formulas`;
  console.log(`READY: ${typeset}, ${count("mjx-merror")} with errors, ${broken} broken pictures`);
});
</script>
"""
READY = re.compile(r"READY: (\d+) of (\d+) formulas, (\d+) with errors, (\d+) broken pictures")


class PdfError(Exception):
    """The book could not be printed; the message is one sentence."""


def browser() -> str:
    """The first Chromium that is installed."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise PdfError(f"pdf: a browser is needed, none of {', '.join(BROWSERS)} is installed.")
    return found


def one_page(folder: Path) -> Path:
    """The page at the top of `folder`, where its relative addresses hold, ready to be printed."""
    pages = [p for p in folder.rglob("*.html") if p.parent != folder and "_static" not in p.parts]
    if len(pages) != 1:
        raise PdfError(f"pdf: {folder} must hold one page, found {len(pages)}; use `make pdf`.")
    text = pages[0].read_text(encoding="utf-8")
    target = folder / "print.html"
    target.write_text(text.replace("</body>", f"{PREPARE}</body>"), encoding="utf-8")
    return target


def print_page(page: Path, out: Path) -> str:
    """Prints, whole or not at all; returns what the page counted."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "book.pdf"
        done = subprocess.run(
            [browser(), *FLAGS, f"--user-data-dir={folder}/profile", f"--print-to-pdf={made}",
             f"--virtual-time-budget={1000 * PATIENCE}", page.resolve().as_uri()],
            capture_output=True, encoding="utf-8", check=False,
        )  # fmt: skip
        said = READY.search(done.stderr)
        if done.returncode or not made.is_file():
            raise PdfError(f"pdf: the browser printed nothing: {done.stderr[-500:]}")
        if said is None:
            raise PdfError(f"pdf: the page was not ready in {PATIENCE} s, nothing was written.")
        typeset, formulas, errors, broken = map(int, said.groups())
        if typeset < formulas or errors or broken:
            raise PdfError(f"pdf: the page is not whole ({said[0]}), nothing was written.")
        shutil.move(made, out)
    return said[0].removeprefix("READY: ")


def main(arguments: list[str]) -> int:
    """Command line entry; an error is one sentence on stderr and exit status 1."""
    folder, out = map(Path, arguments)
    try:
        counted = print_page(one_page(folder), out)
    except PdfError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"wrote {out} ({out.stat().st_size / 1e6:.1f} MB): {counted}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
