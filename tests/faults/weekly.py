"""Mutations by cosmic-ray: another sample each week, within a time, and the score for the book.

`make mutants` runs it in a clone under _build, since cosmic-ray changes files where they stand:
`python tests/faults/weekly.py [--minutes 60] [--seed 7] [--only steps] [--store]`. The seed is the
week's number if none is given. Survivors are printed, in CI into the job's summary too; they are
for somebody to read, as some are the same program. `--store` writes results/mutants/score.json,
which the book's status page shows. Needs the extra `mutants` of pyproject.toml.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import covering
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult

from fedlib.core.files import SCHEMA, digest, write_json
from fedlib.core.provenance import versions

ROOT = Path(__file__).resolve().parents[2]
CLONE = ROOT / "_build" / "mutants"
CONFIG = "tests/faults/cosmic-ray.toml"
SCORE = ROOT / "results" / "mutants" / "score.json"
#: About as many as an hour tries; what the time does not suffice for is not counted.
MUTANTS_A_MINUTE = 15


def tool(name: str, *arguments: str, minutes: float | None = None) -> None:
    """Run a program of cosmic-ray in the clone; one that takes too long is asked to stop."""
    bin_folder = Path(sys.executable).parent
    path = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.Popen(
        [str(bin_folder / name), *arguments], cwd=CLONE,
        env={**covering.environment(CLONE), "PATH": path}, start_new_session=True,
    )  # fmt: skip
    try:
        process.wait(None if minutes is None else 60 * minutes)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    else:
        if process.returncode:
            sys.exit(f"{name} {' '.join(arguments)}: ended with {process.returncode}.")


def clone() -> None:
    """The last commit, in a clone that git can tell changes of."""
    shutil.rmtree(CLONE, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(CLONE)], check=True)


def sample(database: WorkDB, count: int, seed: int, only: str) -> None:
    """Leave so many mutants, drawn at random, of the modules meant."""

    def order(item: WorkItem) -> str:
        one = item.mutations[0]
        words = f"{seed}|{one.module_path}|{one.operator_name}|{one.occurrence}|{one.operator_args}"
        return hashlib.sha256(words.encode()).hexdigest()

    pending = sorted(database.pending_work_items, key=order)
    meant = [item.job_id for item in pending if only in str(item.mutations[0].module_path)]
    kept = set(meant[:count])
    skipped = WorkResult(worker_outcome=WorkerOutcome.SKIPPED, output="not drawn")
    others = [item.job_id for item in pending if item.job_id not in kept]
    database.set_multiple_results(others, skipped)


def tried(database: WorkDB) -> Iterator[tuple[str, bool, str]]:
    """Of every mutant that was tried: where it stands, whether it was killed, and the change."""
    for item, result in database.completed_work_items:
        if result.worker_outcome == WorkerOutcome.NORMAL:
            one = item.mutations[0]
            changed = [
                line for line in (result.diff or "").splitlines()
                if line[:1] in "+-" and line[:3] not in ("+++", "---")
            ]  # fmt: skip
            where = f"{one.module_path}:{one.start_pos[0]}"
            yield where, result.test_outcome == TestOutcome.KILLED, "  ".join(changed)


def report(found: list[tuple[str, bool, str]], seed: int) -> str:
    """The score and the survivors, as Markdown."""
    left = [f"- `{where}` `{change}`" for where, killed, change in found if not killed]
    head = f"cosmic-ray, seed {seed}: {len(found) - len(left)} of {len(found)} mutants killed."
    return "\n".join([head, "", *left, ""])


def store(found: list[tuple[str, bool, str]], seed: int) -> None:
    """Keep the score for the status page."""
    content = {
        "schema": SCHEMA,
        "kind": "mutants",
        "tool": f"cosmic-ray {version('cosmic-ray')}",
        "seed": seed,
        "tried": len(found),
        "killed": sum(killed for _, killed, _ in found),
        "survived": [[where, change] for where, killed, change in found if not killed],
        "provenance": versions(),
    }
    write_json(SCORE, {**content, "digest": digest(content)})


def main() -> None:
    """Clone, draw, run within the time, and say what survived."""
    parser = argparse.ArgumentParser(description="One-token mutations by cosmic-ray.")
    parser.add_argument("--minutes", type=float, default=60.0, help="for the mutants, charts aside")
    parser.add_argument("--count", type=int, help="how many at most; by default as the time allows")
    parser.add_argument("--seed", type=int, default=datetime.date.today().isocalendar().week)
    parser.add_argument("--only", default="", help="modules whose path holds this text")
    parser.add_argument("--store", action="store_true", help="keep the score for the status page")
    options = parser.parse_args()
    clone()
    covering.chart_of(CLONE)
    tool("cosmic-ray", "init", CONFIG, "session.sqlite")
    tool("cr-filter-operators", "session.sqlite", CONFIG)
    session = str(CLONE / "session.sqlite")
    with use_db(session, WorkDB.Mode.open) as database:
        most = int(MUTANTS_A_MINUTE * options.minutes)
        sample(database, options.count or most, options.seed, options.only)
    tool("cosmic-ray", "exec", CONFIG, "session.sqlite", minutes=options.minutes)
    with use_db(session, WorkDB.Mode.open) as database:
        found = sorted(tried(database))
    text = report(found, options.seed)
    print(text)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(text)
    if options.store:
        store(found, options.seed)


if __name__ == "__main__":
    main()
