"""Which tests execute a line of the library: a chart of a copy of the tree, and what to run of it.

The chart is made once, by running the suites below under coverage: the tests that executed each
line of `fedlib`, and how long each took. Tests that compare the digest of the sources with what a
stored run says are left out: they notice every change, whatever it does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

import pytest

#: The parts of the chart, quick ones first: the library's own tests, and its doctests.
SUITES = (
    *(f"tests/fedlib/{name}" for name in ("compress", "sets", "steps", "weights", "policy")),
    *(f"tests/fedlib/{name}" for name in ("vertical", "data", "problems")),
    *("fedlib", "tests/fedlib/core", "tests/fedlib/testing", "tests/fedlib/algorithms"),
)
#: Two tests that run every method many times.
LEFT_OUT = "not held_to_account and not grid_with"
PLAIN = ["-q", "-x", "-p", "no:cacheprovider"]
CHART = "chart"
#: Seconds of tests that a mutant may cost, in two helpings.
QUICK, BUDGET = 3.0, 30.0


@lru_cache(maxsize=1)
def chart_of(tree: Path) -> dict[str, dict]:
    """The chart of a copy: seconds of every test that passes, and the tests of every line."""
    took: dict[str, float] = {}
    lines: dict[str, dict] = defaultdict(lambda: defaultdict(list))
    for suite in SUITES:
        path = part_of(tree, suite)
        if not path.is_file():
            program = [sys.executable, str(Path(__file__).resolve()), str(tree), suite]
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


if __name__ == "__main__":
    make_chart(Path(sys.argv[1]), sys.argv[2])
