"""The public names: complete, and known to type checkers and editors without running anything."""

import inspect
import pkgutil
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path

import jedi
import pytest

import fedlib
from fedlib import algorithms

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "own_model.py"
#: Folders of ingredients, and the methods of which every ingredient has one.
PLUGGED = {
    "compress": {"encode"},
    "sets": {"lmo"},
    "steps": {"__call__", "eta"},
    "weights": {"__call__"},
}
PARTS = {"Columns", "Wire"}  # of which formats of messages are made


def classes_of(package):
    """The dataclasses that the files of a folder define."""
    folder = import_module(f"fedlib.{package}")
    for file in pkgutil.iter_modules(folder.__path__):
        module = import_module(f"{folder.__name__}.{file.name}")
        for value in vars(module).values():
            defined_here = getattr(value, "__module__", "") == module.__name__
            if defined_here and inspect.isclass(value) and is_dataclass(value):
                yield value


def has(record, method):
    """Whether a class defines a method, itself or by a base."""
    return any(method in vars(base) for base in record.__mro__[:-1])


def test_every_method_is_in_the_list():
    methods = {method.__name__ for method in classes_of("algorithms") if hasattr(method, "round")}
    assert methods == {*algorithms.__all__}
    assert len(methods) == len(algorithms.ALGORITHMS)


@pytest.mark.parametrize("package", PLUGGED)
def test_every_ingredient_is_in_the_list_of_its_folder(package):
    ingredients = {
        ingredient.__name__
        for ingredient in classes_of(package)
        if any(has(ingredient, method) for method in PLUGGED[package])
    }
    assert ingredients
    assert ingredients - PARTS <= {*import_module(f"fedlib.{package}").__all__}


@pytest.mark.parametrize("package", ["algorithms", "core", "testing", *PLUGGED])
def test_what_a_folder_offers_stands_at_the_top(package):
    folder = import_module(f"fedlib.{package}")
    for name in folder.__all__:
        assert getattr(fedlib, name) is getattr(folder, name)
        assert name in fedlib.__all__


@pytest.mark.weekly
def test_mypy_knows_every_public_name(tmp_path, monkeypatch):
    """Strict; `make types` checks the user's program on every change."""
    from mypy import api

    names = tmp_path / "names.py"
    names.write_text(f"from fedlib import {', '.join(sorted(fedlib.__all__))}\n", encoding="utf-8")
    monkeypatch.chdir(ROOT)
    report, _, status = api.run([str(names)])
    assert not status, report


def test_an_editor_completes_names_and_parameters():
    text = "import fedlib as fl\nfl.FedS"
    assert "FedSGM" in {completion.name for completion in jedi.Script(text).complete()}
    text = "import fedlib as fl\nfl.problems.from_cl"
    assert "from_clients" in {completion.name for completion in jedi.Script(text).complete()}
    (signature,) = jedi.Script("import fedlib as fl\nfl.FedAvg(").get_signatures()
    assert {"lr", "participants"} <= {parameter.name for parameter in signature.params}


def test_the_user_s_program_runs(capsys):
    exec(
        compile(EXAMPLE.read_text(encoding="utf-8"), EXAMPLE.name, "exec"),
        {"__name__": "own"},
    )
    sizes = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert sizes == ["0.1", "0.3", "1.0"]


def test_the_library_says_that_it_is_typed():
    assert (Path(fedlib.__file__).parent / "py.typed").is_file()
