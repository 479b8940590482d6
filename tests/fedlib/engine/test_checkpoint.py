"""Checkpoints: a run that goes on from one ends bit for bit as one that was left alone."""

import errno
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
from fedlib.engine.batch import BatchedRuns
from fedlib.engine.checkpoint import read_sealed
from fedlib.problems import pareto, quadratics
from tests.helpers import other_process as program
from tests.helpers.expect import refuses
from tests.helpers.problems import np_problem
from tests.helpers.randoms import normal
from tests.helpers.weekly import further_weekly

A = torch.ones(4, 2).double()
AVG = fl.FedAvg(lr=0.1, local_steps=1, participants=2)
BATCHES = replace(AVG, local_steps=2, batch_size=2)
TOY = quadratics(A, 0 * A, level=0.5)
ROWS = pareto(normal(4, 6, 1, 3))
STEPS = {"rounds": 30, "seeds": [0, 3], "evaluate_every": 4}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.pt"


def go(method=AVG, problem=TOY, rounds=12, **options):
    return fl.run(method, problem, rounds=rounds, **options)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def same(trace, expected):
    """Both traces have the same curves and the same end, digit for digit."""
    assert trace.rounds.tolist() == expected.rounds.tolist()
    curves = trace.metrics | trace.info
    for name, values in (expected.metrics | expected.info).items():
        np.testing.assert_array_equal(curves[name], values)
    for field, expected_field in zip(trace.state, expected.state, strict=True):
        assert torch.equal(field, expected_field)


def assert_resumes(path, *arguments, **options):
    """From the checkpoint, the run ends as it does without one."""
    same(go(*arguments, checkpoint=path, **options), go(*arguments, **options))


def test_a_finished_run_is_not_run_again(path, monkeypatch):
    finished = go(checkpoint=path)
    monkeypatch.setattr(BatchedRuns, "step", None)
    same(go(checkpoint=path), finished)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.5, 0.7, 0.99])
def test_a_flipped_bit_is_refused(path, share):
    go(checkpoint=path)
    content = bytearray(path.read_bytes())
    content[int(share * len(content))] ^= 1
    path.write_bytes(content)
    refuses("run: checkpoint run.pt must *", go, checkpoint=path)


def test_a_killed_run_goes_on_to_the_same_numbers(other_process):
    path = other_process / "run.pt"
    assert 0 < read_sealed(path)["round"] < program.ROUNDS
    assert_resumes(path, rounds=program.ROUNDS, evaluate_every=program.EVALUATE_EVERY)


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        ("must belong to this run*other parameters", {"method": replace(AVG, lr=0.2)}),
        ("must have at most the run's 5 rounds", {"rounds": 5}),
        ("other data", {"problem": quadratics(1.1 * A, 0 * A, level=0.5)}),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(path, words, changes):
    go(checkpoint=path)
    refuses(words, go, checkpoint=path, **changes)
    assert_resumes(path)  # nothing was lost


def test_data_that_another_machine_rounds_otherwise_are_the_same(path):
    go(checkpoint=path)
    go(problem=quadratics(A * (1 + 1e-12), 0 * A, level=0.5), checkpoint=path)


@pytest.mark.parametrize("evaluate_every", further_weekly([1, 5, 7], [7]))
def test_a_finished_run_goes_on_when_more_rounds_are_asked_for(evaluate_every, path):
    top = fl.TopK(0.1)
    method = fl.FedSGM(
        0.3,
        3,
        10,
        0.05,
        switch=fl.Soft(40.0),
        uplink=top,
        downlink=top,
    )
    options = {"seeds": [0, 1], "evaluate_every": evaluate_every}
    go(
        method,
        np_problem,
        rounds=20,
        checkpoint=path,
        **options,
    )
    assert_resumes(
        path,
        method,
        np_problem,
        rounds=33,
        **options,
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (5, "must be a Path or a text or None, got 5"),
        ("", "must be a file in a writable folder, got ' (it is not a file)'"),
        ("/dev/null", "got '/dev/null (it is not a file)'; name another"),
        ("no/run.pt", "got 'no/run.pt (No such file or directory)'; name another"),
        ("x" * 300, "must be a file in a writable folder, got 'xxx*(File name too long)'"),
        ("/proc/run.pt", "must be a file in a writable folder, got '/proc/run.pt (*)'"),
    ],
    ids=str,
)
def test_paths_are_checked_before_the_first_round(tmp_path, monkeypatch, name, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(BatchedRuns, "__init__", None)
    refuses(words, go, checkpoint=name, error=(TypeError, ValueError, OSError))
    assert names(tmp_path) == []


def test_a_full_disk_ends_in_one_sentence_and_the_checkpoint_before_is_whole(path):
    options = {"rounds": 200, "evaluate_every": 25}
    go(checkpoint=path, **options)
    size = path.stat().st_size - 1000  # too little for the last one
    path.unlink()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    words = "run: checkpoint run.pt must be written*File too large; the last checkpoint is"
    frequent = {"checkpoint": path, "checkpoint_seconds": 0}
    try:
        refuses(
            words,
            go,
            error=OSError,
            **frequent,
            **options,
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert names(path.parent) == ["run.pt"]
    assert 0 < read_sealed(path)["round"] < 200
    assert_resumes(path, **options)


def test_nothing_half_written_remains(tmp_path):
    def fails(file):
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    refuses(
        "nothing was written",
        atomic_write,
        tmp_path / "deep" / "x.json",
        fails,
        error=OSError,
    )
    assert names(tmp_path / "deep") == []


def write(path):
    atomic_write(path, lambda file: file.write(b"x"))


def test_what_a_killed_process_left_half_written_is_removed_after_a_day(other_process):
    folder = other_process / "half"
    (half_written,) = names(folder)
    assert half_written.startswith(PART)
    write(folder / "y")
    assert names(folder) == [half_written, "y"]  # it may be of a process that is still writing
    os.utime(folder / half_written, (0, 0))
    write(folder / "z")
    assert names(folder) == ["y", "z"]


@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o002, 0o664)])
def test_the_umask_is_kept(path, umask, mode):
    usual_umask = os.umask(umask)
    try:
        write(path)
    finally:
        os.umask(usual_umask)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_checkpoint_of_an_older_version_is_migrated(monkeypatch, path):
    go(rounds=5, checkpoint=path)
    version = checkpoint.FORMAT.version
    monkeypatch.setattr(checkpoint, "FORMAT", Format("checkpoint", version + 1))
    rule = f"have version {version + 1} of its format, but it has version"
    refuses(rule, go, checkpoint=path)
    migrated = []

    def migrate(content):
        migrated.append(content["round"])
        return content

    newer = Format("checkpoint", version + 1, {version: migrate})
    monkeypatch.setattr(checkpoint, "FORMAT", newer)
    assert_resumes(path)
    assert migrated == [5]
    assert path.read_bytes().startswith(f"fedlib checkpoint {version + 1}, ".encode())


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


def stop():
    return True


def fail():
    raise Ended


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize("action", [stop, fail, interrupt])
def test_a_grid_that_its_callback_ends_goes_on_to_the_same_numbers(path, action):
    grid = [BATCHES, replace(BATCHES, lr=0.2)]
    with suppress(Ended, KeyboardInterrupt):
        go(
            grid,
            ROWS,
            checkpoint=path,
            callback=at_call(5, action),
            **STEPS,
        )
    assert read_sealed(path)["round"] == 16
    resumed = go(grid, ROWS, checkpoint=path, **STEPS)
    for trace, expected in zip(resumed, go(grid, ROWS, **STEPS), strict=True):
        same(trace, expected)


def test_a_stopped_run_is_continued_from_its_trace_too():
    stopped = go(BATCHES, ROWS, callback=at_call(5, stop), **STEPS)
    assert stopped.rounds[-1] == 16
    same(go(BATCHES, ROWS, start=stopped, **STEPS), go(BATCHES, ROWS, **STEPS))


@pytest.mark.parametrize(
    ("engine", "ended"),
    [(fl.Vectorized, 1), (fl.Vectorized, 8), (fl.Vectorized, 29), (fl.Sequential, 8)],
)
def test_ctrl_c_in_any_round_leaves_the_last_whole_round(path, monkeypatch, engine, ended):
    compute = BatchedRuns.compute

    def interrupted(self, state, draw, number=0):
        if number == ended:
            raise KeyboardInterrupt
        return compute(self, state, draw, number)

    options = {"engine": engine, "schedules": {"lr": fl.PowerLaw(1.0, 0.5)}, **STEPS}
    with monkeypatch.context() as patch:
        patch.setattr(BatchedRuns, "compute", interrupted)
        with pytest.raises(KeyboardInterrupt):
            go(BATCHES, ROWS, checkpoint=path, **options)
    assert read_sealed(path)["round"] == ended
    assert_resumes(path, BATCHES, ROWS, **options)


def test_a_schedule_that_fails_leaves_the_last_whole_round(path):
    rule = at_call(12, fail, result=1.0)
    with pytest.raises(ValueError, match="failed in round 12"):
        go(
            BATCHES,
            ROWS,
            checkpoint=path,
            schedules={"lr": rule},
            **STEPS,
        )
    assert read_sealed(path)["round"] == 11


def test_a_metric_that_fails_in_a_later_round_leaves_the_last_whole_round(path):
    fifth = at_call(2 * 4 + 1, fail, result={"norm": 1.0})  # of two seeds
    with pytest.raises(Ended):
        go(BATCHES, replace(ROWS, host_metrics=fifth), checkpoint=path, **STEPS)
    content = read_sealed(path)
    assert content["round"] == 16
    assert content["metrics"]["norm"].shape == (1, 2, 4)


def test_a_run_that_diverges_leaves_a_finite_checkpoint_and_diverges_again_alike(path):
    errors = []
    for _ in range(2):
        with pytest.raises(fl.Diverged) as caught:
            go(replace(AVG, lr=1e25), rounds=60, checkpoint=path)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]
    content = read_sealed(path)
    assert 0 < content["round"] <= caught.value.round
    assert all(x.isfinite().all() for x in content["state"])


def test_a_run_that_fails_in_its_first_round_leaves_no_checkpoint(path):
    with pytest.raises(Ended):
        go(
            BATCHES,
            ROWS,
            checkpoint=path,
            callback=at_call(1, fail),
            **STEPS,
        )
    assert names(path.parent) == []
