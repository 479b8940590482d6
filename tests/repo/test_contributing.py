"""What CONTRIBUTING.md prints: its differences apply to this tree, and its programs then run."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.helpers.process import python, ran

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("fedlib", "papers", "tests", "book", "benchmarks", "examples")
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def printed(language):
    """The blocks of CONTRIBUTING.md in one language, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, flags=re.M | re.S)


def copied(folder, *names):
    """Copies some folders of the tree; the environment in which their modules are found.

    With what Python has compiled of them, which stays valid where a file is not changed.
    """
    for name in names:
        shutil.copytree(ROOT / name, folder / name)
    return {**os.environ, "PYTHONPATH": str(folder)}


def applied(diff, folder):
    """The files that a diff changes or adds."""
    done = ran(
        "git",
        "apply",
        "--whitespace=error",
        "-",
        cwd=folder,
        input=diff,
    )
    assert not done.returncode, done.stderr
    return re.findall(r"^\+\+\+ b/(\S+)", diff, flags=re.M)


def test_every_addition_applies(tmp_path):
    copied(tmp_path, "fedlib", "papers")
    diffs = printed("diff")
    assert len(diffs) == len(printed("python")) == TEXT.count("\n## ") == 5
    files = [file for diff in diffs for file in applied(diff, tmp_path)]
    ruff = (Path(sys.executable).with_name("ruff"), "check", "--config", ROOT / "pyproject.toml")
    done = ran(*ruff, *files, cwd=tmp_path)
    assert not done.returncode, done.stdout


@pytest.mark.weekly
def test_the_programs_of_all_additions_run(tmp_path):
    env = copied(tmp_path, "fedlib", "papers")
    (tmp_path / "results").mkdir()
    for study in (ROOT / "results").iterdir():
        (tmp_path / "results" / study.name).symlink_to(study)
    for diff in printed("diff"):
        applied(diff, tmp_path)
    env["FEDLIB_RESULTS"] = str(tmp_path / "results")
    page = (tmp_path / "notebooks" / "src" / "clipping.py").read_text(encoding="utf-8")
    as_program = f"exec({page!r}, {{'__name__': '__main__'}})"
    done = python(
        "-c",
        "\n".join([*printed("python"), as_program]),
        cwd=tmp_path,
        env=env,
    )
    assert not done.returncode, done.stderr


#: An added file, where tests are that see it, words of their names, and the least that pass.
METHOD = (
    "fedlib/algorithms/clipped.py",
    [
        "tests/fedlib/algorithms",
        "tests/fedlib/core",
        "tests/fedlib/test_docstrings.py",
        "tests/fedlib/test_float64.py",
        "tests/fedlib/test_names.py",
        "tests/repo/test_layers.py",
        "tests/repo/test_benchmarks.py",
        "tests/book/test_book_reader.py",
        "tests/book/test_methods_pages.py",
    ],
    "clipped or has_an_example or at_the_top or every_file_of_algorithms or stored_whole "
    "or from_a_generator or every_method_is_in_the_list",
    30,
)
COMPRESSOR = (
    "fedlib/compress/signs.py",
    [
        "tests/fedlib/compress",
        "tests/fedlib/flower/test_packing.py",
        "tests/fedlib/test_names.py",
        "tests/fedlib/test_docstrings.py",
    ],
    "signs or Signs or ingredient or public or docstring",
    10,
)


@pytest.mark.weekly
@pytest.mark.parametrize(("number", "addition"), [(0, METHOD), (1, COMPRESSOR)])
def test_an_addition_is_one_file_and_three_lines_and_passes_the_tests(tmp_path, number, addition):
    file, tests, words, least = addition
    env = copied(tmp_path, *FOLDERS)
    for name in ("pyproject.toml", "results", "shared", "README.md"):
        if (ROOT / name).exists():
            (tmp_path / name).symlink_to(ROOT / name)
    diff = printed("diff")[number]
    package = file.rpartition("/")[0]
    listings = [f"{package}/__init__.py", "fedlib/testing/examples.py"]
    assert applied(diff, tmp_path) == [file, *listings]
    changed = diff.partition(f"--- a/{listings[0]}")[2]
    assert len(re.findall(r"^[+-](?![+-])", changed, re.M)) == 3
    done = python(
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "--doctest-modules"),
        *("-k", words, file, *tests),
        cwd=tmp_path,
        env=env,
    )
    assert not done.returncode, done.stdout
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > least


@pytest.mark.weekly
def test_the_pins_of_an_added_method_are_printed(tmp_path):
    env = copied(tmp_path, "fedlib", "papers", "tests")
    applied(printed("diff")[0], tmp_path)
    module = "tests.fedlib.algorithms.test_pinned"
    done = python(
        "-m",
        module,
        "ClippedAvg",
        cwd=tmp_path,
        env=env,
    )
    assert done.stdout.startswith('"ClippedAvg 0": {"size":'), done.stderr


#: Tests that see a new study, claim or paper, and the words that choose them.
SEEING = [
    "tests/repo/test_layers.py",
    "tests/repo/test_notebooks.py",
    "tests/papers/test_results.py",
    "tests/papers/test_overview.py",
    "tests/papers/test_study_contract.py",
    "tests/papers/test_verdicts.py",
    "tests/papers/test_figures.py",
    "tests/book/test_prose_numbers.py",
    "tests/book/test_verdict_words.py",
]
NAMES = (
    "clipping or P90 or imports_from or every_claim or every_rule or parameters_cells "
    "or never_comes_from or place_in_the_rule or nothing_else"
)


@pytest.mark.weekly
def test_the_commands_of_a_study_leave_no_test_red_that_sees_it(tmp_path):
    """What CONTRIBUTING says to do, in its order, then types and the tests of all studies."""
    env = copied(tmp_path, *FOLDERS, "notebooks", "results")
    env |= {"OMP_NUM_THREADS": "1"}
    for name in ("pyproject.toml", "README.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    for diff in printed("diff"):
        applied(diff, tmp_path)
    for words in (
        ("-m", "papers", "reproduce", "clipping", "--missing"),
        ("-m", "papers", "claims", "--store"),
        ("notebooks/execute.py", "clipping", "--parameters"),
        ("notebooks/execute.py", "clipping", "--profile", "full"),
        ("notebooks/execute.py", "clipping", "--profile", "quick"),
        ("-m", "mypy"),
        ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", NAMES, *SEEING),
    ):
        done = python(*words, cwd=tmp_path, env=env)
        assert not done.returncode, done.stdout + done.stderr
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 20
