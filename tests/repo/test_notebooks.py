"""Notebook sources, their experiments, and whether the committed notebooks are their executions."""

import ast
import contextlib
import io
import os
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import jupytext
import nbformat
import numpy as np
import pytest

from fedlib.core import Trace
from fedlib.data import cache as data_cache
from papers import STUDIES
from papers.kit import store
from papers.kit.claims import check
from papers.kit.parameters import parameters

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "notebooks" / "src").glob("*.py"))
COMMITTED = [ROOT / "notebooks" / f"{source.stem}.ipynb" for source in SOURCES]
SMALL = """# %% tags=["parameters"]
profile = "full"  # quick or full
lr = 0.1  # step size
rounds = None  # the profile's own

# %%
{code}
"""
PICTURE = "from IPython.display import HTML, display\ndisplay(HTML('<b>x</b>'))\nprint(lr)"


@pytest.fixture
def small(driver, tmp_path, monkeypatch):
    """A folder of sources with one small notebook; call it with the code of its last cell."""
    monkeypatch.setattr(driver, "SOURCES", tmp_path)
    folders = {"quick": tmp_path / "quick", "full": tmp_path / "full"}
    monkeypatch.setattr(driver, "FOLDERS", folders)

    def make(code="print(profile, lr)"):
        (tmp_path / "small.py").write_text(SMALL.format(code=code), encoding="utf-8")
        return tmp_path

    return make


def tags(cell):
    return cell.metadata.get("tags", ())


def outputs(notebook):
    return [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]


@cache
def code_cells(name):
    """The cells of code of a source."""
    cells = jupytext.read(SOURCES[0].with_name(f"{name}.py"), fmt="py:percent").cells
    return [c for c in cells if c.cell_type == "code"]


def experiment(name):
    """The cells of a study's source up to the one that runs, and that cell up to its run."""
    code = [c.source for c in code_cells(name)]
    (at,) = (i for i, text in enumerate(code) if "page.run(" in text)
    run, after = code[at].split("page.run(")
    return code[:at], f"{run}page.run({after.partition(chr(10) + 'numbers')[0]}"


@pytest.mark.parametrize("profile", ["full", "quick"])
@pytest.mark.parametrize("name", STUDIES)
def test_the_experiment_of_a_page_is_the_studys(name, profile, monkeypatch, tmp_path):
    """And needs no data sets: the functions of a page make their problems without any."""
    no_run = Trace({}, {}, np.arange(1), (), {})
    monkeypatch.setattr(
        store, "compute_or_load", lambda *given, **_: dict.fromkeys(given[2], no_run)
    )
    monkeypatch.setattr("papers.kit.snapshot.replaced", list)
    monkeypatch.setattr(data_cache, "_stream", lambda *_: pytest.fail("something was fetched"))
    monkeypatch.setenv("FEDLIB_DATA", str(tmp_path))
    before, run = experiment(name)
    here, said = {"__name__": "page"}, io.StringIO()
    with contextlib.redirect_stdout(said):
        for cell in before:
            exec(cell.replace('profile = "full"', f'profile = "{profile}"'), here)
        exec(run, here)
    runs = len(STUDIES[name].specs(STUDIES[name].resolve(profile)))
    line, _, words = said.getvalue().partition(". ")
    assert line.strip(".\n") == f"{runs} of {runs} runs are the study's, profile {profile!r}"
    assert words.endswith("about the book's runs.\n") if profile == "quick" else words == ""


def test_the_parameters_cells_are_written_from_the_studies(driver):
    for name in STUDIES:
        text = (ROOT / "notebooks" / "src" / f"{name}.py").read_text(encoding="utf-8")
        command = f"make notebook NAME={name} ARGS=--parameters"
        assert text == driver.with_study_parameters(name), (
            f"{name}: the cell of parameters is not that of the study; `{command}` writes it"
        )


def test_a_parameters_cell_follows_its_study(driver, small, monkeypatch, capsys):
    """Values that agree are code, others words; the page's own words on profile and device stay."""
    declared = parameters(
        rounds=("rounds T", 100, 5),
        seeds=("seeds", (0, 1, 2, 3), (0, 3)),
        lrs=("step sizes", (0.1, 1.0)),
        most=("most rows", 50),
        data=("data set", "digits"),
    )
    toy = replace(STUDIES["np_workshop"], **declared, at_paper={"most": 900})
    monkeypatch.setitem(STUDIES, "small", toy)
    folder = small()
    assert driver.main(["small", "--parameters"]) == 0
    source = (folder / "small.py").read_text(encoding="utf-8")
    assert source.partition("\n\n")[0].splitlines() == [
        '# %% tags=["parameters"]',
        'profile = "full"  # quick or full',
        "rounds = None  # rounds T: full 100; quick 5",
        "seeds = None  # seeds: full 0 to 3; quick 0, 3",
        "lrs = [0.1, 1.0]  # step sizes",
        "most = None  # most rows: full and quick 50; paper 900",
        'data = "digits"  # data set',
        'device = "auto"  # "auto", "cpu" or "cuda"',
        "recompute = False  # compute even what is stored",
    ]
    monkeypatch.delitem(STUDIES, "small")
    assert driver.main(["small", "--parameters"]) == 1
    assert capsys.readouterr().err.startswith("error: execute: there is no study 'small'; ")


def test_a_name_that_is_no_parameter_is_refused_whoever_executes():
    with pytest.raises(ValueError, match=r"np_workshop: parameters .* got 'fractoin'; .*fraction"):
        STUDIES["np_workshop"].page({"profile": "quick", "fractoin": 0.5})


@pytest.mark.parametrize("path", COMMITTED, ids=lambda p: p.stem)
def test_a_committed_notebook_is_what_an_execution_of_its_source_left(path, driver):
    notebook = nbformat.read(path, as_version=4)
    source = driver.with_parameters(driver.read_source(path.stem), {"profile": "full"})
    again = f"{path.name} is not the execution of its source; `make notebooks` executes it again"
    assert [c.source for c in notebook.cells] == [
        driver.with_numbers(c.source) if c.cell_type == "markdown" else c.source
        for c in source.cells
    ], again
    assert [tags(c) for c in notebook.cells] == [tags(c) for c in source.cells], again
    assert notebook.metadata["fedlib"]["page"] == driver.page_digest(notebook), again
    assert notebook.metadata["fedlib"]["parameters"] == {"profile": "full"}, again
    assert outputs(notebook)
    assert not [o for o in outputs(notebook) if o.output_type == "error"]
    assert not driver.failed_checks(notebook)
    checked = [c for c in notebook.cells if "nbval-check-output" in tags(c)]
    assert checked
    assert all(c.outputs for c in checked)


@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.stem)
def test_a_source_has_no_header_and_jupyterlab_adds_none(source):
    text = source.read_text(encoding="utf-8")
    notebook = jupytext.reads(text, "py")
    assert notebook.cells[0].cell_type == "markdown"
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    assert jupytext.writes(notebook, "py") == text


@pytest.mark.parametrize("source", SOURCES, ids=lambda p: p.stem)
def test_at_most_a_quarter_of_a_pages_code_is_hidden(source):
    """Folded code is not hidden: a reader of the book opens it where it stands."""
    lines = {True: 0, False: 0}
    for cell in code_cells(source.stem):
        hidden = not {"remove-input", "remove-cell"}.isdisjoint(tags(cell))
        lines[hidden] += len(cell.source.splitlines())
    assert 3 * lines[True] <= lines[False]


def test_each_situation_takes_at_most_fifteen_lines():
    """As the tutorial's first sentence says."""
    source = (ROOT / "notebooks" / "src" / "tutorial_own.py").read_text(encoding="utf-8")
    cells = [c.source for c in jupytext.reads(source, "py:percent").cells if "situation" in tags(c)]
    assert len(cells) == 5
    assert max(len([x for x in cell.splitlines() if x.strip()]) for cell in cells) <= 15


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("small -p lrr 0.1", "execute: there is no parameter of small 'lrr'; nearest: lr."),
        ("small --profile ful", "execute: there is no profile 'ful'; nearest: full."),
        ("smal", "execute: there is no notebook 'smal'; nearest: small."),
        ("small -p LR 1", "execute: there is no parameter of small 'LR'; nearest: lr."),
        ("small -p lr 1 -p lr 2", "execute: parameter lr must be given once, got 1 and 2."),
    ],
)
def test_what_is_not_known_is_refused(driver, small, capsys, arguments, sentence):
    folder = small()
    assert driver.main(arguments.split()) == 1
    assert capsys.readouterr().err == f"error: {sentence}\n"
    assert not (folder / "quick").exists()


def test_a_check_that_says_no_fails_unless_the_parameters_are_the_readers(driver, small, capsys):
    check("two is even", True)
    check("three is even", False)
    check("five is even", False, "5 = 2 * 2 + 1")
    folder = small(f"print({capsys.readouterr().out!r})")
    assert driver.main(["small"]) == 1
    place = os.path.relpath(folder / "quick" / "small.ipynb")
    assert capsys.readouterr().err == (
        "error: small: every check must hold in profile 'quick', got NO for 'three is even', "
        f"'five is even'; see {place}.\n"
    )
    assert driver.main(["small", "-p", "lr", "2", "--out", str(folder)]) == 0


def test_two_executions_leave_the_same_but_for_their_times(driver, small):
    folder = small(PICTURE)
    written = []
    for _ in range(2):
        assert driver.main(["small", "-p", "lr", "2", "--out", str(folder)]) == 0
        notebook = nbformat.read(folder / "small.ipynb", as_version=4)
        assert 0 < notebook.metadata["fedlib"].pop("ran")["cpu_s"] < 60
        written.append(nbformat.writes(notebook))
    assert written[0] == written[1]
    assert notebook.metadata["fedlib"]["parameters"] == {"profile": "quick", "lr": 2}
    shown = "\n".join(o.get("text", str(o.get("data"))) for o in outputs(notebook))
    assert "2\n" in shown
    assert "<b>x</b>" in shown  # a reader's own run shows its pictures


def test_a_progress_bar_of_a_slow_machine_leaves_no_trace(driver, small):
    bar = "import sys, time\nprint('a')\nsys.stdout.flush()\n{}\nprint('b', lr)"
    slow = "print(' 50%|##  |', end='', file=sys.stderr, flush=True)\ntime.sleep(0.5)\n"
    slow += "print(file=sys.stderr)"
    cells = []
    for code in (bar.format(slow), bar.format("pass")):
        folder = small(code)
        assert driver.main(["small", "-p", "lr", "2", "--out", str(folder)]) == 0
        cells.append(outputs(nbformat.read(folder / "small.ipynb", as_version=4)))
    assert cells[0] == cells[1]
    assert cells[0][-1].text == "a\nb 2\n"


def test_a_page_has_one_cell_of_parameters_which_says_the_given(driver, small):
    folder = small("print(profile, lr)")
    assert driver.main(["small", "-p", "lr", "[0.1, 1]", "--out", str(folder)]) == 0
    notebook = nbformat.read(folder / "small.ipynb", as_version=4)
    first, second = notebook.cells
    assert first.source.splitlines() == [
        "profile = 'quick'  # quick or full",
        "lr = [0.1, 1]  # step size",
        "rounds = None  # the profile's own",
    ]
    assert second.outputs[0].text == "quick [0.1, 1]\n"


def test_what_cannot_be_written_to_is_said_before_a_kernel_starts(driver, small, capsys):
    folder = small()
    (folder / "file").write_text("", encoding="utf-8")
    assert driver.main(["small", "--out", str(folder / "file" / "deep")]) == 1
    assert (
        "must be a folder that can be written to, got 'Not a directory'" in capsys.readouterr().err
    )


def test_own_runs_do_not_overwrite_one_another(driver):
    paths = {driver.target("np_workshop", "quick", {"lr": x}, None) for x in (0.1, 0.2)}
    assert len(paths) == 2
    assert {p.parent for p in paths} == {ROOT / "_build" / "runs"}


def test_a_number_of_a_sentence_is_readable_in_the_notebook(driver):
    value = store.read_numbers("np_workshop")["ratio"].value
    assert driver.with_numbers("a {result}`np_workshop/ratio:.1f` b") == (
        f"a [{value:.1f}](result:np_workshop/ratio:.1f) b"
    )


def test_a_failing_cell_leaves_nothing(driver, small, capsys):
    folder = small("raise ValueError('broken')")
    assert driver.main(["small"]) == 1
    assert "small: a cell failed, nothing was written: broken" in capsys.readouterr().err
    assert not list(folder.rglob("*.ipynb"))


def test_a_path_of_the_machine_is_refused_and_the_repository_cut_off(driver, small, capsys):
    folder = small("print('/home/somebody/file.txt')")
    assert driver.main(["small"]) == 1
    assert "'/home/somebody/file.txt' of this machine" in capsys.readouterr().err
    small(f"print({str(ROOT / 'results' / 'x.json')!r})")
    assert driver.main(["small", "--out", str(folder)]) == 0
    (output,) = outputs(nbformat.read(folder / "small.ipynb", as_version=4))
    assert output.text == "results/x.json\n"


def test_sources_link_to_pages_that_are_there():
    for source in SOURCES:
        text = source.read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([\w./]+\.(?:md|ipynb))", text):
            path = (ROOT / "notebooks" / link).resolve()
            assert path.is_file(), f"{source.name}: {link}"


COUNT = r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|twenty|fifty|sixty|hundred)"
TYPED = (
    rf"\b{COUNT}(?:,? (?:to|of|and) {COUNT})* (?:clients|participants|rounds|seeds?|local steps)\b"
)


def captions(source):
    """The texts of captions and alternatives of figures."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword) and node.arg in ("caption", "alt"):
            for constant in ast.walk(node.value):
                if isinstance(constant, ast.Constant):
                    yield constant.value


def test_captions_take_counts_from_the_parameters():
    """A typed count of what a parameter sets would be wrong once it is changed."""
    for name in STUDIES:
        for text in captions(SOURCES[0].with_name(f"{name}.py")):
            assert not re.search(TYPED, text), f"{name}: {text}"
