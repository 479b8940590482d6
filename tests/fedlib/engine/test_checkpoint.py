"""Checkpoints: a run that goes on from one ends bit for bit as one that was left alone."""

import errno
import math
import os
import resource
import stat
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
from tests.helpers import other_process as program
from tests.helpers.expect import refuses
from tests.helpers.problems import np_problem
from tests.helpers.randoms import normal
from tests.helpers.weekly import further_weekly

SGM = fl.FedSGM(
    lr=0.3,
    local_steps=3,
    participants=10,
    tolerance=0.05,
    switch=fl.Soft(40.0),
    uplink=fl.TopK(0.1),
    downlink=fl.TopK(0.1),
)
A = torch.ones(4, 2, dtype=torch.float64)
AVG = fl.FedAvg(lr=0.1, local_steps=1, participants=2)
TOY = quadratics(A, 0 * A, level=0.5)


def quiet(algorithm, problem=TOY, **options):
    options.setdefault("rounds", 12)
    return fl.run(algorithm, problem, progress=False, **options)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def same(trace, expected):
    """Both traces have the same curves and the same end, digit for digit."""
    assert trace.rounds.tolist() == expected.rounds.tolist()
    for group in ("metrics", "info"):
        curves = getattr(trace, group)
        for name, values in getattr(expected, group).items():
            np.testing.assert_array_equal(curves[name], values)
    for field, expected_field in zip(trace.state, expected.state, strict=True):
        assert torch.equal(field, expected_field)


def stopped(monkeypatch, path, rounds_done, **settings):
    """A run that Ctrl-C ends once it has done some rounds."""
    compute = BatchedRuns.compute
    calls = []

    def interrupted(self, state, draw, number=0):
        calls.append(number)
        if len(calls) > rounds_done:
            raise KeyboardInterrupt
        return compute(self, state, draw)

    with monkeypatch.context() as patch:
        patch.setattr(BatchedRuns, "compute", interrupted)
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
    continued = quiet(SGM, np_problem, checkpoint=path, **settings)
    same(continued, quiet(SGM, np_problem, **settings))


def test_a_finished_run_is_not_run_again(tmp_path, monkeypatch):
    finished = quiet(AVG, rounds=60, checkpoint=tmp_path / "c.pt")
    step = BatchedRuns.step
    calls = []

    def noted(*arguments):
        calls.append(arguments)
        return step(*arguments)

    monkeypatch.setattr(BatchedRuns, "step", noted)
    same(quiet(AVG, rounds=60, checkpoint=tmp_path / "c.pt"), finished)
    assert not calls


def test_a_flipped_bit_is_refused(tmp_path):
    path = tmp_path / "run.pt"
    quiet(AVG, checkpoint=path)
    whole_file = path.read_bytes()
    for share in (0.0, 0.01, 0.3, 0.5, 0.7, 0.99):
        content = bytearray(whole_file)
        content[int(share * len(content))] ^= 1
        path.write_bytes(content)
        refuses("run: checkpoint run.pt must *", quiet, AVG, checkpoint=path)


def test_a_killed_run_goes_on_to_the_same_numbers(other_process):
    path = other_process / "run.pt"
    assert 0 < read_sealed(path)["round"] < program.ROUNDS
    options = {"rounds": program.ROUNDS, "evaluate_every": program.EVALUATE_EVERY}
    same(quiet(AVG, checkpoint=path, **options), quiet(AVG, **options))


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    path = tmp_path / "run.pt"
    quiet(AVG, checkpoint=path)
    faster = replace(AVG, lr=0.2)
    refuses("must belong to this run*other parameters", quiet, faster, checkpoint=path)
    refuses("must have at most the run's 5 rounds", quiet, AVG, rounds=5, checkpoint=path)
    same(quiet(AVG, checkpoint=path), quiet(AVG))  # nothing was lost


@pytest.mark.parametrize("evaluate_every", further_weekly([1, 5, 7], [7]))
def test_a_finished_run_goes_on_when_more_rounds_are_asked_for(evaluate_every, tmp_path):
    path = tmp_path / "run.pt"
    settings = {"seeds": [0, 1], "evaluate_every": evaluate_every}
    quiet(SGM, np_problem, rounds=20, checkpoint=path, **settings)
    continued = quiet(SGM, np_problem, rounds=33, checkpoint=path, **settings)
    same(continued, quiet(SGM, np_problem, rounds=33, **settings))


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
    path = tmp_path / "run.pt"
    settings = {"rounds": 200, "evaluate_every": 25}
    expected = quiet(AVG, **settings, checkpoint=path)
    size = path.stat().st_size - 1000  # too little for the last one
    path.unlink()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        words = "run: checkpoint run.pt must be written*File too large; the last checkpoint is"
        options = {"checkpoint": path, "checkpoint_seconds": 0, **settings}
        refuses(words, quiet, AVG, error=OSError, **options)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert names(tmp_path) == ["run.pt"]
    assert 0 < read_sealed(path)["round"] < 200
    same(quiet(AVG, checkpoint=path, **settings), expected)


def test_nothing_half_written_remains(tmp_path):
    def fails(file):
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    refuses("nothing was written", atomic_write, tmp_path / "deep" / "x.json", fails, error=OSError)
    assert names(tmp_path / "deep") == []


def test_what_a_killed_process_left_half_written_is_removed_after_a_day(other_process):
    folder = other_process / "half"
    (half_written,) = names(folder)
    assert half_written.startswith(PART)
    atomic_write(folder / "y", lambda file: file.write(b"y"))
    assert names(folder) == [half_written, "y"]  # it may be of a process that is still writing
    os.utime(folder / half_written, (0, 0))
    atomic_write(folder / "z", lambda file: file.write(b"z"))
    assert names(folder) == ["y", "z"]


@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o002, 0o664)])
def test_the_umask_is_kept(tmp_path, umask, mode):
    usual_umask = os.umask(umask)
    try:
        atomic_write(tmp_path / "x", lambda file: file.write(b"x"))
    finally:
        os.umask(usual_umask)
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
COINS = fl.FedAvg(
    lr=0.1,
    local_steps=2,
    participants=2,
    batch_size=2,
)
ROWS = pareto(normal(4, 6, 1, 3))


@pytest.mark.parametrize("action", [lambda: True, fail, interrupt])
@pytest.mark.parametrize("grid", [[COINS], [COINS, replace(COINS, lr=0.2)]])
def test_a_run_that_its_callback_ends_goes_on_to_the_same_numbers(tmp_path, action, grid):
    path = tmp_path / "run.pt"
    with suppress(Ended, KeyboardInterrupt):
        quiet(grid, ROWS, checkpoint=path, callback=at_call(5, action), **STEPS)
    assert read_sealed(path)["round"] == 16
    continued = quiet(grid, ROWS, checkpoint=path, **STEPS)
    uninterrupted = quiet(grid, ROWS, **STEPS)
    for trace, expected in zip(continued, uninterrupted, strict=True):
        same(trace, expected)


@pytest.mark.parametrize(
    ("engine", "ended"),
    [
        *((fl.Vectorized, ended) for ended in (1, 2, 7, 8, 9, 29)),
        (fl.Sequential, 8),
    ],
)
def test_ctrl_c_in_any_round_leaves_the_last_whole_round(tmp_path, monkeypatch, ended, engine):
    path = tmp_path / "run.pt"
    compute = BatchedRuns.compute

    def interrupted(self, state, draw, number=0):
        if number == ended:
            raise KeyboardInterrupt
        return compute(self, state, draw, number)

    options = {"engine": engine, "schedules": {"lr": fl.PowerLaw(1.0, 0.5)}, **STEPS}
    with monkeypatch.context() as patch:
        patch.setattr(BatchedRuns, "compute", interrupted)
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


def test_a_run_that_diverges_leaves_a_finite_checkpoint_and_diverges_again_alike(tmp_path):
    path = tmp_path / "run.pt"
    wild = replace(AVG, lr=1e25)
    errors = []
    for _ in range(2):
        with pytest.raises(fl.Diverged) as caught:
            quiet(wild, rounds=60, checkpoint=path)
        errors.append(caught.value)
    assert str(errors[0]) == str(errors[1])
    assert errors[0].round == errors[1].round
    content = read_sealed(path)
    assert 0 < content["round"] <= errors[0].round
    assert all(x.isfinite().all() for x in content["state"])


def test_a_run_that_fails_in_its_first_round_leaves_no_checkpoint(tmp_path):
    path = tmp_path / "run.pt"
    with pytest.raises(Ended):
        quiet(COINS, ROWS, checkpoint=path, callback=at_call(1, fail), **STEPS)
    assert names(tmp_path) == []


def test_a_stopped_run_is_continued_from_its_trace_too():
    stopped_trace = quiet(COINS, ROWS, callback=at_call(5, lambda: True), **STEPS)
    assert stopped_trace.rounds[-1] == 16
    same(quiet(COINS, ROWS, start=stopped_trace, **STEPS), quiet(COINS, ROWS, **STEPS))
