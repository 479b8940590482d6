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
CARTPOLE = ("-m", "papers", "reproduce", "cartpole", "--profile", "quick")
SMALL = (*CARTPOLE, "--runs", "soft_none", "--missing")
ALL = ("notebooks/execute.py", "all", "--out", "OUT/quick")
ONE = ("notebooks/execute.py", "--out", os.path.join(tempfile.gettempdir(), "never"))


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


def children(pid: int) -> int:
    """How many processes a process has started."""
    return len(Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split())


def interrupted(
    words: Sequence[str], begun: Callable[[int, Path], object], again: Sequence[str] = ()
) -> tuple[int, str]:
    """A process that gets Ctrl-C, with all its children; then nothing may be half written."""
    with tempfile.TemporaryDirectory() as name:
        folder, said = Path(name) / "results", Path(name) / "said"
        folder.mkdir()
        env = {**os.environ, "PYTHONPATH": str(ROOT), "FEDLIB_RESULTS": str(folder)}
        with said.open("wb") as err:
            started = subprocess.Popen(
                [word.replace("OUT", str(folder)) for word in words], cwd=ROOT, env=env,
                stdout=err, stderr=err, start_new_session=True,
            )  # fmt: skip
        until = time.monotonic() + 180
        while not begun(started.pid, said) and started.poll() is None and time.monotonic() < until:
            time.sleep(0.1)
        time.sleep(2)
        os.killpg(started.pid, signal.SIGINT)
        status = started.wait(timeout=120)
        left = [p.name for p in folder.rglob("*") if p.name.startswith((".part", "."))]
        if left:
            return 9, f"left {left}"
        if again and process(again, FEDLIB_RESULTS=str(folder))[0]:
            return 9, "it does not go on"
        text = said.read_text(encoding="utf-8").replace("\r", "\n").strip()
        return status, text if "Traceback" in text else text.rpartition("\n")[2]


def shows_progress(_: int, said: Path) -> bool:
    return b"%" in said.read_bytes()


def has_children(pid: int, _: Path) -> bool:
    return children(pid) > 0


def has_grandchildren(pid: int, _: Path) -> bool:
    own = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    return any(children(int(one)) for one in own)


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
        (title, partial(interrupted, shown(*SMALL), shows_progress, again), (130,), ("checkpoint",))
        for title, again in (("Ctrl-C in reproduce", ()), ("it goes on", shown(*SMALL)))
    ),
    *(
        (
            f"Ctrl-C in execute --jobs {jobs}",
            partial(interrupted, shown(*ALL, "--jobs", jobs), begun), (130,), ("half written",),
        )
        for begun, jobs in ((has_children, "1"), (has_grandchildren, "2"))
    ),
    (
        "Ctrl-C in benchmarks",
        partial(interrupted, shown("-m", "benchmarks", "W1"), has_children), (130,), ("nothing",),
    ),
    (
        "a participant too many",
        partial(process, shown(*ONE, "cartpole", "-p", "participants", "11")),
        (1,), ("participants",),
    ),
]  # fmt: skip
