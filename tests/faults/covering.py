"""Runs just the tests that execute a changed line of the library, shortest first (`charting`).

A mutant is tried in a copy of the tree, never in the tree itself. `python covering.py COPY` is for
other tools of mutation: it runs, in a copy that git holds, the tests of what has changed since the
last commit, and its exit status says whether one failed.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from charting import BUDGET, PLAIN, chart_of, concerned, environment, new_tests

ROOT = Path(__file__).resolve().parents[2]
#: What is copied; the rest of the tree is linked.
COPIED = ("fedlib", "papers", "tests", "results")
LIBRARIES = ("torch.fx", "jaxtyping", "pandas", "scipy.optimize", "sklearn.datasets", "hypothesis")
GRACE = 60.0  # seconds that a mutant is granted beyond what its tests took before
#: A limit is one of CPU time, so that a busy machine kills nothing; times this, of the clock.
PATIENCE = 20


def copy_of_tree(to: Path) -> Path:
    """A copy of the tree in which a source may be changed; what stands there is brought up to date.

    The chart stays; tests that are newer than it are run where their module is concerned.
    """
    to.mkdir(parents=True, exist_ok=True)
    for source in ROOT.iterdir():
        target = to / source.name
        if source.name in COPIED:
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.name not in (".git", "_build", ".hypothesis") and not target.exists():
            target.symlink_to(source)
    return to


class Runner:
    """Runs tests in a copy, each time in a fork of a process that has imported the libraries."""

    def __init__(self, tree: Path) -> None:
        program = [sys.executable, str(Path(__file__).resolve()), str(tree), "--serve"]
        self.process = subprocess.Popen(
            program, cwd=tree, env=environment(tree), encoding="utf-8", stdin=-1, stdout=-1
        )

    def __call__(self, tests: list[str], limit: float) -> tuple[str, float]:
        """What the tests said (empty: all passed), and seconds."""
        self.process.stdin.write(json.dumps([tests, limit]) + "\n")
        self.process.stdin.flush()
        said, seconds = json.loads(self.process.stdout.readline())
        return said, seconds

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def serve(tree: Path) -> None:
    """Answer the lines of a `Runner`: a child for each, which ends with its tests or a limit."""
    for library in LIBRARIES:  # loaded once, here; none of them is ever mutated
        importlib.import_module(library)
    answers = os.fdopen(os.dup(1), "w")
    sys.path.insert(0, str(tree))
    for line in sys.stdin:
        tests, limit = json.loads(line)
        began = time.monotonic()
        said = in_a_child(tree, tests, limit)
        answers.write(json.dumps([said, round(time.monotonic() - began, 2)]) + "\n")
        answers.flush()


def in_a_child(tree: Path, tests: list[str], limit: float) -> str:
    """The first failure of the tests, in a forked process; empty if there is none."""
    log = tree / "tests.log"
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit)))
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        status = 70  # pytest itself broke
        try:
            status = int(pytest.main([*PLAIN, *tests]))
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    end = time.monotonic() + PATIENCE * limit
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
        if time.monotonic() > end:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "no end"
        time.sleep(0.02)
    status = os.waitstatus_to_exitcode(ended[1])
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"no end within {limit:.0f} s of CPU time"
    return "" if status == 0 else first_failure(log)


def first_failure(log: Path) -> str:
    """The line of pytest's summary that names the test."""
    found = re.findall(
        r"^(?:FAILED|ERROR) (.*)$", log.read_text(errors="replace", encoding="utf-8"), flags=re.M
    )
    return found[0] if found else "pytest stopped"


def check_unchanged(tree: Path, run: Runner) -> None:
    """Raise RuntimeError unless a sample of the chart's tests is there and passes."""
    tests = chart_of(tree)["tests"]
    quick = sorted(name for name, seconds in tests.items() if seconds < 0.1)
    for some, options in ((list(tests), ["--collect-only"]), (quick[::30], [])):
        said, _ = run([*some, *options], BUDGET)
        if said:
            raise RuntimeError(
                f"covering: {tree} must pass its tests unchanged: {said}; see tests.log"
            )


Run = Callable[[list[str], float], tuple[str, float]]


def try_change(tree: Path, path: str, changed: Iterable[int], run: Run) -> tuple[str, float]:
    """Which test notices what has changed in a file of the copy (empty: none), and seconds."""
    chart = chart_of(tree)
    quick, rest = concerned(chart, path, changed)
    said, seconds = "", 0.0
    for some in (quick, new_tests(chart, tree, path), rest):
        if some and not said:
            cost = sum(chart["tests"].get(name, 5.0) for name in some)
            said, took = run(some, 2 * cost + GRACE)
            seconds += took
    return said, seconds


def changed_lines(tree: Path) -> dict[str, list[int]]:
    """The files of the library that differ from the last commit, and the lines."""
    program = ["git", "diff", "--unified=0", "--", "fedlib"]
    text = subprocess.run(
        program, cwd=tree, capture_output=True, encoding="utf-8", check=True
    ).stdout
    found, path = defaultdict(list), ""
    for line in text.splitlines():
        if line.startswith("--- a/"):
            path = line[6:]
        elif hunk := re.match(r"@@ -(\d+)(?:,(\d+))? ", line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            found[path] += range(first, first + max(count, 1))
    return found


def main(tree: Path) -> int:
    """Run the tests of what has changed in the copy: 1 if one fails, else 0."""
    os.environ.update(environment(tree))
    sys.path.insert(0, str(tree))

    def run(tests: list[str], limit: float) -> tuple[str, float]:
        return in_a_child(tree, tests, limit), 0.0

    for path, lines in changed_lines(tree).items():
        said, _ = try_change(tree, path, lines, run)
        if said:
            print(said)
            return 1
    return 0


if __name__ == "__main__":
    place = Path(sys.argv[1]).resolve()
    if "--serve" in sys.argv:
        serve(place)
    else:
        sys.exit(main(place))
