"""Programs that need a process of their own: make, closed pipes, full disks, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from command_lines import COMPARE
from judging import ROOT

PYTHON = sys.executable
SMALL = ("-m", "papers", "reproduce", "cartpole", "--profile", "quick")


def process(words: Sequence[str], **more: str) -> tuple[int, str]:
    """Exit status and stderr of a process in the checkout."""
    done = subprocess.run(
        [*words], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), **more},
        capture_output=True, encoding="utf-8", check=False, timeout=300,
    )  # fmt: skip
    return done.returncode, done.stderr


def make(*words: str) -> tuple[str, ...]:
    """A call of make with the Python of this process."""
    return (
        "make",
        "--no-print-directory",
        "-o",
        ".venv/.stamp",
        f"BIN={Path(PYTHON).parent}",
        *words,
    )


def to_a_closed_pipe(words: Sequence[str]) -> tuple[int, str]:
    """A process whose reader has gone; 0 if it says nothing and ends as a shell counts that."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*words], cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, check=False, timeout=300
        )
    finally:
        os.close(writing)
    quiet = done.returncode == 141 and not done.stderr
    return (2, "closed pipe: nothing is said.") if quiet else (9, repr(done))


def to_a_full_disk(words: Sequence[str]) -> tuple[int, str]:
    """A process whose output cannot be written."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*words], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False, timeout=300
        )
    return done.returncode, os.fsdecode(done.stderr)


def interrupted(words: Sequence[str], wait: float, again: Sequence[str] = ()) -> tuple[int, str]:
    """A process that gets Ctrl-C, with all its children; then nothing may be half written."""
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "PYTHONPATH": str(ROOT), "FEDLIB_RESULTS": folder}
        words = [word.replace("OUT", folder) for word in words]
        started = subprocess.Popen(
            words, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            encoding="utf-8", start_new_session=True,
        )  # fmt: skip
        time.sleep(wait)
        os.killpg(started.pid, signal.SIGINT)
        said = started.communicate(timeout=120)[1]
        left = [p.name for p in Path(folder).rglob("*") if p.name.startswith((".part", "."))]
        if left:
            return 9, f"left {left}"
        if again and process(again, FEDLIB_RESULTS=folder)[0]:
            return 9, "it does not go on"
        last = said.replace("\r", "\n").strip().rpartition("\n")[2]  # after a bar of progress
        return started.returncode, last if "Traceback" not in said else said


def shown(*words: str) -> tuple[str, ...]:
    return (PYTHON, *words)


#: For make: title, command, words of the refusal.
MAKE: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [
    ("make notebook", make("notebook"), ("NAME",)),
    ("make reproduce", make("reproduce"), ("NAME",)),
    ("make notebook NAME=", make("notebook", "NAME=np_workshp"), ("nearest: np_workshop",)),
    ("make notebook ARGS", make("notebook", "NAME=np_workshop", "ARGS=-p round 5"), ("round",)),
    ("make reproduce NAME=", make("reproduce", "NAME=cartpol"), ("nearest: cartpole",)),
    ("make reproduce PROFILE", make("reproduce", "NAME=cartpole", "PROFILE=ful"), ("profile",)),
    ("make reproduce ARGS", make("reproduce", "NAME=cartpole", "ARGS=--runs x"), ("runs",)),
    ("make bench ARGS", make("bench", "ARGS=W9"), ("W9",)),
    ("make notebooks JOBS", make("notebooks", "JOBS=0"), ("--jobs",)),
    ("make bogus", make("bogus"), ("bogus",)),
]

#: What needs a process: title, what runs, exit statuses, words.
PROCESSES: list[
    tuple[str, Callable[[], tuple[int, str]], tuple[int, ...], tuple[str, ...]]
] = [
    *(
        (f"papers {word} to a closed pipe", partial(to_a_closed_pipe, line), (2,), ())
        for word, line in (
            ("claims", shown("-m", "papers", "claims")),
            ("health", shown("-m", "papers", "health", "np_workshop", "--all")),
            ("compare", shown("-m", "papers", *COMPARE)),
        )
    ),
    (
        "papers health to a full disk",
        partial(to_a_full_disk, shown("-m", "papers", "health", "np_workshop", "--all")),
        (2,), ("No space left",),
    ),
    *(
        (f"Ctrl-C after {wait} s of reproduce", partial(interrupted, shown(*SMALL), wait, again),
         (130,), ("checkpoint",))
        for wait, again in ((9.0, ()), (12.0, shown(*SMALL)))
    ),
    *(
        (f"Ctrl-C after {wait} s of execute --jobs {jobs}", partial(
            interrupted,
            shown("notebooks/execute.py", "all", "--out", "OUT/quick", "--jobs", jobs), wait),
         (130,), ("half written",))
        for wait, jobs in ((15.0, "1"), (20.0, "2"))
    ),
    (
        "Ctrl-C in benchmarks",
        partial(interrupted, shown("-m", "benchmarks", "W1"), 12.0), (130,), ("nothing",),
    ),
    (
        "a note that cannot be computed",
        partial(process, shown("notebooks/execute.py", "note_partial", "-p", "rounds", "-3",
                               "--out", "/tmp/never")),
        (1,), ("rounds",),
    ),
]  # fmt: skip
