"""The hooks of `.pre-commit-config.yaml`, called as pre-commit calls them with all files."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from process import ran

ROOT = Path(__file__).resolve().parents[2]
CONFIG = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
HOOKS = {hook["id"]: hook for repo in CONFIG["repos"] for hook in repo["hooks"]}


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """The tracked Python files, the types that the hooks ask for, in a tree of their own."""
    place = tmp_path_factory.mktemp("clone")
    names = ran(
        "git", "ls-files", "*.py", "*.pyi", "pyproject.toml", cwd=ROOT, check=True
    ).stdout.split()
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place / name)
    return place, [name for name in names if name.endswith((".py", ".pyi"))]


def call(hook, place, names):
    """A hook on some files: its status, and those that it has rewritten."""
    assert hook["language"] == "system"
    assert hook["types_or"] == ["python", "pyi"]
    before = {name: (place / name).read_bytes() for name in names}
    words = shlex.split(hook["entry"])
    words[0] = words[0].replace(".venv/bin/", f"{Path(sys.executable).parent}/")
    done = subprocess.run([*words, *names], cwd=place, capture_output=True, check=False)
    return done.returncode, [n for n in names if (place / n).read_bytes() != before[n]]


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_passes_on_all_files_and_rewrites_none(hook, clone):
    assert call(HOOKS[hook], *clone) == (0, [])


def test_a_file_that_is_not_formatted_is_rewritten(clone):
    place, _ = clone
    (place / "fedlib" / "ugly.py").write_text('"""One."""\nx = {  "a":1 }\n', encoding="utf-8")
    assert call(HOOKS["ruff-format"], place, ["fedlib/ugly.py"]) == (0, ["fedlib/ugly.py"])
