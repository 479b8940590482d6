"""What CONTRIBUTING.md prints: its differences apply to this tree, and its programs then run."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.helpers.process import python, ran

ROOT = Path(__file__).resolve().parents[2]
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
    done = ran("git", "apply", "--whitespace=error", "-", cwd=folder, input=diff)
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
    done = python("-c", "\n".join([*printed("python"), as_program]), cwd=tmp_path, env=env)
    assert not done.returncode, done.stderr


#: Where methods are tested, and the names of the tests that see a new one.
TESTS = (
    *("algorithms", "core", "test_docstrings.py", "test_float64.py", "test_names.py"),
    *("../repo/test_layers.py", "../repo/test_benchmarks.py"),
    *("../book/test_book_reader.py", "../book/test_methods_pages.py"),
)
WORDS = (
    *("clipped", "has_an_example", "at_the_top", "every_file_of_algorithms"),
    *("stored_whole", "from_a_generator", "every_method_is_in_the_list"),
)


@pytest.mark.weekly
def test_a_method_is_one_file_and_three_lines_and_passes_the_tests_of_all_methods(tmp_path):
    env = copied(tmp_path, "fedlib", "papers", "tests", "book", "benchmarks", "examples")
    for name in ("pyproject.toml", "results", "shared", "README.md"):
        if (ROOT / name).exists():
            (tmp_path / name).symlink_to(ROOT / name)
    diff = printed("diff")[0]
    file, *listings = applied(diff, tmp_path)
    assert file == "fedlib/algorithms/clipped.py"
    assert listings == ["fedlib/algorithms/__init__.py", "fedlib/testing/examples.py"]
    changed = diff.partition(f"--- a/{listings[0]}")[2]
    assert len(re.findall(r"^[+-](?![+-])", changed, re.M)) == 3
    tests = [file, *(f"tests/fedlib/{name}" for name in TESTS)]
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", " or ".join(WORDS))
    done = python(*words, *tests, cwd=tmp_path, env=env)
    assert not done.returncode, done.stdout
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 30
    pins = python("-m", "tests.fedlib.algorithms.test_pinned", "ClippedAvg", cwd=tmp_path, env=env)
    assert pins.stdout.startswith('"ClippedAvg 0": {"size":'), pins.stderr


@pytest.mark.weekly
def test_a_compressor_is_one_file_and_three_lines_and_passes_the_tests_of_all_formats(tmp_path):
    env = copied(tmp_path, "fedlib", "papers", "tests")
    for name in ("pyproject.toml", "results", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    diff = printed("diff")[1]
    file, *listings = applied(diff, tmp_path)
    assert file == "fedlib/compress/signs.py"
    assert listings == ["fedlib/compress/__init__.py", "fedlib/testing/examples.py"]
    changed = diff.partition(f"--- a/{listings[0]}")[2]
    assert len(re.findall(r"^[+-](?![+-])", changed, re.M)) == 3
    tests = ("compress", "flower/test_packing.py", "test_names.py", "test_docstrings.py")
    paths = [file, *(f"tests/fedlib/{name}" for name in tests)]
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--doctest-modules")
    chosen = ("-k", "signs or Signs or ingredient or public or docstring")
    done = python(*words, *chosen, *paths, cwd=tmp_path, env=env)
    assert not done.returncode, done.stdout
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 10


#: Tests that see a new study, claim or paper, and the words that choose them.
SEEING = (
    *("repo/test_layers.py", "repo/test_notebooks.py", "papers/test_results.py"),
    *("papers/test_overview.py", "papers/test_study_contract.py", "papers/test_verdicts.py"),
    *("papers/test_figures.py", "book/test_prose_numbers.py", "book/test_verdict_words.py"),
)
NAMES = (
    "clipping",
    "P90",
    "imports_from",
    "every_claim",
    "every_rule",
    "parameters_cells",
    "captions_take",
    "never_comes_from",
    "place_in_the_rule",
    "nothing_else",
)


@pytest.mark.weekly
def test_the_commands_of_a_study_leave_no_test_red_that_sees_it(tmp_path):
    """What CONTRIBUTING says to do, in its order, then types and the tests of all studies."""
    env = copied(tmp_path, "fedlib", "papers", "tests", "book", "notebooks", "results", "examples")
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
        ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", " or ".join(NAMES),
         *(f"tests/{name}" for name in SEEING)),
    ):  # fmt: skip
        done = python(*words, cwd=tmp_path, env=env)
        assert not done.returncode, done.stdout + done.stderr
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 20
