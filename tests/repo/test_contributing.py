"""What CONTRIBUTING.md prints: its differences apply to this tree, and its programs then run."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FENCE = r"^```{}\n(.*?)^```$"


def blocks(language):
    return re.findall(FENCE.format(language), TEXT, flags=re.M | re.S)


def test_every_addition_applies_and_its_program_runs(tmp_path):
    for folder in ("fedlib", "papers"):
        without = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=without)
    (tmp_path / "results").mkdir()
    for study in (ROOT / "results").iterdir():
        (tmp_path / "results" / study.name).symlink_to(study)
    diffs, programs = blocks("diff"), blocks("python")
    assert len(diffs) == len(programs) == TEXT.count("\n## ") == 4
    git = ("git", "apply", "--whitespace=error", "-")
    for diff in diffs:
        done = subprocess.run(
            git, cwd=tmp_path, input=diff, capture_output=True, encoding="utf-8", check=False
        )
        assert not done.returncode, done.stderr
    ruff = (Path(sys.executable).with_name("ruff"), "check", "--config", ROOT / "pyproject.toml")
    files = re.findall(r"^\+\+\+ b/(\S+)", "\n".join(diffs), flags=re.M)
    done = subprocess.run((*ruff, *files), cwd=tmp_path, capture_output=True, check=False)
    assert not done.returncode, done.stdout.decode()
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "FEDLIB_RESULTS": str(tmp_path / "results")}
    done = subprocess.run(
        (sys.executable, "-c", "\n".join(programs)),
        cwd=tmp_path, env=env, capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr
