"""What CONTRIBUTING.md prints: its differences apply to this tree, and its programs then run."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from process import python, ran

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
sys.path.insert(0, str(ROOT))  # benchmarks/ is no part of the package

from benchmarks.tries import TRIES, printed, seconds  # noqa: E402


def test_every_addition_applies_and_its_program_runs(tmp_path):
    for folder in ("fedlib", "papers"):
        without = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=without)
    (tmp_path / "results").mkdir()
    for study in (ROOT / "results").iterdir():
        (tmp_path / "results" / study.name).symlink_to(study)
    diffs, programs = printed("diff"), printed("python")
    assert len(diffs) == len(programs) == TEXT.count("\n## ") == 4
    git = ("git", "apply", "--whitespace=error", "-")
    for diff in diffs:
        done = ran(*git, cwd=tmp_path, input=diff)
        assert not done.returncode, done.stderr
    ruff = (Path(sys.executable).with_name("ruff"), "check", "--config", ROOT / "pyproject.toml")
    files = re.findall(r"^\+\+\+ b/(\S+)", "\n".join(diffs), flags=re.M)
    done = ran(*ruff, *files, cwd=tmp_path)
    assert not done.returncode, done.stdout
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "FEDLIB_RESULTS": str(tmp_path / "results")}
    page = (tmp_path / "notebooks" / "src" / "clipping.py").read_text(encoding="utf-8")
    done = python("-c", "\n".join([*programs, page]), cwd=tmp_path, env=env)
    assert not done.returncode, done.stderr


def test_first_tries_are_what_is_printed_and_what_was_timed():
    for command in TRIES["study"][2]:
        assert f"\n{command}\n" in TEXT
    held = json.loads((ROOT / "benchmarks" / "tries.json").read_text(encoding="utf-8"))
    timed = {
        k: (its["title"], [s["command"] for s in its["steps"]])
        for k, its in held["results"].items()
    }
    assert timed == {k: (title, [*commands]) for k, (title, _, commands) in TRIES.items()}
    assert held["finished"]


def test_a_try_is_given_as_it_is_printed_and_a_failing_one_ends_all(tmp_path):
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / ".stamp").touch()
    lines = (
        ".venv/.stamp: pins",
        "\tfalse",
        "say: .venv/.stamp",
        "\techo $(WORD) > said",
        "bad:",
        "\tfalse",
    )
    (tmp_path / "Makefile").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "pins").touch()  # younger than the stamp: the environment is taken as it is
    assert seconds('make say WORD="a b"', tmp_path) > 0
    assert (tmp_path / "said").read_text(encoding="utf-8") == "a b\n"
    with pytest.raises(subprocess.CalledProcessError):
        seconds("make bad", tmp_path)
