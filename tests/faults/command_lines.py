"""Command lines with a mistake, and the word that the refusal must hold."""

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

from judging import ROOT

RUN, OTHER = "np_workshop/hard", "np_workshop/soft"
COMPARE = ("compare", RUN, OTHER)

#: For `python -m papers`.
PAPERS: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    ((), ("command",)),
    (("reproduc",), ("reproduc",)),
    (("--bogus",), ("--bogus", "command")),
    (("reproduce",), ("study",)),
    (("reproduce", "cartpol"), ("nearest: cartpole",)),
    (("reproduce", ""), ("study",)),
    (("reproduce", "../np_workshop"), ("study",)),
    (("reproduce", "cartpole", "fairness"), ("fairness",)),
    (("reproduce", "np_workshop", "--profile"), ("--profile",)),
    (("reproduce", "np_workshop", "--profile", "ful"), ("profile",)),
    (("reproduce", "np_workshop", "--profile", ""), ("profile",)),
    (("reproduce", "np_workshop", "--device", "gpu"), ("device",)),
    (("reproduce", "np_workshop", "--device", "cuda:x"), ("device",)),
    (("reproduce", "np_workshop", "--device", "cuda:99"), ("device",)),
    (("reproduce", "np_workshop", "--device", "cpu:1"), ("device",)),
    (("reproduce", "np_workshop", "--device", ""), ("device",)),
    (("reproduce", "np_workshop", "--runs", "sofft_*"), ("runs",)),
    (("reproduce", "np_workshop", "--runs", ""), ("runs",)),
    (("reproduce", "np_workshop", "--runs", "[hard"), ("runs",)),
    (("reproduce", "np_workshop", "--recompute", "yes"), ("yes",)),
    (("reproduce", "np_workshop", "--rounds", "5"), ("--rounds",)),
    (("claims", "fedsgm/C1"), ("fedsgm/C1",)),
    (("claims", "--all"), ("--all",)),
    (("health", "np_worksho"), ("nearest: np_workshop",)),
    (("health", "np_workshop", "--every"), ("--every",)),
    (("health", "cartpole"), ("cartpole",)),
    (("record", "fedsgm/C99"), ("nearest",)),
    (("record", "fedsgm"), ("name",)),
    (("record", "--reason"), ("--reason",)),
    (("record", "--amend", "yes"), ("name",)),
    (("restamp",), ("study", "--from-commit")),
    (("restamp", "all"), ("--from-commit",)),
    (("restamp", "nothing", "--from-commit", "HEAD"), ("study",)),
    (("restamp", "np_workshop", "--from-commit", "no such commit"), ("git",)),
    (("restamp", "np_workshop", "--from-commit", "--help"), ("--from-commit",)),
    (("restamp", "np_workshop", "--from-commit", "HEAD", "--name", "a"), ("name",)),
    (("restamp", "np_workshop", "--from-commit", "HEAD", "--name", "a=b=c"), ("name",)),
    (("compare",), ("first",)),
    (("compare", RUN), ("second",)),
    (("compare", RUN, "np_workshop"), ("second",)),
    (("compare", RUN, "np_workshop/"), ("second",)),
    (("compare", RUN, "np_workshop/hrad"), ("nearest: hard",)),
    (("compare", "np_worksho/hard", OTHER), ("first",)),
    (("compare", RUN, f"{OTHER}@ful"), ("second",)),
    (("compare", RUN, f"{OTHER}@"), ("second",)),
    (("compare", RUN, f"{OTHER}@../full"), ("second",)),
    (("compare", RUN, "np_workshop/../np_workshop/soft"), ("second",)),
    (("compare", RUN, "np_workshop/numbers"), ("second",)),
    (("compare", RUN, "nothing.json"), ("nothing.json",)),
    (("compare", RUN, "."), ("second",)),
    (("compare", RUN, "data.json/"), ("second", "data.json")),
    (("compare", RUN, "results/np_workshop/full/numbers.json"), ("numbers.json",)),
    (("compare", RUN, OTHER, "third/run"), ("third/run",)),
    ((*COMPARE, "--metric"), ("--metric",)),
    ((*COMPARE, "--metric", "loss"), ("metric",)),
    ((*COMPARE, "--metric", ""), ("metric",)),
    ((*COMPARE, "--figure"), ("--figure",)),
    ((*COMPARE, "--figure", "a.pdf"), ("figure",)),
    ((*COMPARE, "--figure", "a"), ("figure",)),
    ((*COMPARE, "--figure", ""), ("figure",)),
    ((*COMPARE, "--figure", ".svg"), ("figure",)),
    ((*COMPARE, "--figure", "folder.svg"), ("folder.svg",)),
    ((*COMPARE, "--figure", "a file/below.svg"), ("below.svg",)),
    ((*COMPARE, "--figure", "taken.svg"), ("taken.csv",)),
    ((*COMPARE, "--figure", "taken.png"), ("taken.csv",)),
    ((*COMPARE, "--force", "yes"), ("yes",)),
]


def with_parameter(study: str, name: str, value: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A notebook's command line with one parameter."""
    return (study, "-p", name, value), (name,)


#: For `python notebooks/execute.py`.
EXECUTE: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    ((), ("name",)),
    (("np_workshp",), ("nearest: np_workshop",)),
    (("",), ("notebook",)),
    (("../execute",), ("notebook",)),
    (("np_workshop.py",), ("nearest: np_workshop",)),
    (("np_workshop", "cartpole"), ("cartpole",)),
    (("np_workshop", "--profile", "ful"), ("profile",)),
    (("np_workshop", "--profile", ""), ("profile",)),
    (("np_workshop", "--profile"), ("--profile",)),
    (("note_partial", "--profile", "ful"), ("profile",)),
    (("np_workshop", "-p", "rounds"), ("-p",)),
    (("np_workshop", "-p"), ("-p",)),
    (("np_workshop", "-p", "rounds", "3", "-p", "rounds", "5"), ("rounds",)),
    (("np_workshop", "-q", "rounds", "3"), ("-q",)),
    with_parameter("np_workshop", "round", "3"),
    with_parameter("np_workshop", "", "3"),
    with_parameter("np_workshop", "study", "3"),
    with_parameter("np_workshop", "rounds", "2.5"),
    with_parameter("np_workshop", "rounds", "0"),
    with_parameter("np_workshop", "rounds", "-1"),
    with_parameter("np_workshop", "rounds", "many"),
    with_parameter("np_workshop", "rounds", "true"),
    with_parameter("np_workshop", "rounds", "[3]"),
    with_parameter("np_workshop", "rounds", "1e3"),
    with_parameter("np_workshop", "rounds", ""),
    with_parameter("np_workshop", "lr", "abc"),
    with_parameter("np_workshop", "lr", "0"),
    with_parameter("np_workshop", "lr", "-0.1"),
    with_parameter("np_workshop", "lr", "1e999"),
    with_parameter("np_workshop", "lr", "nan"),
    with_parameter("np_workshop", "lr", "true"),
    with_parameter("np_workshop", "lr", "1+2j"),
    with_parameter("np_workshop", "lr", "(" * 300),
    with_parameter("np_workshop", "lr", "0,1"),
    with_parameter("np_workshop", "seeds", "[]"),
    with_parameter("np_workshop", "seeds", "3"),
    with_parameter("np_workshop", "seeds", "['a']"),
    with_parameter("np_workshop", "seeds", "[0, 0]"),
    with_parameter("np_workshop", "seeds", "[0.5]"),
    with_parameter("np_workshop", "seeds", "[-1]"),
    with_parameter("np_workshop", "seeds", "{0: 1}"),
    with_parameter("np_workshop", "seeds", "range(3)"),
    with_parameter("np_workshop", "local_steps", "0"),
    with_parameter("np_workshop", "beta", "-1"),
    with_parameter("np_workshop", "tolerance", "-1"),
    with_parameter("np_workshop", "recompute", "yes"),
    with_parameter("np_workshop", "recompute", "1"),
    with_parameter("np_workshop", "device", "gpu"),
    with_parameter("np_workshop", "device", "cuda:99"),
    with_parameter("np_workshop", "device", "3"),
    with_parameter("np_workshop", "profile", "ful"),
    with_parameter("np_workshop", "profile", "none"),
    with_parameter("np_unified", "participants", "0"),
    with_parameter("np_unified", "participants", "1000"),
    with_parameter("cartpole", "participants", "11"),
    with_parameter("fairness", "batch", "0"),
    with_parameter("note_partial", "instances", "1.5"),
    with_parameter("note_partial", "seed", "a"),
    with_parameter("note_weakly_convex", "delta", "[1]"),
    (("all", "-p", "rounds", "3", "-p", "lr", "0.1"), ("rounds", "lr")),
    (("all", "--out", "one.ipynb"), ("--out",)),
    (("np_workshop", "--jobs", "0"), ("--jobs",)),
    (("np_workshop", "--jobs", "-2"), ("--jobs",)),
    (("np_workshop", "--jobs", "two"), ("--jobs",)),
    (("np_workshop", "--jobs"), ("--jobs",)),
    (("np_workshop", "--out"), ("--out",)),
    (("np_workshop", "--out", "taken.csv"), ("--out",)),
    (("np_workshop", "--out", "page.html"), ("--out",)),
    (("np_workshop", "--out", "a file"), ("--out",)),
    (("np_workshop", "--out", "a file/below"), ("--out",)),
    (("np_workshop", "--out", "a file/below.ipynb"), ("--out",)),
    (("np_workshop", "--out", "/proc/nothing"), ("--out",)),
]

#: For `python -m benchmarks` and the programs beside it.
BENCHMARKS: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [
    ("benchmarks", ("W9",), ("W9",)),
    ("benchmarks", ("W1", "w3"), ("w3",)),
    ("benchmarks", ("--algorithm", "FedProx"), ("--algorithm",)),
    ("benchmarks", ("--variant", "fast"), ("--variant",)),
    ("benchmarks", ("--memory", "much"), ("--memory",)),
    ("benchmarks", ("--passes", "0"), ("--passes",)),
    ("benchmarks", ("--passes", "many"), ("--passes",)),
    ("benchmarks", ("--threads", "0"), ("--threads",)),
    ("benchmarks", ("--threads", "-1"), ("--threads",)),
    ("benchmarks", ("--device", "gpu"), ("device",)),
    ("benchmarks", ("--device", "cuda:99"), ("device",)),
    ("benchmarks", ("--json",), ("--json",)),
    ("benchmarks", ("--json", "."), ("--json",)),
    ("benchmarks", ("--json", "a file/below.json"), ("--json",)),
    ("benchmarks", ("--json", ""), ("--json",)),
    ("benchmarks", ("--bogus",), ("--bogus",)),
    ("benchmarks.cartpole", ("--rounds", "0"), ("--rounds",)),
    ("benchmarks.cartpole", ("--seeds", "1", "0"), ("--seeds",)),
    ("benchmarks.cartpole", ("--device", "gpu"), ("device",)),
    ("benchmarks.frankwolfe", ("--sides", "0"), ("--sides",)),
    ("benchmarks.frankwolfe", ("--rows", "1.5"), ("--rows",)),
    ("benchmarks.multiobjective", ("--passes", "-3"), ("--passes",)),
    ("benchmarks.ssca", ("--json", "folder.svg"), ("--json",)),
]

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
