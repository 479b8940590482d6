"""Give stored runs the digest of today without computing them again, where that is proved right.

The only sanctioned way to change a digest: when the form of digests changes, or definitions move
to other modules. A run is restamped if, first, it was fresh at a given commit: the code of that
commit says so, run in a work tree of its own. And if, second, no definition behind it has changed
since: digests of today's form, taken of the sources of then and of now, are equal. All other runs
are refused, and stay as they are. The run remembers the digest and the commit that it came from.

A definition may have changed without changing a bit of a run: a fault that float32 does not see,
say. Such a run is restamped if the code of then and the code of now are both asked for its first
rounds (`papers.kit.replay`) and give the same bits, and if a reason is given. How many rounds were
replayed, and the reason, are remembered with the stamp. So is the key that the run had, if its
algorithm is described in other words today; all else of its configuration must be the same.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from fedlib import checks
from fedlib.core.files import digest, json_text, read_json, write_json
from papers.kit import fingerprint
from papers.kit.fingerprint import Source, source
from papers.kit.replay import Played, Run, play
from papers.kit.seen import PACKAGES

#: Run by the Python of today on the modules of then: which of many provenances are fresh.
ASK = """
import importlib, json, sys
from pathlib import Path
places = ("papers/kit/runfile.py", "papers/kit/store.py", "fedlib/store.py")
place = next(Path(place) for place in places if Path(place).exists())
kit = importlib.import_module(".".join(place.with_suffix("").parts))
assert Path(kit.__file__).is_relative_to(Path.cwd()), kit.__file__
answers = [kit.is_fresh({"provenance": held}) for held in json.load(sys.stdin)]
print(json.dumps(answers))
"""


class Refused(ValueError):
    """A run cannot be restamped; one sentence says why."""


@dataclass(frozen=True)
class Replay:
    """How many rounds of a run are replayed if its definitions have changed, and why they have."""

    rounds: int
    reason: str

    def __post_init__(self) -> None:
        checks.count("restamp", "replay", self.rounds)
        if not self.reason.strip():
            raise ValueError("restamp: reason must say why no number changes, got none.")


class Changed(Refused):
    """Definitions behind a run have changed since."""


def restamp(
    paths: Sequence[Path],
    commit: str,
    names: Mapping[str, str] | None = None,
    replay: Replay | None = None,
) -> tuple[list[Path], dict[Path, str]]:
    """Restamp stored runs that were fresh at `commit`; those that were, and why others were not.

    `names` maps full names of definitions then to full names now, where the definition's own name
    and what it refers to leave a doubt. Runs that are of today's form already are passed over.
    """
    now, done, refused = source(), [], {}
    runs = {path: read_json(path) for path in paths}
    runs = {path: run for path, run in runs.items() if run["kind"] == "run"}
    runs = {path: run for path, run in runs.items() if not _is_done(run["provenance"], now)}
    with _tree(commit) as (tree, full):
        found = _roots_now(runs, tree, full, _Moved(Source(tree), now, names or {}))
        changed = {path: runs[path] for path in runs if isinstance(found[path], Changed)}
        same = _same_rounds(changed, tree, replay.rounds) if replay and changed else {}
    for path, run in runs.items():
        stamp: dict[str, Any] = {"commit": full[:12]}
        new = dict[str, Any]()
        try:
            roots = found[path]
            if isinstance(roots, Changed) and replay:
                if path not in same:
                    raise Refused(f"differs in its first {replay.rounds} rounds; compute it again")
                stamp |= {"replayed": replay.rounds, "reason": replay.reason}
                played = same[path]
                if played.key != run["key"]:
                    stamp |= {"key": run["key"]}
                    new = {"key": played.key, "config": played.config}
                roots = played.roots
            if isinstance(roots, Refused):
                raise roots
            _write(path, run, new, roots, now.digest(roots), stamp)
            done.append(path)
        except Refused as error:
            refused[path] = f"restamp: {'/'.join(_run_of(path))} {error}."
    return done, refused


def _roots_now(
    runs: Mapping[Path, Mapping[str, Any]], tree: Path, full: str, moved: _Moved
) -> dict[Path, tuple[str, ...] | Refused]:
    """The full names now of the roots of every run, or why the run is refused."""
    found: dict[Path, tuple[str, ...] | Refused] = {}
    fresh = _fresh_then(tree, [run["provenance"] for run in runs.values()])
    for (path, run), was_fresh in zip(runs.items(), fresh, strict=True):
        try:
            if not was_fresh:
                raise Refused(f"was not fresh at commit {full[:12]}; compute it again")
            found[path] = moved.roots(run["provenance"]["roots"])
        except Refused as error:
            found[path] = error
    return found


def _same_rounds(
    runs: Mapping[Path, Mapping[str, Any]], tree: Path, rounds: int
) -> dict[Path, Played]:
    """Runs with the same first rounds by another work tree's code and today's, as of today."""
    wanted = [_run_of(path) for path in runs]
    then, now = (play(where, wanted, rounds) for where in (tree, fingerprint.ROOT))
    found = {}
    for path, run in runs.items():
        one, other = then.get(_run_of(path)), now.get(_run_of(path))
        if one and other and one.key == run["key"] and _alike(one, other):
            found[path] = other
    return found


def _alike(then: Played, now: Played) -> bool:
    """Whether two played runs are one, but for the words that describe its algorithm."""
    settings = [{k: v for k, v in x.config.items() if k != "algorithm"} for x in (then, now)]
    return then.rounds == now.rounds and settings[0] == settings[1]


def _run_of(path: Path) -> Run:
    """Study, profile and name of a stored run, by its path."""
    study, profile, name = path.with_suffix("").parts[-3:]
    return study, profile, name


class _Moved:
    """Where the definitions of then are now."""

    def __init__(self, then: Source, now: Source, names: Mapping[str, str]) -> None:
        self.then, self.now, self.names = then, now, names
        self.place = cache(self._place)

    def roots(self, old: Sequence[str]) -> tuple[str, ...]:
        """The full names now of the roots of a run; refused unless all they reach is the same."""
        before = tuple(self._full(root) for root in old)
        after = tuple(sorted(self.place(root) for root in before))
        if self.then.digest(before) != self.now.digest(after):
            held, new = {*self.then.reached(before).values()}, {*self.now.reached(after).values()}
            texts = {entry[:2] for entry in held} ^ {entry[:2] for entry in new}
            changed = ", ".join(sorted({entry[0] for entry in texts or held ^ new}))
            what = f"depends on definitions that have changed: {changed}; compute it again"
            raise Changed(what)
        return after

    def _full(self, root: str) -> str:
        """A root's full name then; once the name of the one package was not written."""
        found = root if root.partition(".")[0] in PACKAGES else f"{PACKAGES[0]}.{root}"
        if self.then.text(found) is None:
            raise Refused(f"names {found}, which was not there; compute it again")
        return found

    def _place(self, old: str) -> str:
        """The full name now of a definition: the one of that name that reaches the same."""
        given = self.names.get(old, old)
        if self.now.text(given) is not None:
            return given
        own = old.partition(":")[2]
        called = [name for name in self.everything if name.partition(":")[2] == own]
        same = [n for n in called if self.now.digest((n,)) == self.then.digest((old,))]
        if len(same) == 1:
            return same[0]
        if same:
            listed = " and ".join(same)
            raise Refused(f"names {old}, which may be any of {listed}; say which is meant")
        raise Changed(f"names {old}, of which today has no equal; compute it again")

    @cached_property
    def everything(self) -> list[str]:
        """The full names of all definitions of today."""
        return list(self.now.names())


def _is_done(held: Mapping[str, Any], now: Source) -> bool:
    """Whether a run has the names and the digest of today."""
    roots = tuple(held["roots"])
    return all(now.text(root) is not None for root in roots) and now.digest(roots) == held["code"]


def _fresh_then(tree: Path, provenances: Sequence[Mapping[str, Any]]) -> list[bool]:
    """Whether the code in another work tree calls runs fresh."""
    done = subprocess.run(
        [sys.executable, "-c", ASK], input=json.dumps(provenances), cwd=tree, check=False,
        capture_output=True, encoding="utf-8", env={**os.environ, "PYTHONPATH": str(tree)},
    )  # fmt: skip
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ValueError(f"restamp: the code of that commit must tell what is fresh, got {last}.")
    answers: list[bool] = json.loads(done.stdout.splitlines()[-1])
    return answers


@contextmanager
def _tree(commit: str) -> Iterator[tuple[Path, str]]:
    """A work tree of a commit, removed at the end, and the commit's full name."""
    full = _git("rev-parse", "--verify", f"{commit}^{{commit}}")
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve() / "tree"
        _git("worktree", "add", "--detach", str(tree), full)
        try:
            yield tree, full
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _git(*words: str) -> str:
    asked = f"restamp: `git {' '.join(words[:2])}` must work"
    try:
        done = subprocess.run(
            ("git", *words), cwd=fingerprint.ROOT, capture_output=True, check=False
        )
    except OSError as error:
        raise ValueError(f"{asked}, got {error.strerror!r}.") from error
    if done.returncode:
        said = " ".join(os.fsdecode(done.stderr).split())
        raise ValueError(f"{asked}, got {said!r}.")
    return os.fsdecode(done.stdout).strip()


def _write(
    path: Path,
    run: Mapping[str, Any],
    new: Mapping[str, Any],
    roots: Sequence[str],
    code: str,
    why: Mapping[str, Any],
) -> None:
    """Write a run with its new stamp and what else is new; nothing else changes, to the byte."""
    if path.read_bytes() != json_text(run).encode():
        raise Refused("is not written as this version writes it; compute it again")
    held = run["provenance"]
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    stamp = {"code": held["code"], **why, "date": today}
    held = {k: v for k, v in held.items() if k != "restamped"} | {
        "roots": list(roots),
        "code": code,
        "restamped": [*held.get("restamped", ()), stamp],
    }
    content = {**run, **new, "provenance": held}
    del content["digest"]
    write_json(path, {**content, "digest": digest(content)})
