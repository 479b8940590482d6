"""Bad command lines, damaged stored results and damaged data: each must end in one sentence.

Most cases call the programs' `main` in this process, in a folder of their own, with what computes
taken out: a line that would begin to compute counts as accepted. What depends on a terminal, on
make or on a real signal runs as a process.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import resource
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from unittest import mock

import requests
from command_lines import BENCHMARKS, EXECUTE, PAPERS
from damages import CHANGES, DAMAGES, refuses_everyone
from judging import ROOT, Case, Outcome, judge, main
from programs import MAKE, PROCESSES, process

from fedlib.core import files
from fedlib.data import SOURCES, cache
from papers import STUDIES
from papers import __main__ as papers
from papers.kit import record

TOGETHER = 4  # processes at a time
Attempt = Callable[[], object]


class Began(BaseException):
    """A program began to compute what it should have refused."""


def programs() -> dict[str, Callable[[list[str]], int]]:
    """The command lines by name."""
    for folder in (ROOT, ROOT / "notebooks"):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    names = ("cartpole", "frankwolfe", "multiobjective", "ssca")
    return {
        "papers": papers.main,
        "execute": importlib.import_module("execute").main,
        "benchmarks": importlib.import_module("benchmarks.bench").main,
        **{f"benchmarks.{n}": importlib.import_module(f"benchmarks.{n}").main for n in names},
    }


def refused(program: str, words: Iterable[str], status: tuple[int, ...] = (1, 2)) -> None:
    """Carry out a command line in this process; what it says is raised, what escapes is a bug."""
    out, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
        try:
            code: object = programs()[program]([*words])
        except SystemExit as end:
            code = end.code
        except Began:
            return
        except Exception as error:
            raise RuntimeError(f"a traceback: {type(error).__name__}: {error}") from error
    told(code, said.getvalue(), status)


def told(code: object, said: str, status: tuple[int, ...]) -> None:
    """Raise what a program said as a refusal, if it refused with one of some exit statuses."""
    if code == 0:
        return
    lines = [line for line in said.splitlines() if line and not line.startswith("make: ")]
    text = "\n".join(lines).removeprefix("error: ")
    if code not in status:
        raise RuntimeError(f"exit status {code}: {text}")
    raise ValueError(text)


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """A folder with the stored runs of one study, where nothing can be computed or downloaded."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        place = Path(name)
        place.chmod(0o755)
        shutil.copytree(ROOT / "results" / "np_workshop", place / "results" / "np_workshop")
        (place / "data").mkdir()
        (place / "taken.csv").write_text("mine\n", encoding="utf-8")
        (place / "folder.svg").mkdir()
        (place / "folder.ipynb").mkdir()
        (place / "a file").touch()
        env = {"FEDLIB_RESULTS": str(place / "results"), "FEDLIB_DATA": str(place / "data")}
        stack.enter_context(mock.patch.dict(os.environ, env))
        programs()
        for where, what in (
            ("papers.kit.store.compute", Began()),
            ("execute.produce", Began()),
            ("benchmarks.bench.ProcessPoolExecutor", Began()),
            ("benchmarks.cartpole.measure", Began()),
            ("benchmarks.frankwolfe.oracles", Began()),
            ("benchmarks.multiobjective.generated", Began()),
            ("benchmarks.ssca.generated", Began()),
            ("fedlib.data.cache._stream", requests.ConnectionError("no network")),
        ):
            stack.enter_context(mock.patch(where, side_effect=what))
        os.chdir(place)
        try:
            yield place
        finally:
            os.chdir(before)


def here(attempt: Callable[[Path], object]) -> Attempt:
    """An attempt in a workplace of its own."""

    def attempted() -> object:
        with workplace() as place:
            return attempt(place)

    return attempted


def lines() -> Iterator[Case]:
    """Bad command lines of all programs."""
    for program, table in (("papers", PAPERS), ("execute", EXECUTE)):
        for words, names in table:
            title = f"{program} {shlex.join(words)}"
            yield Case(title, here(lambda _, p=program, w=words: refused(p, w)), names)
    for program, words, names in BENCHMARKS:
        title = f"{program} {shlex.join(words)}"
        yield Case(title, here(lambda _, p=program, w=words: refused(p, w)), names)


READERS = {
    "hard": ("compare", "np_workshop/hard", "np_workshop/soft"),
    "numbers": ("claims",),
    "soft": ("reproduce", "np_workshop", "--runs", "soft"),
}


def results() -> Iterator[Case]:
    """Damaged stored runs and numbers, and damaged records of rules."""
    for file, words in READERS.items():
        for title, damage in {**DAMAGES, **CHANGES}.items():
            if file == "soft" and title in ("missing", "a loop", "a dangling link"):
                continue  # nothing is there: it is computed

            def attempt(place: Path, f: str = file, d: object = damage, w: object = words) -> None:
                path = place / "results" / "np_workshop" / "full" / f"{f}.json"
                with refuses_everyone(path) if d is None else contextlib.nullcontext():
                    if d is not None:
                        d(path)  # type: ignore[operator]
                    refused("papers", w)  # type: ignore[arg-type]

            yield Case(f"{words[0]} with {file}.json {title}", here(attempt), (file,))
    for title in ("empty", "half of it", "no JSON", "a list", "a folder", "unreadable"):
        yield Case(f"record.json {title}", here(partial(bad_record, title)), ("record.json",))


def bad_record(title: str, place: Path) -> None:
    """The record of rules of a study, damaged."""
    path = place / "record.json"
    shutil.copy(record.path_of(STUDIES["np_workshop"]), path)
    damage = DAMAGES[title]
    nobody = refuses_everyone(path) if damage is None else contextlib.nullcontext()
    with mock.patch.object(record, "path_of", return_value=path), nobody:
        if damage is not None:
            damage(path)
        refused("papers", ("record", "np_workshop"))


def places() -> Iterator[Case]:
    """The variables that name folders, given something else."""
    quick = ("reproduce", "np_workshop", "--profile", "quick", "--runs", "hard", "--missing")
    adult = ("reproduce", "fairness", "--profile", "full", "--missing")
    for value in ("a file", "~nobody of this name/x", "missing", "a file/below"):
        for words, variable in ((("claims",), "FEDLIB_RESULTS"), (adult, "FEDLIB_DATA")):
            names = (variable, "numbers.json")

            def attempt(_: Path, n: str = variable, v: str = value, w: object = words) -> None:
                with mock.patch.dict(os.environ, {n: v}):
                    refused("papers", w)  # type: ignore[arg-type]

            yield Case(f"{variable} {value}", here(attempt), names)

    def closed(place: Path) -> None:
        with refuses_everyone(place / "results"):
            refused("papers", quick)

    yield Case("FEDLIB_RESULTS unreadable", here(closed), ("results", "hard.json"))


def data() -> Iterator[Case]:
    """Damaged files of data sets."""
    for name in ("adult", "mnist", "cifar10", "fashion_mnist"):
        first = SOURCES[name].files[0]
        for title in ("missing", "empty", "other bytes", "a folder", "a loop", "unreadable"):

            def attempt(place: Path, n: str = name, t: str = title) -> None:
                path = place / "data" / SOURCES[n].files[0].path
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(b"some bytes")
                damage = DAMAGES.get(t)
                with refuses_everyone(path) if t == "unreadable" else contextlib.nullcontext():
                    if damage is not None:
                        damage(path)
                    try:
                        cache.fetch(n)
                    except cache.DataError as error:
                        raise ValueError(str(error)) from error

            yield Case(f"data: {name} {title}", here(attempt), (Path(first.path).name,))


def stops() -> Iterator[Case]:
    """Full disks and Ctrl-C at the moment of writing; what was there stays as it was."""
    figure = ("compare", "np_workshop/hard", "np_workshop/soft", "--figure", "new.svg")
    for title, words in {"compare --figure": figure, "record": ("record", "np_workshop")}.items():
        for what in ("full disk", "Ctrl-C"):
            yield Case(f"{what} in {title}", here(partial(stopped, what, words)))
    for what in ("full disk", "Ctrl-C"):
        yield Case(f"{what} in write_json", here(partial(stopped, what, None)))


def stopped(what: str, words: tuple[str, ...] | None, place: Path) -> None:
    """Write while the disk is full, or stop when the file is to be named; nothing may be left."""
    path = place / "results" / "np_workshop" / "full" / "hard.json"
    run = files.read_json(path)
    copied = place / "record.json"
    copied.write_text("{}", encoding="utf-8")
    before = {p: p.read_bytes() for p in place.rglob("*") if p.is_file()}

    def rewrite() -> int:
        files.write_json(path, run)
        return 0

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    interrupt = mock.patch("os.replace", side_effect=KeyboardInterrupt)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(mock.patch.object(record, "path_of", return_value=copied))
            if what == "full disk":
                resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
            else:
                stack.enter_context(interrupt)
            if words is None:
                stack.enter_context(mock.patch.object(papers, "list_claims", rewrite))
            refused("papers", words or ("claims",), (2, 130))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        after = {p: p.read_bytes() for p in place.rglob("*") if p.is_file()}
        if after != before:
            raise RuntimeError("what was stored has changed, or a part of a file was left")


def quick_cases() -> list[Case]:
    """All cases that run in this process."""
    return [*lines(), *results(), *places(), *data(), *stops()]


def slow_cases() -> list[Case]:
    """Those that need a process: make, pipes, signals, a kernel."""

    def attempt(run: Callable[[], tuple[int, str]], status: tuple[int, ...]) -> None:
        told(*run(), status)

    cases = [Case(t, partial(attempt, partial(process, w), (1, 2)), n) for t, w, n in MAKE]
    for title, run, status, names in PROCESSES:
        cases.append(Case(title, partial(attempt, run, status), names))
    return cases


def outcomes(options: argparse.Namespace) -> Iterable[Outcome]:
    """Every case, those of other processes first and some at a time."""
    slow = [case for case in slow_cases() if options.only in case.name]
    with ThreadPoolExecutor(TOGETHER) as pool:
        found = list(pool.map(judge, slow))
    return [*found, *(judge(case) for case in quick_cases() if options.only in case.name)]


if __name__ == "__main__":
    sys.exit(main("Bad command lines, damaged results and data", outcomes))
