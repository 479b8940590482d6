"""The commit that stored files name: that of our own work tree, or none."""

import subprocess

import pytest

from fedlib import provenance

OURS = "fedlib/provenance.py"


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A folder as the root of the library, which is no repository yet."""
    folder = tmp_path / "root"
    (folder / OURS).parent.mkdir(parents=True)
    (folder / OURS).touch()
    monkeypatch.setattr(provenance, "ROOT", folder)
    return folder


def commit(folder, *files):
    author = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
    for words in (
        ("init", "-q"),
        ("add", *files),
        (*author, "commit", "-q", "-m", "x"),
    ):
        subprocess.run(("git", *words), cwd=folder, check=True, capture_output=True)


def found():
    return provenance._commit.__wrapped__()


NONE = {"commit": None, "dirty": False}


def test_our_own_work_tree_and_whether_it_has_changed(root):
    commit(root, OURS)
    clean = found()
    assert len(clean["commit"]) == 12
    assert not clean["dirty"]
    (root / OURS).write_text("x = 1\n", encoding="utf-8")
    assert found() == {"commit": clean["commit"], "dirty": True}


def test_a_repository_that_does_not_hold_our_files_is_not_ours(root):
    (root / "notes.txt").touch()
    commit(root, "notes.txt")
    assert found() == NONE


def test_without_git(root, monkeypatch):
    commit(root, OURS)
    monkeypatch.setenv("PATH", str(root))
    assert found() == NONE
