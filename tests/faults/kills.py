"""Kills at random times: what resumes must end bit for bit as what was left alone.

    python tests/faults/kills.py [--store] [--count N]

Runs of all examples of the library (memory, minibatches, participation; one and two seeds, grids),
and `papers reproduce` of small studies. Everything happens in forks of this process, so that only
one import is paid for, and for most of the work one recording of the round. A fork writes a
checkpoint after every few rounds, is killed (SIGKILL) at a random time, either of all its time or
after its first checkpoint, then another takes over, which may be killed again. A first kill that
comes too late, when the fork has ended, is tried again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import judging
import numpy as np
import torch
from judging import Outcome
from resuming import Run, runs

import fedlib as fl
import papers.__main__ as command_line
from fedlib.core import files
from fedlib.core.files import PART
from fedlib.engine import loop as walk
from fedlib.engine.checkpoint import read_sealed
from papers.kit import store

WHAT = "kills at random times"
COUNT = 200
CAMPAIGN = 30  # of them, of `papers reproduce`
#: Small studies, whole or the runs of a pattern; none measures time.
STUDIES = (("np_workshop", "soft_lr*"), ("cmoo_toy", "plane_*"), ("fw_lowrank", "messages_*"))
MOST = 4  # kills of one run
PAUSE = 0.01  # seconds that a run rests before and after what it writes is on the disk
TRIES = 20  # to hit a fork while it works


class Work:
    """Something to do in forks, with files in a folder; `told` is what it leaves."""

    def __init__(self, name: str, folder: Path, do: Callable[[Path], str]) -> None:
        self.name, self.folder, self.do = name, folder, do
        self.seconds = self.in_rounds = 0.0  # that it takes in all, and from its first file on

    def fork(self) -> int:
        """Begin in a fork, whose process this gives; what it finds goes to a file."""
        process = os.fork()
        if process:
            return process
        with suppress(BaseException):
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            torch.set_num_threads(1)
            try:
                found = self.do(self.folder)
            except BaseException as error:
                found = f"{type(error).__name__}: {error}"
            self.answer.write_text(found, encoding="utf-8")
        os._exit(0)

    @property
    def answer(self) -> Path:
        """Where a fork says what it found."""
        return self.folder.parent / f"{self.folder.name}.answer"

    def whole(self) -> tuple[bool, str]:
        """Carry it out to the end: whether it could, and what it found."""
        self.answer.unlink(missing_ok=True)
        process, began = self.fork(), time.monotonic()
        before, first = self.files(), None
        while not ended(process):
            time.sleep(0.002)
            if first is None and self.files() != before:
                first = time.monotonic()
        self.seconds = time.monotonic() - began
        self.in_rounds = self.seconds if first is None else time.monotonic() - first
        return ": " not in self.answer.read_text(encoding="utf-8"), self.answer.read_text(
            encoding="utf-8"
        )

    def kill(self, rng: np.random.Generator) -> bool:
        """Begin, and kill at a random time; whether it was still at work."""
        before, process = self.files(), self.fork()
        seconds = self.seconds
        if rng.random() < 0.7:  # in the rounds: a fork spends most of its time before them
            seconds = self.in_rounds
            while self.files() == before and not gone(process):
                time.sleep(0.001)
        time.sleep(seconds * rng.random())
        if ended(process):
            return False
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        return True

    def files(self) -> dict[str, int]:
        """The checkpoints and results in the folder, and when they were written."""
        found = {}
        for path in (*self.folder.rglob("*.pt"), *self.folder.rglob("*.json")):
            with suppress(FileNotFoundError):
                found[path.name] = path.stat().st_mtime_ns
        return found

    def clear(self) -> None:
        """Begin anew."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()


def slow(call: Callable[[int], None]) -> Callable[[int], None]:
    """The same with rests, so that kills hit all stages of writing on a busy machine too."""

    def rests(handle: int) -> None:
        time.sleep(PAUSE)
        call(handle)
        time.sleep(PAUSE)

    return rests


def gone(process: int) -> bool:
    """Whether a fork is done; it can still be waited for."""
    return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def ended(process: int) -> bool:
    """Whether a fork is done; it is then no more."""
    return gone(process) and bool(os.waitpid(process, 0))


def kills_of(work: Work, rng: np.random.Generator, most: int) -> Iterator[Outcome]:
    """Up to `most` kills of one piece of work, and what it ends with; one outcome a kill."""
    work.clear()
    alone = work.do(work.folder)  # here, without a stop
    work.clear()
    well, again = work.whole()
    assert well, again
    assert again == alone, f"{work.name}: two runs without a stop differ"
    work.clear()
    killed: list[str] = []
    for _ in range(TRIES):
        if len(killed) == most:
            break
        if work.kill(rng):
            killed.append(state_of(work.folder))
        elif killed:  # it came to its end after the kills before
            break
        else:
            work.clear()
            work.seconds, work.in_rounds = 0.8 * work.seconds, 0.8 * work.in_rounds
    _, resumed = work.whole()
    left = [path.name for path in work.folder.rglob(f"{PART}*")]
    kind = "good" if resumed == alone and not left else "accepted"
    if resumed != alone and ": " in resumed:
        kind = "obscure"
    if not killed:
        print(f"{work.name}: always too late", file=sys.stderr, flush=True)
    for number, where in enumerate(killed):
        yield Outcome(f"{work.name}, kill {number + 1} {where}", kind, f"{resumed} {left}")


def state_of(folder: Path) -> str:
    """How far a killed fork had come."""
    parts = [*folder.rglob(f"{PART}*")]
    held = [read_sealed(path)["round"] for path in folder.rglob("*.pt")]
    stored = len([*folder.rglob("*.json")])
    done = f", {stored} stored" if stored else ""
    return f"at checkpoint {held or 'none'}{done}{', while writing' if parts else ''}"


def a_run(run: Run, folder: Path) -> str:
    """A call of `fedlib.run` with a checkpoint after every chunk."""
    with patch.object(os, "fsync", slow(os.fsync)):
        return run(checkpoint=folder / "run.pt", checkpoint_seconds=0)


def a_study(study: str, pattern: str, folder: Path) -> str:
    """`papers reproduce` in a results folder; what it stored but for times."""
    os.environ["FEDLIB_RESULTS"] = str(folder)
    store.run = partial(fl.run, checkpoint_seconds=0)  # type: ignore[assignment]
    words = ["reproduce", study, "--profile", "quick", "--runs", pattern, "--missing"]
    given: Any = command_line.main(words)
    assert not given, given
    found = {}
    for path in sorted(folder.rglob("*.json")):
        held = files.read_json(path)
        found[path.name] = {k: v for k, v in held.items() if k not in ("provenance", "digest")}
    return files.digest(found)


def kills(count: int, seed: int) -> Iterator[Outcome]:
    """So many kills, of runs and of the campaign."""
    campaign = min(CAMPAIGN, count // 5)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "work"
        every = runs()
        walk.CHUNK = 4  # more checkpoints; the numbers are the same
        rng = np.random.default_rng(seed)
        order = [every[i] for i in rng.permutation(len(every))]
        works = [Work(run.name, folder, partial(a_run, run)) for run in order]
        yield from until(works, count - campaign, seed)
        studies = [Work(f"reproduce {s}", folder, partial(a_study, s, p)) for s, p in STUDIES]
        yield from until(studies, campaign, seed + 1)


def until(works: list[Work], count: int, seed: int) -> Iterator[Outcome]:
    """Go through the works, again if need be, until there are so many kills."""
    rng, done, place = np.random.default_rng(seed), 0, 0
    while done < count:
        most = min(int(rng.integers(3, MOST + 1)), count - done)
        for outcome in kills_of(works[place % len(works)], rng, most):
            print(outcome.name, outcome.kind, file=sys.stderr, flush=True)
            done += 1
            yield outcome
        place += 1


def outcomes(options: argparse.Namespace) -> Iterator[Outcome]:
    """The cases of the command line."""
    return kills(options.count or COUNT, options.seed)


if __name__ == "__main__":
    sys.exit(judging.main(WHAT, outcomes))
