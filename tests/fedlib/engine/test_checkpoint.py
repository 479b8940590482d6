"""Checkpoints: a run that goes on from one ends bit for bit as one that was left alone."""

import errno
import math
import os
import resource
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
import torch

import fedlib as fl
from fedlib.core.files import PART, Format, atomic_write
from fedlib.engine import checkpoint
from fedlib.engine import loop as walk
from fedlib.engine.batch import BatchedRuns
from fedlib.engine.checkpoint import read_sealed
from fedlib.problems import pareto, quadratics
from tests.helpers.expect import refuses
from tests.helpers.problems import np_problem
from tests.helpers.randoms import normal
from tests.helpers.weekly import further_weekly

SGM = fl.FedSGM(
    lr=0.3, local_steps=3, participants=10, tolerance=0.05, switch=fl.Soft(40.0),
    uplink=fl.TopK(0.1), downlink=fl.TopK(0.1),
)  # fmt: skip
A = torch.ones(4, 2, dtype=torch.float64)
AVG, TOY = fl.FedAvg(lr=0.1, local_steps=1, participants=2), quadratics(A, 0 * A, level=0.5)


def quiet(algorithm, problem=TOY, **options):
    options.setdefault("rounds", 12)
    return fl.run(algorithm, problem, progress=False, **options)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def same(one, other):
    for part in ("metrics", "info"):
        for name, values in getattr(other, part).items():
            np.testing.assert_array_equal(getattr(one, part)[name], values)
    for x, y in zip(one.state, other.state, strict=True):
        assert torch.equal(x, y)


def stopped(monkeypatch, path, after, **settings):
    """A run that Ctrl-C ends once it has done some rounds."""
    step, done = BatchedRuns.compute, []

    def counted(self, state, draw, number=0):
        done.append(1)
        if len(done) > after:
            raise KeyboardInterrupt
        return step(self, state, draw)

    with monkeypatch.context() as patch:
        patch.setattr(BatchedRuns, "compute", counted)
        patch.setattr(walk, "SHORT", math.inf)  # 1, 2, 4, ... rounds, however busy the machine
        with pytest.raises(KeyboardInterrupt):
            quiet(SGM, np_problem, checkpoint=path, checkpoint_seconds=0, **settings)


def test_an_interrupted_run_goes_on_to_the_same_numbers(tmp_path, monkeypatch):
    path = tmp_path / "run.pt"
    settings = {"rounds": 40, "seeds": [0, 1], "evaluate_every": 7}
    stopped(monkeypatch, path, 20, **settings)
    assert read_sealed(path)["round"] == 20
    stopped(monkeypatch, path, 10, **settings)
    assert read_sealed(path)["round"] == 20 + 10
    same(quiet(SGM, np_problem, checkpoint=path, **settings), quiet(SGM, np_problem, **settings))


def test_a_finished_run_is_not_run_again(tmp_path):
    first = quiet(AVG, rounds=60, checkpoint=tmp_path / "c.pt")
    again = quiet(AVG, rounds=60, checkpoint=tmp_path / "c.pt")
    same(again, first)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.5, 0.7, 0.99])
def test_a_flipped_bit_is_refused(tmp_path, share):
    path = tmp_path / "run.pt"
    quiet(AVG, checkpoint=path)
    held = bytearray(path.read_bytes())
    held[int(share * len(held))] ^= 1
    path.write_bytes(held)
    refuses("run: checkpoint run.pt must *", quiet, AVG, checkpoint=path)


LONG = """
import sys, torch, fedlib as fl
from fedlib import problems
a = torch.ones(4, 2, dtype=torch.float64)
fl.run(fl.FedAvg(0.1, 1, 2), problems.quadratics(a, 0 * a, level=0.5), rounds=500,
       evaluate_every=50, checkpoint=sys.argv[1], checkpoint_seconds=0.0, progress=False)
"""


def test_a_killed_run_goes_on_to_the_same_numbers(tmp_path):
    path = tmp_path / "run.pt"
    child = subprocess.Popen([sys.executable, "-c", LONG, path])
    while child.poll() is None and not path.exists():
        time.sleep(0.01)
    child.kill()
    child.wait()
    assert 0 < read_sealed(path)["round"] < 500
    options = {"rounds": 500, "evaluate_every": 50}
    same(quiet(AVG, checkpoint=path, **options), quiet(AVG, **options))


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    path = tmp_path / "run.pt"
    quiet(AVG, checkpoint=path)
    other = replace(AVG, lr=0.2)
    refuses("must belong to this run*other parameters", quiet, other, checkpoint=path)
    refuses("must have at most the run's 5 rounds", quiet, AVG, rounds=5, checkpoint=path)
    same(quiet(AVG, checkpoint=path), quiet(AVG))  # nothing was lost


@pytest.mark.parametrize("every", further_weekly([1, 5, 7], [7]))
def test_a_finished_run_goes_on_when_more_rounds_are_asked_for(every, tmp_path):
    path, settings = tmp_path / "run.pt", {"seeds": [0, 1], "evaluate_every": every}
    quiet(SGM, np_problem, rounds=20, checkpoint=path, **settings)
    more = quiet(SGM, np_problem, rounds=33, checkpoint=path, **settings)
    whole = quiet(SGM, np_problem, rounds=33, **settings)
    same(more, whole)
    assert list(more.rounds) == list(whole.rounds)


def test_a_checkpoint_of_other_data_is_refused(tmp_path):
    path = tmp_path / "run.pt"
    quiet(AVG, checkpoint=path)
    near = quadratics(A * (1 + 1e-12), 0 * A, level=0.5)  # as another machine may round
    quiet(AVG, near, checkpoint=path)
    refuses("other data", quiet, AVG, quadratics(1.1 * A, 0 * A, level=0.5), checkpoint=path)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (5, "must be a Path or a text or None, got 5"),
        (b"run.pt", "must be a Path or a text or None"),
        ("", "must be a file in a writable folder, got ' (it is not a file)'"),
        (".", "must be a file in a writable folder, got '. (it is not a file)'"),
        ("/dev/null", "got '/dev/null (it is not a file)'; name another"),
        ("no/run.pt", "got 'no/run.pt (No such file or directory)'; name another"),
        ("300 letters", "must be a file in a writable folder, got 'xxx*(File name too long)'"),
        ("/proc/run.pt", "must be a file in a writable folder, got '/proc/run.pt (*)'"),
    ],
)
def test_paths_are_checked_before_the_first_round(tmp_path, monkeypatch, name, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(BatchedRuns, "__init__", None)
    name = "x" * 300 if name == "300 letters" else name
    refuses(words, quiet, AVG, checkpoint=name, error=(TypeError, ValueError, OSError))
    assert names(tmp_path) == []


def test_a_full_disk_ends_in_one_sentence_and_the_checkpoint_before_is_whole(tmp_path):
    path, settings = tmp_path / "run.pt", {"rounds": 200, "evaluate_every": 25}
    quiet(AVG, **settings, checkpoint=path)
    size = path.stat().st_size - 1000  # too little for the last one
    path.unlink()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        words = "run: checkpoint run.pt must be written*File too large; the last checkpoint is"
        options = {"checkpoint": path, "checkpoint_seconds": 0, **settings}
        refuses(words, quiet, AVG, error=OSError, **options)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert names(tmp_path) == ["run.pt"]
    assert 0 < read_sealed(path)["round"] < 200
    same(quiet(AVG, checkpoint=path, **settings), quiet(AVG, **settings))


def test_nothing_half_written_remains(tmp_path):
    def fails(file):
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    refuses("nothing was written", atomic_write, tmp_path / "deep" / "x.json", fails, error=OSError)
    assert names(tmp_path / "deep") == []


def test_what_a_killed_process_left_half_written_is_removed_after_a_day(tmp_path):
    code = (
        "import os, signal, sys; from pathlib import Path; from fedlib.core import files\n"
        "files.atomic_write(Path(sys.argv[1]), lambda f: os.kill(os.getpid(), signal.SIGKILL))"
    )
    done = subprocess.run((sys.executable, "-c", code, str(tmp_path / "x")), check=False)
    assert done.returncode == -signal.SIGKILL
    (left,) = names(tmp_path)
    assert left.startswith(PART)
    atomic_write(tmp_path / "y", lambda file: file.write(b"y"))
    assert names(tmp_path) == [left, "y"]  # it may be of a process that is still writing
    os.utime(tmp_path / left, (0, 0))
    atomic_write(tmp_path / "z", lambda file: file.write(b"z"))
    assert names(tmp_path) == ["y", "z"]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_the_umask_is_kept(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        atomic_write(tmp_path / "x", lambda file: file.write(b"x"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == mode


def test_a_checkpoint_of_an_older_version_is_migrated(monkeypatch, tmp_path):
    path = tmp_path / "a.pt"
    quiet(AVG, rounds=5, checkpoint=path)
    refuses_older = Format("checkpoint", checkpoint.FORMAT.version + 1)
    monkeypatch.setattr(checkpoint, "FORMAT", refuses_older)
    rule = f"have version {refuses_older.version} of its format, but it has version"
    refuses(rule, quiet, AVG, checkpoint=path)
    changed = []

    def count(content):
        changed.append(content["round"])
        return content

    reads_older = Format("checkpoint", refuses_older.version, {refuses_older.version - 1: count})
    monkeypatch.setattr(checkpoint, "FORMAT", reads_older)
    same(quiet(AVG, checkpoint=path), quiet(AVG))
    assert changed == [5]
    assert path.read_bytes().startswith(f"fedlib checkpoint {reads_older.version}, ".encode())


class Ended(Exception):
    """An error of a callback, a metric or a schedule."""


def at_call(count, action, result=None):
    """A function that acts at its call number `count`, and before returns `result`."""
    calls = []

    def function(*_):
        calls.append(1)
        if len(calls) == count:
            return action()
        return result

    return function


def fail():
    raise Ended


def interrupt():
    raise KeyboardInterrupt


STEPS = {"rounds": 30, "seeds": [0, 3], "evaluate_every": 4}
COINS = fl.FedAvg(lr=0.1, local_steps=2, participants=2, batch_size=2)
ROWS = pareto(normal(4, 6, 1, 3))


@pytest.mark.parametrize("action", [lambda: True, fail, interrupt])
@pytest.mark.parametrize("method", [COINS, [COINS, replace(COINS, lr=0.2)]])
def test_a_run_that_its_callback_ends_goes_on_to_the_same_numbers(tmp_path, action, method):
    path = tmp_path / "run.pt"
    with suppress(Ended, KeyboardInterrupt):
        quiet(method, ROWS, checkpoint=path, callback=at_call(5, action), **STEPS)
    assert read_sealed(path)["round"] == 16
    again, whole = (quiet(method, ROWS, checkpoint=p, **STEPS) for p in (path, None))
    for one, other in zip(again, whole, strict=True) if type(method) is list else [(again, whole)]:
        same(one, other)
        assert list(one.rounds) == list(other.rounds)


@pytest.mark.parametrize("engine", [fl.Vectorized, fl.Sequential])
@pytest.mark.parametrize("ended", [1, 2, 7, 8, 9, 29])
def test_ctrl_c_in_any_round_leaves_the_last_whole_round(tmp_path, monkeypatch, ended, engine):
    path, step = tmp_path / "run.pt", BatchedRuns.compute

    def ending(self, state, draw, number=0):
        if number == ended:
            raise KeyboardInterrupt
        return step(self, state, draw, number)

    options = {"engine": engine, "schedules": {"lr": fl.PowerLaw(1.0, 0.5)}, **STEPS}
    with monkeypatch.context() as patch:
        patch.setattr(BatchedRuns, "compute", ending)
        with pytest.raises(KeyboardInterrupt):
            quiet(COINS, ROWS, checkpoint=path, **options)
    assert read_sealed(path)["round"] == ended
    same(quiet(COINS, ROWS, checkpoint=path, **options), quiet(COINS, ROWS, **options))


def test_a_schedule_that_fails_leaves_the_last_whole_round(tmp_path):
    def factor(t):
        if t == 12:
            fail()
        return 1 / t

    with pytest.raises(ValueError, match="failed in round 12"):
        quiet(COINS, ROWS, checkpoint=tmp_path / "c", schedules={"lr": factor}, **STEPS)
    assert read_sealed(tmp_path / "c")["round"] == 11


def test_a_metric_that_fails_in_a_later_round_leaves_the_last_whole_round(tmp_path):
    path = tmp_path / "run.pt"
    fifth = at_call(2 * 4 + 1, fail, result={"norm": 1.0})  # of two seeds
    problem = replace(ROWS, host_metrics=fifth)
    with pytest.raises(Ended):
        quiet(COINS, problem, checkpoint=path, **STEPS)
    assert read_sealed(path)["round"] == 16
    assert read_sealed(path)["metrics"]["norm"].shape == (1, 2, 4)


def test_a_run_that_diverges_leaves_a_finite_checkpoint_and_diverges_again_in_the_same_round(
    tmp_path,
):
    path, wild = tmp_path / "run.pt", replace(AVG, lr=1e25)
    texts = []
    for _ in range(2):
        with pytest.raises(fl.Diverged) as caught:
            quiet(wild, rounds=60, checkpoint=path)
        texts.append((str(caught.value), caught.value.round))
    assert texts[0] == texts[1]
    held = read_sealed(path)
    assert 0 < held["round"] <= texts[0][1]
    assert all(x.isfinite().all() for x in held["state"])


def test_a_run_that_fails_in_its_first_round_leaves_no_checkpoint(tmp_path):
    path = tmp_path / "run.pt"
    with pytest.raises(Ended):
        quiet(COINS, ROWS, checkpoint=path, callback=at_call(1, fail), **STEPS)
    assert names(tmp_path) == []


def test_a_stopped_run_is_continued_from_its_trace_too():
    part = quiet(COINS, ROWS, callback=at_call(5, lambda: True), **STEPS)
    assert part.rounds[-1] == 16
    same(quiet(COINS, ROWS, start=part, **STEPS), quiet(COINS, ROWS, **STEPS))
