"""One-token mutations of the library: each must fail a test.

`python tests/faults/mutations.py [--count 111] [--seed 0] [--only sampling.py] [--store]`. Lines
are drawn at random, and a change of each (`mutating.py`); each mutant meets the tests that
execute its line (`covering.py`) in a copy of the tree under _build. One that no test notices is
`accepted`, unless equivalent.toml says why it is the same program; that listing is made by hand.
What was killed is remembered in a log for as long as the mutated file stays as it is. The first
time takes some minutes more, for the chart of the tests.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import covering
from judging import ROOT, Outcome, main
from mutating import Change, changes, draw

WHERE = (
    "fedlib/algorithms/*.py", "fedlib/compress/*.py", "fedlib/sets/*.py", "fedlib/weights/*.py",
    "fedlib/steps/*.py", "fedlib/core/*.py", "fedlib/metrics.py", "fedlib/problems/*.py",
    "fedlib/data/split*.py", "fedlib/vertical.py",
)  # fmt: skip
COUNT = 111
BUILD = ROOT / "_build" / "mutations"
EQUIVALENT = Path(__file__).with_name("equivalent.toml")


def mutants(count: int, seed: int, only: str = "") -> list[Change]:
    """The drawn changes of the library."""
    paths = sorted(path for pattern in WHERE for path in ROOT.glob(pattern))
    names = {str(path.relative_to(ROOT)): path for path in paths}
    found = [
        one for name, path in names.items() if only in name for one in changes(name, text(path))
    ]
    return draw(found, count, seed)


def text(path: Path) -> str:
    """A source."""
    return path.read_text(encoding="utf-8")


def equivalents() -> dict[tuple[str, str, str], str]:
    """Mutants that are the same program, by file and line before and after, and why."""
    listed = tomllib.loads(text(EQUIVALENT)).get("mutant", [])
    return {(one["path"], one["before"], one["after"]): one["why"] for one in listed}


def judged(one: Change, tree: Path, run: covering.Runner) -> Outcome:
    """What the tests say to a mutant, which is put in the copy and taken out again."""
    source, target = ROOT / one.path, tree / one.path
    try:
        target.write_text(one.of(text(source)), encoding="utf-8")
        said, seconds = covering.try_change(tree, one.path, [one.line], run)
    finally:
        shutil.copy2(source, target)
    print(
        f"{seconds:6.1f} s {'killed by ' + said[:60] if said else 'SURVIVED'} {one.name}",
        flush=True,
    )
    return Outcome(one.name, "good" if said else "accepted", said)


def outcomes(options: argparse.Namespace) -> Iterator[Outcome]:
    """All drawn mutants; those killed before, with the file as it is, from the log."""
    tree = covering.copy_of_tree(BUILD / "tree")
    log, known = BUILD / "killed.json", equivalents()
    killed = json.loads(log.read_text(encoding="utf-8")) if log.is_file() else {}
    with covering.Runner(tree) as run:
        covering.check_unchanged(tree, run)
        for one in mutants(options.count or COUNT, options.seed, options.only):
            state = hashlib.sha256(f"{one.name}|{text(ROOT / one.path)}".encode()).hexdigest()
            why = known.get((one.path, one.text.strip(), one.after.strip()), "")
            if why:
                yield Outcome(one.name, "good", f"equivalent: {why}")
            elif state in killed:
                yield Outcome(one.name, "good", killed[state])
            else:
                outcome = judged(one, tree, run)
                yield outcome
                if outcome.kind == "good":
                    killed[state] = outcome.said
                    log.write_text(json.dumps(killed), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main("one-token mutations of the code", outcomes))
