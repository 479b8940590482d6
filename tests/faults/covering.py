"""Which tests execute a line of the library, and a way to run just those, shortest first.

A mutant is tried in a copy of the tree, never in the tree itself. The chart of a copy is made once,
by running the suites below under coverage: the tests that executed each line of `fedlib`, and how
long each took. Tests that compare the digest of the sources with what a stored run says are left
out: they notice every change, whatever it does.

`python covering.py COPY` is for other tools of mutation: it runs, in a copy that git holds, the
tests of what has changed since the last commit, and its exit status says whether one failed.
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
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: What is copied; the rest of the tree is linked.
COPIED = ("fedlib", "papers", "tests", "results")
#: The parts of the chart, quick ones first: the library's own tests, and its doctests.
SUITES = (
    *(f"tests/fedlib/{name}" for name in ("compress", "sets", "steps", "weights", "policy")),
    *(f"tests/fedlib/{name}" for name in ("test_metrics.py", "vertical", "data", "problems")),
    *("fedlib", "tests/fedlib/core", "tests/fedlib/testing", "tests/fedlib/algorithms"),
)
#: Tests that notice a changed source by its digest; and two that run every method many times.
LEFT_OUT = "not fresh and not stale and not fingerprint and not held_to_account and not grid_with"
PLAIN = ["-q", "-x", "-p", "no:cacheprovider"]
CHART = "chart"
LIBRARIES = ("torch.fx", "jaxtyping", "pandas", "scipy.optimize", "sklearn.datasets", "hypothesis")
#: Seconds of tests that a mutant may cost, in two helpings; what is granted beyond them.
QUICK, BUDGET, GRACE = 3.0, 30.0, 60.0
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


@lru_cache(maxsize=1)
def chart_of(tree: Path) -> dict[str, dict]:
    """The chart of a copy: seconds of every test that passes, and the tests of every line."""
    took: dict[str, float] = {}
    lines: dict[str, dict] = defaultdict(lambda: defaultdict(list))
    for suite in SUITES:
        path = part_of(tree, suite)
        if not path.is_file():
            program = [sys.executable, str(Path(__file__).resolve()), str(tree), "--chart", suite]
            subprocess.run(program, cwd=tree, env=environment(tree), check=True, stdout=-3)
        part = json.loads(path.read_text(encoding="utf-8"))
        took |= part["tests"]
        for file, held in part["lines"].items():
            for line, names in held.items():
                lines[file][line] += names
    return {"tests": took, "lines": lines}


def part_of(tree: Path, suite: str) -> Path:
    """Where the chart of one suite is kept."""
    return tree / CHART / f"{suite.replace('/', '-')}.json"


def environment(tree: Path) -> dict[str, str]:
    """As in CI: no data that must be downloaded, one thread; the copy's packages, no plugins."""
    none = {"FEDLIB_DATA": str(tree / "no-data"), "PYTHONPATH": str(tree)}
    return {**os.environ, **none, "OMP_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


class Recorder:
    """A plugin of pytest: every test is a context of its own, and its time is kept."""

    def __init__(self, coverage: object) -> None:
        self.coverage, self.took, self.failed = coverage, defaultdict(float), set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        found = yield
        self.coverage.switch_context("")
        return found

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.took[report.nodeid] += report.duration
        if report.outcome != "passed":
            self.failed.add(report.nodeid)


def make_chart(tree: Path, suite: str) -> None:
    """Run a suite under coverage, in the copy, and write its part of the chart."""
    import coverage

    measured = coverage.Coverage(data_file=None, source=[str(tree / "fedlib")])
    recorder = Recorder(measured)
    measured.start()
    plain = [one for one in PLAIN if one != "-x"]
    pytest.main([*plain, suite, "-k", LEFT_OUT], plugins=[recorder])
    measured.stop()
    data, lines = measured.get_data(), {}
    passed = {name: round(t, 3) for name, t in recorder.took.items() if name not in recorder.failed}
    for file in sorted(data.measured_files()):
        lines[str(Path(file).relative_to(tree))] = {
            line: sorted(set(contexts) & set(passed))
            for line, contexts in sorted(data.contexts_by_lineno(file).items())
        }
    part_of(tree, suite).parent.mkdir(exist_ok=True)
    part_of(tree, suite).write_text(json.dumps({"tests": passed, "lines": lines}), encoding="utf-8")


def concerned(chart: dict[str, dict], path: str, changed: Iterable[int]) -> list[list[str]]:
    """The tests of the changed lines in two helpings, shortest first.

    The first: quick ones of the mirrored folder. The second: the others that execute the line, then
    all of the test files that execute the module, as a line that runs while a module is imported
    belongs to no test, and what a shared fixture or a cache keeps belongs to the first alone.
    """
    took, held = chart["tests"], chart["lines"].get(path, {})
    own = {name for line in changed for name in held.get(str(line), ())}
    module = {name for tests in held.values() for name in tests}
    files = {name.split("::")[0] for name in module}
    wide = {name for name in took if name.split("::")[0] in files}
    mirrored = {name for name in own or wide if name.startswith(f"tests/{folder_of(path)}/")}
    first = within(took, [mirrored], QUICK)
    rest = within(took, [own - set(first), module - own, wide - module], BUDGET)
    return [first, [name for name in rest if name not in first]]


def folder_of(path: str) -> str:
    """The folder of a file, as text."""
    return path.rsplit("/", 1)[0]


def within(took: dict[str, float], groups: list[set[str]], seconds: float) -> list[str]:
    """The tests of some groups, each shortest first, as many as take so long."""
    chosen, spent = [], 0.0
    for group in groups:
        for name in sorted(group, key=took.__getitem__):
            spent += took[name]
            if spent < seconds:
                chosen.append(name)
    return chosen


def new_tests(chart: dict[str, dict], tree: Path, path: str) -> list[str]:
    """Test files of the mirrored folder that are newer than its part of the chart: run whole."""
    folder, known = (tree / "tests" / path).parent, {name.split("::")[0] for name in chart["tests"]}
    part = part_of(tree, str(folder.relative_to(tree)))
    if not part.is_file():  # a module of the package's own folder
        return [str(p.relative_to(tree)) for p in folder.glob(f"test_{Path(path).stem}.py")]
    found = {str(p.relative_to(tree)): p.stat().st_mtime for p in folder.glob("test_*.py")}
    made = part.stat().st_mtime
    return [name for name, written in found.items() if name not in known or written > made]


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
    if "--chart" in sys.argv:
        make_chart(place, sys.argv[3])
    elif "--serve" in sys.argv:
        serve(place)
    else:
        sys.exit(main(place))
