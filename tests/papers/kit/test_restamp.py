"""Restamping: only what was fresh and whose definitions are the same gets a new digest."""

import hashlib
import json
import subprocess

import pytest
from expect import refuses

from fedlib.core.files import digest, read_json, write_json
from papers.kit import fingerprint
from papers.kit import restamp as restamping
from papers.kit.replay import Played
from papers.kit.restamp import Replay, restamp

#: A library whose store has digests of another form: of the bytes of its files.
STORE = """
import hashlib
from pathlib import Path

def is_fresh(payload):
    here = Path(__file__).parent
    whole = b"".join((here / name).read_bytes() for name in ("method.py", "helpers.py"))
    return payload["provenance"]["code"] == hashlib.sha256(whole).hexdigest()
"""
METHOD = """
from fedlib import helpers

class Method:
    def round(self):
        return helpers.twice(2.0)
"""
HELPERS = """
def twice(x):
    return x + x

def problem(seed):
    return seed
"""


def git(folder, *words):
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    command = ("git", *who, *words)
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, encoding="utf-8")
    return done.stdout.strip()


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A repository with one commit of a little library, and its folder of packages."""
    library = tmp_path / "fedlib"
    library.mkdir()
    files = {"__init__": "", "store": STORE, "method": METHOD, "helpers": HELPERS}
    for name, text in files.items():
        (library / f"{name}.py").write_text(text, encoding="utf-8")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")
    monkeypatch.setattr(fingerprint, "ROOT", tmp_path)
    fingerprint._source.cache_clear()
    return library


def edit(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    fingerprint._source.cache_clear()


def stored(place, roots=("method:Method", "helpers:problem"), code=None):
    """A stored run, fresh unless another digest is given."""
    whole = (METHOD + HELPERS).encode()
    held = {"roots": list(roots), "code": code or hashlib.sha256(whole).hexdigest(), "date": "then"}
    path = place.parent / "results" / "toy" / "full" / "run.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    curves = {"metrics": {"f": [[1.5, 0.25]]}}
    content = {"schema": 1, "kind": "run", "key": "one", **curves, "provenance": held}
    write_json(path, {**content, "digest": digest(content)})
    return path


def refused(path, commit="HEAD", names=None):
    """The sentence with which a run is refused; its file stays as it is."""
    before = path.read_bytes()
    done, sentences = restamp([path], commit, names)
    assert done == []
    assert path.read_bytes() == before
    return sentences[path]


def test_a_fresh_run_gets_the_new_digest_and_remembers_the_old(place):
    path = stored(place)
    before = read_json(path)
    assert restamp([path], "HEAD") == ([path], {})
    after = read_json(path)
    (stamp,) = after["provenance"].pop("restamped")
    assert stamp.pop("date") >= "2026"
    assert stamp == {
        "code": before["provenance"]["code"],
        "commit": git(place, "rev-parse", "HEAD")[:12],
    }
    roots = ["fedlib.helpers:problem", "fedlib.method:Method"]
    assert after["provenance"]["roots"] == roots
    assert after["provenance"]["code"] == fingerprint.code_digest(roots)
    for run in (before, after):
        del run["digest"], run["provenance"]["roots"], run["provenance"]["code"]
    assert json.dumps(before) == json.dumps(after)
    assert git(place, "worktree", "list").count("\n") == 0
    assert restamp([path], "HEAD") == ([], {})  # done is done


def test_definitions_may_move_and_be_imported_otherwise(place):
    path = stored(place)
    (place / "helpers.py").rename(place / "tools.py")
    moved = METHOD.replace("import helpers", "import tools").replace("helpers.", "tools.")
    edit(place / "parts" / "method.py", moved)
    (place / "method.py").unlink()
    assert restamp([path], "HEAD") == ([path], {})
    held = read_json(path)["provenance"]
    assert held["roots"] == ["fedlib.parts.method:Method", "fedlib.tools:problem"]
    # the second of two steps starts from digests of the new form
    code = held["code"]
    fresh = f"return payload['provenance']['code'] == {code!r}"
    edit(place / "store.py", f"def is_fresh(payload):\n    {fresh}\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "second")
    edit(place.parent / "papers" / "ours.py", (place / "tools.py").read_text(encoding="utf-8"))
    again = moved.replace("fedlib import tools", "papers import ours as tools")
    edit(place / "parts" / "method.py", again)
    (place / "tools.py").unlink()
    fingerprint._source.cache_clear()
    assert restamp([path], "HEAD") == ([path], {})
    held = read_json(path)["provenance"]
    assert held["roots"] == ["fedlib.parts.method:Method", "papers.ours:problem"]
    assert [stamp["code"] for stamp in held["restamped"]][1] == code == held["code"]


def test_a_run_that_was_stale_is_refused(place):
    sentence = refused(stored(place, code="other"))
    assert sentence.startswith("restamp: toy/full/run was not fresh at commit ")


def test_a_run_is_fresh_only_at_the_commit_that_is_named(place):
    path = stored(place)
    edit(place / "helpers.py", HELPERS.replace("x + x", "2 * x"))
    git(place, "commit", "-qam", "second")
    assert "was not fresh" in refused(path)
    assert "have changed: twice; compute it again" in refused(path, "HEAD^")


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [("x + x", "x - x", "twice"), ("2.0", "3.0", "Method"), ("def twice", "def double", "twice")],
)
def test_a_changed_definition_is_refused_by_name(place, old, new, changed):
    path = stored(place)
    edit(place / "helpers.py", HELPERS.replace(old, new))
    edit(place / "method.py", METHOD.replace(old, new))
    sentence = refused(path)
    assert "definitions that have changed: " in sentence
    assert changed in sentence


def test_a_comment_changes_nothing(place):
    path = stored(place)
    edit(place / "helpers.py", HELPERS.replace("return x +", "# why\n    return x +"))
    assert restamp([path], "HEAD") == ([path], {})


def test_a_root_that_is_gone_or_that_two_could_be_is_refused(place):
    path = stored(place)
    without = HELPERS.partition("def problem")[0]
    edit(place / "helpers.py", without)
    assert "fedlib.helpers:problem, of which today has no equal" in refused(path)
    for name in ("one", "two"):
        edit(place / f"{name}.py", "def problem(seed):\n    return seed\n")
    sentence = refused(path)
    assert "may be any of fedlib.one:problem and fedlib.two:problem" in sentence
    names = {"fedlib.helpers:problem": "fedlib.two:problem"}
    assert restamp([path], "HEAD", names) == ([path], {})
    assert "fedlib.two:problem" in read_json(path)["provenance"]["roots"]


def test_a_root_that_was_not_there_then_is_refused(place):
    assert "fedlib.method:Other, which was not there" in refused(stored(place, ["method:Other"]))


def test_a_file_changed_by_hand_and_an_unknown_commit_stop_it(place):
    path = stored(place)
    refuses("restamp: `git rev-parse --verify` must work", restamp, [path], "nowhere")
    path.write_text(path.read_text(encoding="utf-8").replace("1.5", "1.6"), encoding="utf-8")
    refuses("restore it or reproduce it", restamp, [path], "HEAD")


def test_a_file_of_another_layout_is_refused(place):
    path = stored(place)
    path.write_text(json.dumps(read_json(path)), encoding="utf-8")
    assert "is not written as this version writes it" in refused(path)


def test_code_that_cannot_tell_what_is_fresh_stops_it(place):
    path = stored(place)
    edit(place / "store.py", "x = 1\n")
    git(place, "commit", "-qam", "without")
    refuses("must tell what is fresh, got AttributeError", restamp, [path], "HEAD")


WHY = Replay(3, "another way to write the same number")
RUN = ("toy", "full", "run")
SETTING = {"algorithm": {"type": "Method"}, "rounds": 9}


@pytest.fixture
def rounds(place, monkeypatch):
    """What the code then and the code now answer when the run is replayed."""
    now = Played("one", "bits", ("fedlib.helpers:problem", "fedlib.helpers:twice"), SETTING)
    answers = {"then": {RUN: Played("one", "bits", (), SETTING)}, "now": {RUN: now}}

    def play(tree, runs, count):
        assert runs == [RUN]
        assert count == 3
        return answers["now" if tree == place.parent else "then"]

    monkeypatch.setattr(restamping, "play", play)
    return answers


def test_a_changed_definition_that_gives_the_same_rounds_is_restamped_with_its_reason(
    place, rounds
):
    path = stored(place)
    edit(place / "helpers.py", HELPERS.replace("x + x", "2 * x"))
    assert "have changed: twice; compute it again" in refused(path)  # without a replay
    assert restamp([path], "HEAD", replay=WHY) == ([path], {})
    held = read_json(path)["provenance"]
    assert held["roots"] == ["fedlib.helpers:problem", "fedlib.helpers:twice"]  # those of now
    assert held["code"] == fingerprint.code_digest(held["roots"])
    (stamp,) = held["restamped"]
    assert {k: stamp[k] for k in ("replayed", "reason")} == {"replayed": 3, "reason": WHY.reason}
    assert stamp["commit"] == git(place, "rev-parse", "HEAD")[:12]
    assert stamp["code"] == hashlib.sha256((METHOD + HELPERS).encode()).hexdigest()
    del rounds["now"]  # nothing is left to replay
    assert restamp([path], "HEAD", replay=WHY) == ([], {})


@pytest.mark.parametrize(
    ("when", "answer"),
    [
        ("now", {RUN: Played("one", "other bits", (), SETTING)}),
        ("now", {RUN: Played("two", "bits", (), {**SETTING, "rounds": 8})}),
        ("then", {RUN: Played("two", "bits", (), SETTING)}),
        ("now", {}),
        ("then", {}),
    ],
)
def test_other_bits_another_key_or_a_run_that_is_gone_are_refused(place, rounds, when, answer):
    path = stored(place)
    edit(place / "helpers.py", HELPERS.replace("x + x", "2 * x"))
    rounds[when] = answer
    before = path.read_bytes()
    done, sentences = restamp([path], "HEAD", replay=WHY)
    assert done == []
    assert path.read_bytes() == before
    expected = "restamp: toy/full/run differs in its first 3 rounds; compute it again."
    assert sentences == {path: expected}


def test_a_run_whose_algorithm_has_another_description_gets_its_key_and_remembers_the_old_one(
    place, rounds
):
    path = stored(place)
    edit(place / "helpers.py", HELPERS.replace("x + x", "2 * x"))
    other = {**SETTING, "algorithm": {"type": "Method", "local": {"type": "Adam"}}}
    rounds["now"] = {RUN: rounds["now"][RUN]._replace(key="two", config=other)}
    before = read_json(path)
    assert restamp([path], "HEAD", replay=WHY) == ([path], {})
    after = read_json(path)
    assert (after["key"], after["config"]) == ("two", other)
    assert after["provenance"]["restamped"][0]["key"] == before["key"] == "one"
    same = before.keys() - {"key", "config", "provenance", "digest"}
    assert {k: before[k] for k in same} == {k: after[k] for k in same}


def test_a_replay_makes_no_run_fresh_that_was_stale(place, rounds):
    path = stored(place, code="other")
    edit(place / "helpers.py", HELPERS.replace("x + x", "2 * x"))
    rounds.clear()  # it is not even asked
    _, sentences = restamp([path], "HEAD", replay=WHY)
    assert "was not fresh" in sentences[path]


@pytest.mark.parametrize(("count", "reason"), [(0, "why"), (True, "why"), (3, " ")])
def test_a_replay_has_rounds_and_a_reason(count, reason):
    with pytest.raises((ValueError, TypeError), match=r"^restamp: (replay|reason) must .*\.$"):
        Replay(count, reason)
