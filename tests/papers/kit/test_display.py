"""What a page leaves where no notebook displays it: printed tables, and figures as files."""

import re
import runpy
import sys
from pathlib import Path

import pandas as pd
import pytest

from papers.kit import display, plot
from tests.helpers.expect import refuses

ROOT = Path(__file__).resolve().parents[3]


#: Parameters of pages, those that a page has.
SMALL = {"profile": "'quick'", "seeds": "2", "rounds": "3", "settle_rounds": "5"}


def line():
    """A figure with one line."""
    figure = plot.figure()
    figure.subplots().plot([0, 1], [2.0, 3.0])
    return figure


def test_a_figure_of_a_program_is_a_file_whose_place_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    plot.show(line(), alt="A line.")
    (path,) = tmp_path.rglob("*.png")
    printed = capsys.readouterr().out
    assert printed.startswith(f"Figure in {path.relative_to(tmp_path)}: A line.")


def test_a_folder_that_cannot_be_written_to_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "_build").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    words = "show: _build/figures/*must be a folder that can be written to, got 'Not a directory'"
    refuses(
        words,
        plot.show,
        line(),
        alt="A line.",
        error=OSError,
    )


def test_a_wide_table_is_printed_row_by_row(capsys):
    narrow = pd.DataFrame({"a": [1, 2]}, index=["x", "y"])
    assert display.displayed(narrow) is narrow
    assert capsys.readouterr().out == "   a\nx  1\ny  2\n\n"
    display.show("Both", pd.DataFrame({"why": ["because " * 20], "none": [""]}, index=["x"]))
    assert capsys.readouterr().out.splitlines()[:2] == ["Both", "x"]
    display.displayed(narrow.style.format(precision=2))
    assert "1" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", ["np_workshop", pytest.param("tutorial_own", marks=pytest.mark.weekly)]
)
def test_a_source_is_a_program_without_jupyter(name, tmp_path, monkeypatch, capsys):
    source = (ROOT / "notebooks" / "src" / f"{name}.py").read_text(encoding="utf-8")
    for parameter, small in SMALL.items():
        assignment = re.compile(rf"^{parameter} = \S+", flags=re.MULTILINE)
        source = assignment.sub(f"{parameter} = {small}", source)
    program = tmp_path / f"{name}.py"
    program.write_text(source, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "IPython", None)
    runpy.run_path(str(program), run_name="__main__")
    printed = capsys.readouterr().out
    figures = [*(tmp_path / "_build" / "figures" / name).iterdir()]
    assert len(figures) == printed.count("Figure in ") >= 3
    assert ("fedsgm/C4" in printed) == (name == "np_workshop")
