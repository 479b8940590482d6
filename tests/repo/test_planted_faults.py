"""Planted faults: each must stop what CI runs, with a sentence that says what to do.

The checks are those of the suite, the book's build and the Makefile themselves, run on a copy that
has one fault in it. Beside this file: tests/papers/test_results.py forges a digit together with its
digest, tests/book/test_book_ext.py asks for numbers and claims that do not exist,
test_book_status.py plants faults on the status page, tests/built/test_browser.py a request while
a page is open.
"""

import importlib.util
import re
import shutil
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
import test_book_ext
import test_notebooks
import test_results
from expect import refuses
from process import ran

from fedlib.core.files import read_json
from papers import STUDIES
from papers.kit import store

ROOT = Path(__file__).resolve().parents[2]
build, small = test_book_ext.build, test_notebooks.small
STUDY = STUDIES["np_workshop"]
REPAIR = r"restore it or reproduce it|delete it and reproduce|reproduce it with this version"
SQUARE = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'


def load(path):
    """A test file that is not on the path of imports."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


html = load(ROOT / "tests" / "built" / "test_html.py")


def change_a_digit(text, rng):
    """One digit of the text, somewhere, is another one."""
    place = rng.choice([found.start() for found in re.finditer(r"\d", text)])
    other = (int(text[place]) + rng.integers(1, 10)) % 10
    return f"{text[:place]}{other}{text[place + 1 :]}"


def test_a_changed_digit_in_a_results_file_is_noticed(tmp_path):
    files, rng = sorted(store.results_dir().glob("*.json")), np.random.default_rng(0)
    assert len(files) > 20
    copy = tmp_path / "copy.json"
    for path in files:
        copy.write_text(change_a_digit(path.read_text(encoding="utf-8"), rng), encoding="utf-8")
        with pytest.raises(ValueError, match=REPAIR):
            read_json(copy)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.9])
def test_a_changed_bit_of_the_curves_is_noticed(tmp_path, monkeypatch, share):
    for end in (".json", ".npz"):
        shutil.copy(store.results_dir() / f"{STUDY.name}{end}", tmp_path)
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    assert STUDY.load()
    path = tmp_path / f"{STUDY.name}.npz"
    held = bytearray(path.read_bytes())
    held[int(share * len(held))] ^= 4
    path.write_bytes(held)
    refuses(f"store: {path.name} must *restore it", STUDY.load)


def test_a_changed_digit_fails_the_test_of_the_results(tmp_path, monkeypatch):
    check = test_results.test_everything_stored_of_a_study_stands_together
    for end in (".json", ".npz"):
        shutil.copy(store.results_dir() / f"{STUDY.name}{end}", tmp_path)
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    check(STUDY, "full")
    path = tmp_path / f"{STUDY.name}.json"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"rounds": 100', '"rounds": 101', 1), encoding="utf-8")
    refuses("np_workshop.json*restore it or reproduce", check, STUDY, "full")


@pytest.mark.parametrize("folder", ["executed", "quick"])
def test_a_notebook_whose_code_is_not_its_source_is_noticed(tmp_path, driver, folder):
    copy = tmp_path / folder / f"{STUDY.name}.ipynb"
    copy.parent.mkdir()
    shutil.copy(ROOT / "notebooks" / folder / copy.name, copy)
    check = test_notebooks.test_committed_notebook_is_what_an_execution_of_its_source_left
    check(copy, driver)
    notebook = nbformat.read(copy, as_version=4)
    cell = [c for c in notebook.cells if c.cell_type == "code"][-1]
    cell.source += "\n1 + 1"
    nbformat.write(notebook, copy)
    sentence = "np_workshop"
    with pytest.raises(AssertionError, match=sentence):
        check(copy, driver)


def test_an_output_that_the_code_does_not_give_is_noticed(driver, small):
    folder = small('pass\n\n# %% tags=["nbval-check-output"]\nprint(1 + 2)')
    right, wrong = folder / "right.ipynb", folder / "wrong.ipynb"
    assert driver.main(["small", "--out", str(right)]) == 0
    wrong.write_text(
        right.read_text(encoding="utf-8").replace('"3\\n"', '"4\\n"'), encoding="utf-8"
    )
    given = f"BIN={Path(sys.executable).parent}", f"QUICK={right} {wrong}"
    done = ran("make", "-o", ".venv/.stamp", "nbval", *given, cwd=ROOT)
    assert done.returncode != 0
    assert re.search(r"1 failed, \d+ passed", done.stdout), done.stdout
    assert re.search(r"FAILED \S*wrong\.ipynb", done.stdout), done.stdout
    assert "the code no longer gives what is committed: find out why" in done.stdout


def test_faults_of_a_built_page_are_noticed(build, tmp_path):
    (tmp_path / "square.svg").write_text(SQUARE, encoding="utf-8")
    checks = {
        "outside": html.test_page_loads_nothing_from_outside,
        "links": html.test_internal_links_and_files_exist,
        "pictures": html.test_every_picture_has_a_text,
        "rest": html.test_nothing_is_left_unprocessed,
    }
    path = tmp_path / "out" / "index.html"
    status, messages, _ = build('![A square](square.svg)\n\n<a href="#page">up</a>\n\n## Further')
    assert status == 0, messages
    for check in checks.values():
        check(path)
    status, messages, _ = build(
        "![](square.svg)\n\n```{image} square.svg\n```\n\n"
        '<a href="nowhere.html">one</a> <a href="#no-such-place">two</a>\n\n'
        '<script src="https://outside.invalid/code.js"></script>\n\n'
        "A formula: \\$\\$x\\$\\$"
    )
    assert status == 0, messages
    html.page.cache_clear()
    sentences = {
        "outside": r"asks the network for \['https://outside.*put the file under book/_static",
        "links": r"lead nowhere: .*nowhere\.html.*#no-such-place.*correct their addresses",
        "pictures": r"without a text: \['_images/square\.svg', '_images/square\.svg'\]; say what",
        "rest": "shows raw TeX",
    }
    for name, sentence in sentences.items():
        with pytest.raises(AssertionError, match=sentence):
            checks[name](path)


def test_a_link_to_a_page_that_is_not_there_stops_the_build(build):
    status, messages, _ = build("See [the other page](nowhere.md).")
    assert status != 0
    assert "cross-reference target not found: 'nowhere.md'" in messages
