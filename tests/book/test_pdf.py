"""The book on paper: what is printed, and what is refused."""

import importlib.util
import shutil
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("pdf", ROOT / "book" / "pdf.py")
pdf = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(pdf)
needs_browser = pytest.mark.skipif(
    not any(map(shutil.which, pdf.BROWSERS)), reason="no chromium on this machine"
)
PAGE = """<html><head><script>MathJax = {{options: {{enableMenu: false}}}}</script>
<script src="{mathjax}"></script></head><body>
<p>A formula <span class="math notranslate">\\({formula}\\)</span>, folded
<details><summary>more</summary><span class="math notranslate">\\(y\\)</span></details>
<img src="{picture}" alt="A square"></body></html>"""
SQUARE = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'


@pytest.fixture
def folder(tmp_path):
    """What the builder leaves: one page in a folder, its files above."""
    (script,) = (
        f
        for f in metadata.files("sphinx-mathjax-offline")
        if f.match("static/mathjax/tex-mml-chtml.js")
    )
    (tmp_path / "square.svg").write_text(SQUARE, encoding="utf-8")
    (tmp_path / "book").mkdir()

    def make(formula="x^2", picture="square.svg"):
        mathjax = Path(str(script.locate())).as_uri()
        text = PAGE.format(mathjax=mathjax, formula=formula, picture=picture)
        (tmp_path / "book" / "index.html").write_text(text, encoding="utf-8")
        return tmp_path

    return make


@needs_browser
def test_a_page_is_printed_with_its_formulas_and_pictures(folder, capsys):
    file = folder() / "made" / "book.pdf"
    assert pdf.main([str(file.parents[1]), str(file)]) == 0
    assert file.read_bytes().startswith(b"%PDF")
    printed = capsys.readouterr().out
    assert printed.endswith("2 of 2 formulas, 0 with errors, 0 broken pictures\n")


@needs_browser
def test_a_page_that_is_not_whole_is_not_printed(folder, capsys):
    file = folder(formula="\\frac{1}", picture="nowhere.svg") / "book.pdf"
    assert pdf.main([str(file.parent), str(file)]) == 1
    message = capsys.readouterr().err
    assert "not whole (2 of 2 formulas, 1 with errors, 1 broken pictures: nowhere.svg)" in message
    assert "nothing was written" in message
    assert not file.exists()
