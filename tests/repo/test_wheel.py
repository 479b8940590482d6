"""The wheels in an environment of their own: what they install, where `papers` reads and writes."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.helpers.process import ran as run

pytestmark = pytest.mark.weekly
ROOT = Path(__file__).resolve().parents[2]


def without(*names):
    return {k: v for k, v in os.environ.items() if k not in names}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """An environment with the wheels of the tracked files; other packages are those of this one."""
    folder = tmp_path_factory.mktemp("wheel")
    listed = run("git", "ls-files", "fedlib", "papers", "pyproject.toml", "README.md", "LICENSE",
                 cwd=ROOT)  # fmt: skip
    for name in listed.stdout.split():
        (folder / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / "tree" / name)
    pip, alone = (sys.executable, "-m", "pip"), ("--no-deps", "--no-index", "-q")
    for tree in (folder / "tree", folder / "tree" / "papers"):
        built = run(*pip, "wheel", tree, "--no-build-isolation", *alone, "-w", folder)
        assert not built.returncode, built.stderr
    assert not run(
        sys.executable,
        "-m",
        "venv",
        "--without-pip",
        folder / "env",
    ).returncode
    wheels = sorted(folder.glob("*.whl"))
    into = ("--python", folder / "env/bin/python", "install", "--ignore-installed")
    done = run(*pip, *into, *alone, *wheels, env=without("PYTHONPATH"))
    assert not done.returncode, done.stderr
    (folder / "here").mkdir()
    return folder


def contents(wheel):
    """The names of the files in a wheel, without those about it."""
    return [n for n in ZipFile(wheel).namelist() if ".dist-info/" not in n]


def test_the_library_installs_itself_alone_and_its_types(installed):
    library, studies = sorted(installed.glob("*.whl"))
    assert {name.split("/")[0] for name in contents(library)} == {"fedlib"}
    assert {"fedlib/py.typed", "fedlib/data/registry.txt"} <= {*contents(library)}
    assert {name.split("/")[0] for name in contents(studies)} == {"papers"}
    tracked = run("git", "ls-files", "papers", cwd=ROOT).stdout.split()
    assert {*tracked} - {*contents(studies)} == {"papers/pyproject.toml"}


def papers(installed, *words, **variables):
    env = without("FEDLIB_RESULTS") | {"PYTHONPATH": sysconfig.get_path("purelib"), **variables}
    return run(installed / "env/bin/papers", *words, cwd=installed / "here", env=env)


def test_what_is_not_there_is_one_sentence_without_make(installed):
    done = papers(installed, "claims")
    assert done.returncode == 2
    assert "set FEDLIB_RESULTS to a folder that has it" in done.stderr
    assert "make reproduce" not in done.stderr


def test_results_go_into_the_current_folder(installed):
    site = installed / "env" / "lib"
    files = sorted(p for p in site.rglob("*") if "__pycache__" not in p.parts)
    words = ("reproduce", "np_workshop", "--profile", "quick", "--runs", "hard")
    done = papers(installed, *words, "--missing")
    assert not done.returncode, done.stderr
    assert (installed / "here/results/np_workshop.json").is_file()
    again = papers(installed, *words)
    assert again.stdout.startswith("np_workshop: 1 of 1 runs equal within "), again.stderr
    assert sorted(p for p in site.rglob("*") if "__pycache__" not in p.parts) == files
