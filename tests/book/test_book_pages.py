"""The seal of a page: what the book's build asks of every notebook that it reads."""

import importlib
from types import SimpleNamespace

import nbformat
import pytest
import test_book_figures
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

extension = test_book_figures.extension


@pytest.fixture
def said(driver, extension, tmp_path, monkeypatch):
    """Writes a sealed page, changes it if asked, and gives the warnings of the build."""
    assert driver  # whose folder is on the path
    path, warnings = tmp_path / "executed" / "toy.ipynb", []
    pages = extension("fedbook_pages")
    monkeypatch.setattr(pages, "warn", lambda error, *_: warnings.append(str(error)))
    env = SimpleNamespace(docname="toy", doc2path=lambda _: str(path))

    def make(old="", new=""):
        shown = new_output("stream", name="stdout", text="it holds: yes\n")
        cells = [new_markdown_cell("# Toy"), new_code_cell("check()", outputs=[shown])]
        notebook = new_notebook(cells=cells, metadata={"fedlib": {}})
        importlib.import_module("stamping").write(notebook, path)
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new) if old else text, encoding="utf-8")
        assert nbformat.read(path, as_version=4)
        pages.check_seal(SimpleNamespace(env=env), None)
        return warnings

    return make


def test_a_page_as_it_was_executed_is_built(said):
    assert said() == []


@pytest.mark.parametrize(
    ("old", "new"), [("holds: yes", "holds: NO"), ("# Toy", "# Joy"), ('"page": "', '"page": "0')]
)
def test_a_changed_page_stops_the_build(said, old, new):
    assert said(old, new) == [
        "executed/toy: its cells and outputs must agree with the digest in its metadata, and do "
        "not; `make notebooks` executes it again."
    ]
