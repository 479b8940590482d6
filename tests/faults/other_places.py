"""Other places: locales, folders, users, clocks. Each must give the same verdicts and numbers.

A probe runs in a copy of the checkout as a process: the verdicts of a study,
a small run computed anew, its file, and the commit it is said to come from.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from judging import ROOT, Outcome, main

PROBE = """
import hashlib, json, os, sys, warnings
from pathlib import Path

if sys.flags.warn_default_encoding:  # torch leaves it open, too
    warnings.filterwarnings("ignore", category=EncodingWarning)
    warnings.filterwarnings("error", category=EncodingWarning, module="(fedlib|papers)[.]")

import fedlib as fl
from fedlib.core import provenance
from papers import STUDIES
from papers.__main__ import main
from papers.kit import store

one = STUDIES["np_workshop"]
spec = {**one.specs(one.resolve("quick"))}["hard"]
trace = fl.run(spec.algorithm, spec.problem, rounds=5, seeds=(0, 1), progress=False)
held = {part: {k: v.tolist() for k, v in getattr(trace, part).items()} for part in ("metrics",)}
numbers = json.dumps({**held, "w": trace.state.w.tolist()}, sort_keys=True)
claims = [
    (claim.id, done.outcome.label, done.outcome.measured, done.outcome.reason)
    for study in ("np_workshop",)
    for claim in STUDIES[study].claims
    for done in [STUDIES[study].evaluate(claim)]
]
stored = len([*store.results_dir().glob("np_workshop/full/*.json")])
shown = main(["compare", "np_workshop/hard", "np_workshop/soft"])
print("Bézier, α ≤ β: 0.5 ± 0.1")
try:
    trace.save(Path(sys.argv[1]) / "probe.json")
    saved = fl.Trace.load(Path(sys.argv[1]) / "probe.json").metrics["f"].tolist()
except OSError as error:
    saved = str(error)
print("PROBE" + json.dumps({
    "numbers": hashlib.sha256(numbers.encode()).hexdigest(),
    "saved": saved, "shown": shown, "claims": claims, "stored": stored,
    **{k: provenance.versions()[k] for k in ("commit", "dirty")},
}))
"""


TOGETHER = 4  # places at a time
STUDIES = ("np_workshop",)


@dataclass(frozen=True)
class Place:
    """Where and how the probe runs.

    `prepare` makes the checkout of a place out of an empty folder; `commit` says whether the probe
    must know the commit; `same` are the parts that must be as they are here.
    """

    name: str
    env: Mapping[str, str | None] = field(default_factory=dict)
    prepare: Callable[[Path], Path] = lambda _: ROOT
    words: tuple[str, ...] = ()
    cwd: str | None = None
    commit: bool = True
    nobody: bool = False
    saves: bool = True


def cloned(folder: str, *, git: bool = True) -> Callable[[Path], Path]:
    """A checkout of its own in a folder of this name."""

    def prepare(at: Path) -> Path:
        target = at / folder
        target.mkdir(parents=True)
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, target)
        for name in ("fedlib", "papers", *(f"results/{study}" for study in STUDIES)):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, target / name, ignore=ignored)
        if git:
            repository(target, "fedlib", "papers")
        return target

    return prepare


def repository(folder: Path, *tracked: str) -> None:
    """Make a folder a repository with one commit of some of its files."""
    name = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
    for words in (("init", "-q"), ("add", "-f", *tracked), (*name, "commit", "-q", "-m", "all")):
        subprocess.run(("git", *words), cwd=folder, check=True, capture_output=True)


def within_another(at: Path) -> Path:
    """A copy in the folder of a repository that is not ours."""
    (at / "theirs").mkdir()
    (at / "theirs" / "notes.txt").write_text("theirs", encoding="utf-8")
    repository(at / "theirs", "notes.txt")
    return cloned("theirs/site-packages", git=False)(at)


def unpacked_over_another(at: Path) -> Path:
    """A copy without history at the top of a repository that does not hold it."""
    place = cloned("theirs", git=False)(at)
    (place / "notes.txt").write_text("theirs", encoding="utf-8")
    repository(place, "notes.txt")
    return place


def installed(at: Path) -> Path:
    """The wheel's packages in a folder inside another repository, the results beside them."""
    target = at / "lib"
    (at / "notes.txt").write_text("theirs", encoding="utf-8")
    repository(at, "notes.txt")
    source = cloned("source", git=False)(at)
    pip = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation")
    subprocess.run((*pip, "--target", str(target), str(source)), check=True, capture_output=True)
    shutil.move(source / "results", target / "results")
    shutil.rmtree(source)
    return target


def linked(at: Path) -> Path:
    """A link to a checkout."""
    (at / "link").symlink_to(cloned("real")(at))
    return at / "link"


def sealed(at: Path) -> Path:
    """A checkout in which nobody may write."""
    place = cloned("sealed")(at)
    subprocess.run(("chmod", "-R", "a-w,a+rX", str(place)), check=True)
    return place


def anothers(at: Path) -> Path:
    """A checkout that belongs to somebody else, of which git says nothing."""
    place = cloned("checkout")(at)
    for path in (place, *place.rglob("*")):
        os.chown(path, 65534, 65534)
    return place


def with_git(script: str) -> Callable[[Path], Path]:
    """A checkout beside a `git` that does something else."""

    def prepare(at: Path) -> Path:
        (at / "bin").mkdir()
        (at / "bin" / "git").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (at / "bin" / "git").chmod(0o755)
        return cloned("checkout")(at)

    return prepare


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
HASHED = {"PYTHONHASHSEED": "12345"}
PLACES = (
    Place("as it is"),
    Place("locale C", {"LC_ALL": "C"}),
    Place("locale POSIX, not coerced", {**ASCII, "LC_ALL": "POSIX"}),
    Place("ASCII everywhere", {**ASCII, "PYTHONIOENCODING": "ascii"}),
    Place("output in ISO-8859-1", {"PYTHONIOENCODING": "iso-8859-1"}),
    Place("output in UTF-16", {"PYTHONIOENCODING": "utf-16-le:backslashreplace"}),
    Place("a locale that is not installed", {"LC_ALL": "tr_TR.ISO-8859-9", "PYTHONUTF8": "0"}),
    Place("a text's encoding left open is an error", {"PYTHONWARNDEFAULTENCODING": "1"}),
    Place("warnings are errors", words=("-W", "error")),
    Place("optimized", {"PYTHONOPTIMIZE": "1"}),
    Place("optimized, no docstrings", {"PYTHONOPTIMIZE": "2"}),
    Place("another seed of hashes", HASHED),
    Place("another time zone", {"TZ": "Pacific/Kiritimati"}),
    Place("a narrow terminal", {"COLUMNS": "20", "TERM": "dumb"}),
    Place("no HOME", {"HOME": None}),
    Place("HOME that is not there", {"HOME": "/nowhere", "XDG_CACHE_HOME": None}),
    Place("no place for temporary files", {"TMPDIR": "/nowhere"}),
    Place("another working folder", cwd="/"),
    Place("no git", {"PATH": "/nowhere"}, commit=False),
    Place("git of a hook", {"GIT_DIR": "/nowhere", "GIT_INDEX_FILE": "/nowhere/index"}),
    Place("git that fails", {"PATH": "BIN"}, with_git("exit 128"), commit=False),
    Place("git that hangs", {"PATH": "BIN"}, with_git("exec /bin/sleep 600"), commit=False),
    Place("a folder with spaces", prepare=cloned("a folder with spaces")),
    Place("a folder with other letters", prepare=cloned("Überprüfung – 検証")),
    Place("a folder with other letters, ASCII everywhere", ASCII, cloned("Überprüfung – 検証")),
    Place("a link to the checkout", prepare=linked),
    Place("no history", prepare=cloned("plain", git=False), commit=False),
    Place("within another's repository", prepare=within_another, commit=False),
    Place("unpacked over another's repository", prepare=unpacked_over_another, commit=False),
    Place("a wheel installed elsewhere", prepare=installed, commit=False),
    Place("a read-only checkout", prepare=sealed, nobody=True),
    Place("another user's checkout", prepare=anothers, commit=False),
    Place("a folder that cannot be written to", nobody=True, saves=False),
    Place("files for oneself alone", prepare=cloned("checkout"), words=("UMASK",)),
)


def probed(place: Place, at: Path) -> tuple[int, str, str]:
    """Exit status, output and errors of the probe in a place."""
    checkout = place.prepare(at)
    out = at / "out"
    out.mkdir()
    at.chmod(0o755)
    if not place.saves:
        out.chmod(0o555)
    env = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}
    env |= {"MPLCONFIGDIR": str(at / "mpl"), "FEDLIB_RESULTS": ""}
    env |= {k: v.replace("BIN", str(at / "bin")) for k, v in place.env.items() if v is not None}
    env = {k: v for k, v in env.items() if place.env.get(k, "") is not None}
    words = [sys.executable, *(word for word in place.words if word != "UMASK")]
    (at / "probe.py").write_text(PROBE, encoding="utf-8")
    words += [str(at / "probe.py"), str(out)]
    if place.nobody and os.geteuid() == 0:  # whom permissions bind
        words = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", *words]
    mask = 0o077 if "UMASK" in place.words else -1
    done = subprocess.run(
        words, cwd=place.cwd or checkout, env=env, umask=mask, check=False, capture_output=True,
        timeout=600,
    )  # fmt: skip
    coded = "utf-16-le" if "utf-16" in env.get("PYTHONIOENCODING", "") else "latin-1"
    return done.returncode, done.stdout.decode(coded), done.stderr.decode("utf-8", "replace")


@functools.cache
def at_home() -> dict[str, object]:
    """What the probe says here."""
    with tempfile.TemporaryDirectory() as name:
        return answer(*probed(PLACES[0], Path(name)))


def answer(status: int, said: str, wrong: str) -> dict[str, object]:
    """What a probe found; ValueError with what it said in its place."""
    line = next((line for line in said.splitlines() if line.startswith("PROBE")), "")
    if status or not line:
        raise ValueError(f"exit status {status}: {wrong[-400:]}")
    if wrong:
        raise ValueError(f"on stderr: {wrong[-400:]}")
    found: dict[str, object] = json.loads(line.removeprefix("PROBE"))
    return found


def judged(place: Place) -> Outcome:
    """Whether the probe says in a place what it says here, and is honest about the commit."""
    with tempfile.TemporaryDirectory() as name:
        try:
            found = answer(*probed(place, Path(name)))
        except ValueError as error:
            return Outcome(place.name, "obscure", str(error))
        finally:
            subprocess.run(("chmod", "-R", "u+w", name), check=False)
    here = dict(at_home())
    saved, expected = found.pop("saved"), here.pop("saved")
    fits = saved == expected if place.saves else "must be writable" in str(saved)
    commit, own = found.pop("commit"), here.pop("commit")
    known = commit is not None if place.commit else commit is None
    if commit is not None and place.prepare is PLACES[0].prepare:
        known = known and commit == own
    for each in (found, here):
        each.pop("dirty")
    if found == here and fits and known:
        return Outcome(place.name, "good")
    differ = [k for k in found if found[k] != here[k]]
    differ += ["saved"] * (not fits) + [f"commit {commit}"] * (not known)
    return Outcome(place.name, "accepted", f"differs in {', '.join(differ)}")


def outcomes(options: argparse.Namespace) -> Iterable[Outcome]:
    """The probe in every place."""
    at_home()
    with ThreadPoolExecutor(TOGETHER) as pool:
        return list(pool.map(judged, (place for place in PLACES if options.only in place.name)))


if __name__ == "__main__":
    sys.exit(main("Other places: locales, folders, users, no git", outcomes))
