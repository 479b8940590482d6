"""Where packages are missing, or no checkout is there: one sentence, and nothing is written."""

import importlib
import sys

import pytest

import papers.__main__ as command_line
from papers.kit import plot
from tests.helpers.expect import refuses


def test_the_command_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "numpy", None)
    for name in ("papers.__main__", "papers.kit.store"):
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SystemExit) as stopped:
        importlib.import_module("papers.__main__")
    assert stopped.value.code == 2
    sentence = capsys.readouterr().err
    assert sentence.startswith("papers: numpy must be installed")
    assert sentence.count("\n") == 1
    assert "pip install -e . -e ./papers" in sentence


@pytest.mark.parametrize("name", ["matplotlib", "seaborn"])
def test_a_figure_says_what_to_install(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    words = f"papers: {name} must be installed"
    refuses(words, plot.figure, error=ModuleNotFoundError)


def test_an_empty_folder_has_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FEDLIB_RESULTS", str(tmp_path))
    assert command_line.main(["runs"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"no run is stored in {tmp_path}: ")
    assert "hours" not in printed
    assert not [*tmp_path.iterdir()]


def test_verdicts_are_stored_in_a_checkout_alone(tmp_path, monkeypatch, capsys):
    verdicts = tmp_path / "verdicts.json"
    monkeypatch.setattr(command_line, "ROOT", tmp_path)
    monkeypatch.setattr(command_line.papers, "VERDICTS", verdicts)
    assert command_line.main(["claims", "--store"]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(
        "claims: --store must be used in a checkout of the repository, got "
    )
    assert not printed.out
    assert not verdicts.exists()
