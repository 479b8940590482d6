"""Notebook sources, their experiments, and whether the committed notebooks are their executions."""

import contextlib
import io
import re
from dataclasses import replace
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
from tests.helpers.expect import refuses

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
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [output for cell in cells for output in cell.outputs]


def code_cells(name):
    """The cells of code of a source."""
    path = SOURCES[0].with_name(f"{name}.py")
    cells = jupytext.read(path, fmt="py:percent").cells
    return [cell for cell in cells if cell.cell_type == "code"]


def executed_up_to_the_run(name, profile):
    """What a page says when its cells are executed up to its run, which is cut off after it."""
    namespace = {"__name__": "page"}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for cell in code_cells(name):
            code = cell.source.replace('profile = "full"', f'profile = "{profile}"')
            run = re.search(r"page\.run\(", code)
            if run:
                code = code[: run.start()] + code[run.start() :].partition("\nnumbers")[0]
            exec(code, namespace)
            if run:
                return printed.getvalue()
    raise LookupError(f"{name} asks for no runs")


@pytest.mark.parametrize("profile", ["full", "quick"])
@pytest.mark.parametrize("name", STUDIES)
def test_the_experiment_of_a_page_is_the_studys(name, profile, monkeypatch, tmp_path):
    """And needs no data sets: the functions of a page make their problems without any."""

    def no_runs(_study, _profile, specs, **_):
        return {run: Trace({}, {}, np.arange(1), (), {}) for run in specs}

    monkeypatch.setattr(store, "compute_or_load", no_runs)
    monkeypatch.setattr("papers.kit.snapshot.replaced", list)
    monkeypatch.setattr(
        data_cache,
        "_stream",
        lambda *_: pytest.fail("something was fetched"),
    )
    monkeypatch.setenv("FEDLIB_DATA", str(tmp_path))
    printed = executed_up_to_the_run(name, profile)
    runs = len(STUDIES[name].specs(STUDIES[name].resolve(profile)))
    line, _, words = printed.partition(". ")
    assert line.strip(".\n") == f"{runs} of {runs} runs are the study's, profile {profile!r}"
    assert bool(words) == (profile == "quick")


def test_the_parameters_cells_are_written_from_the_studies(driver):
    for name in STUDIES:
        text = (ROOT / "notebooks" / "src" / f"{name}.py").read_text(encoding="utf-8")
        command = f"make notebook NAME={name} ARGS=--parameters"
        assert text == driver.with_study_parameters(name), (
            f"{name}: the cell of parameters is not that of the study; `{command}` writes it"
        )


def test_a_parameters_cell_follows_its_study(driver, small, monkeypatch):
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


def test_a_sentence_about_a_number_that_is_not_stored_is_refused(driver):
    words = "execute: there is no number of np_workshop 'hard.late_f'; nearest: *hard.f."
    role = "the value {result}`np_workshop/hard.late_f:.2f`"
    refuses(words, driver.with_numbers, role, error=driver.NotebookError)


def test_a_name_that_is_no_parameter_is_refused_whoever_executes():
    with pytest.raises(ValueError, match=r"np_workshop: parameters .* got 'fractoin'; .*fraction"):
        STUDIES["np_workshop"].page({"profile": "quick", "fractoin": 0.5})


@pytest.mark.parametrize("path", COMMITTED, ids=lambda p: p.stem)
def test_a_committed_notebook_is_what_an_execution_of_its_source_left(path, driver):
    notebook = nbformat.read(path, as_version=4)
    source = driver.with_parameters(driver.read_source(path.stem), {"profile": "full"})
    again = f"{path.name} is not the execution of its source; `make notebooks` executes it again"
    assert len(notebook.cells) == len(source.cells), again
    for cell, written in zip(notebook.cells, source.cells, strict=True):
        text = written.source
        if written.cell_type == "markdown":
            text = driver.with_numbers(text)
        assert cell.source == text, again
        assert tags(cell) == tags(written), again
    ran = notebook.metadata["fedlib"]
    assert ran["page"] == driver.page_digest(notebook), again
    assert ran["parameters"] == {"profile": "full"}, again
    assert not [output for output in outputs(notebook) if output.output_type == "error"]
    assert not driver.failed_checks(notebook)
    checked = [cell for cell in notebook.cells if "nbval-check-output" in tags(cell)]
    assert checked
    assert all(cell.outputs for cell in checked)


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
    hidden = 0
    shown = 0
    for cell in code_cells(source.stem):
        lines = len(cell.source.splitlines())
        if {"remove-input", "remove-cell"} & {*tags(cell)}:
            hidden += lines
        else:
            shown += lines
    assert 3 * hidden <= shown


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("small -p lrr 0.1", "execute: there is no parameter of small 'lrr'; nearest: lr."),
        ("small --profile ful", "execute: there is no profile 'ful'; nearest: full."),
        ("smal", "execute: there is no notebook 'smal'; nearest: small."),
        ("small -p lr 1 -p lr 2", "execute: parameter lr must be given once, got 1 and 2."),
    ],
)
def test_what_is_not_known_is_refused(driver, small, capsys, arguments, sentence):
    small()
    assert driver.main(arguments.split()) == 1
    assert capsys.readouterr().err == f"error: {sentence}\n"


def test_a_check_that_says_no_fails_unless_the_parameters_are_the_readers(driver, small, capsys):
    check("two is even", True)
    check("three is even", False)
    printed = capsys.readouterr().out
    folder = small(f"print({printed!r})")
    assert driver.main(["small"]) == 1
    message = "every check must hold in profile 'quick', got NO for 'three is even'"
    assert message in capsys.readouterr().err
    assert driver.main(["small", "-p", "lr", "2", "--out", str(folder)]) == 0


def test_two_executions_leave_the_same_but_for_their_times(driver, small):
    folder = small(PICTURE)
    words = ["small", "-p", "lr", "[0.1, 1]", "--out", str(folder)]
    executions = []
    for _ in range(2):
        assert driver.main(words) == 0
        notebook = nbformat.read(folder / "small.ipynb", as_version=4)
        assert 0 < notebook.metadata["fedlib"].pop("ran")["cpu_s"] < 60
        executions.append(nbformat.writes(notebook))
    assert executions[0] == executions[1]
    first_cell = notebook.cells[0].source.splitlines()
    assert first_cell[:2] == [
        "profile = 'quick'  # quick or full",
        "lr = [0.1, 1]  # step size",
    ]
    shown = str(outputs(notebook))
    assert "[0.1, 1]" in shown
    assert "<b>x</b>" in shown  # a reader's own run shows its pictures


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
