import json
import os
import shutil

import pytest

from fedlib.core.files import read_json
from papers.kit import holding, seen, store


@pytest.fixture
def root(tmp_path):
    """A folder like the repository's, with one file of code."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "fedlib").mkdir()
    (tmp_path / "fedlib" / "code.py").write_text("one = 1\n", encoding="utf-8")
    return tmp_path


@pytest.fixture
def call(root):
    """What one call of the program finds of a key, and how many it had to look for."""

    def called(*keys, make=lambda: [1, "a"]):
        made = []

        def counted():
            made.append(make())
            return made[-1]

        with seen.remembered(root / "_build" / "seen.json", root):
            found = [seen.recalled("kind", key, counted) for key in keys]
        return found, len(made)

    return called


def test_what_was_found_is_found_again_without_looking(call):
    assert call("a", "b", "a") == ([[1, "a"]] * 3, 2)
    assert call("a", "b", make=lambda: "other") == ([[1, "a"]] * 2, 0)
    assert call("c", make=lambda: None) == ([None], 1)


def test_outside_it_is_always_looked_for():
    assert [seen.recalled("kind", "key", lambda n=n: n) for n in range(2)] == [0, 1]


def rewritten(path, text):
    """Write a file and give it the time 5, so that its time tells nothing."""
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(5, 5))


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_text("another text", encoding="utf-8"),
        lambda path: rewritten(path, "text"),  # as it was, set back
        lambda path: path.unlink(),
    ],
    ids=["written", "its time set back", "removed"],
)
def test_a_file_that_is_another_is_looked_at_again(root, call, change):
    path = root / "held.json"
    rewritten(path, "text")
    assert call(path)[1] == 1
    assert call(path)[1] == 0
    change(path)
    assert call(path)[1] == 1


def test_other_code_finds_all_anew(root, call):
    assert call("a")[1] == 1
    (root / "fedlib" / "more.py").touch()
    assert call("a")[1] == 1
    assert call("a")[1] == 0


def test_only_what_the_last_call_used_is_kept(root, call):
    call("a", "b")
    call("b", "c")
    held = json.loads((root / "_build" / "seen.json").read_text(encoding="utf-8"))["found"]
    assert sorted(held) == ["kind b None", "kind c None"]


@pytest.mark.parametrize("text", ["", "[]", '{"code": 1}', "\0", '{"found": {"kind a None": 0}}'])
def test_a_damaged_memory_is_none(root, call, text):
    place = root / "_build" / "seen.json"
    place.parent.mkdir()
    place.write_text(text, encoding="utf-8")
    assert call("a") == ([[1, "a"]], 1)
    assert call("a") == ([[1, "a"]], 0)


def test_an_installed_package_keeps_nothing(root, call):
    (root / "pyproject.toml").unlink()
    assert [call("a")[1], call("a")[1]] == [1, 1]
    assert not (root / "_build").exists()


def test_a_folder_that_cannot_be_written_to_is_none(root, call):
    (root / "_build").touch()
    assert [call("a")[1], call("a")[1]] == [1, 1]


def test_what_raises_is_not_kept(root, call):
    def make():
        raise ValueError("damaged")

    for _ in range(2):
        with pytest.raises(ValueError, match="damaged"):
            call("a", make=make)


def test_a_run_is_read_once_and_a_change_of_it_is_noticed(root, monkeypatch):
    """The other file has the same size and time; it is refused as without a memory."""
    path = root / "np_workshop" / "full" / "hard.json"
    path.parent.mkdir(parents=True)
    shutil.copy2(store.results_dir() / "np_workshop" / "full" / "hard.json", path)
    reads = []
    monkeypatch.setattr(holding, "read_json", lambda path: reads.append(path) or read_json(path))

    def proved():
        with seen.remembered(root / "seen.json", root):
            return holding.proved.__wrapped__(path)

    once = proved()
    assert once == proved() == holding.Proved.of(read_json(path))
    assert len(reads) == 1
    held = path.stat()
    text = path.read_text(encoding="utf-8").replace('"rounds": 100', '"rounds": 101')
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(held.st_atime_ns, held.st_mtime_ns))
    assert path.stat().st_size == held.st_size
    with pytest.raises(ValueError, match="restore it or reproduce"):
        proved()
