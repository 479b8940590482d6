"""The only loop: rounds x seeds x hyperparameter grid, evaluated, checkpointed, resumable."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import torch

from fedlib import checks
from fedlib.core.algorithm import Algorithm
from fedlib.core.describe import describe
from fedlib.core.federation import Federation
from fedlib.core.problem import Problem
from fedlib.core.schedule import scheduled
from fedlib.engine.batch import BatchedRuns, count_threads
from fedlib.engine.checkpoint import Checkpoint, check_path
from fedlib.engine.loop import RoundLoop


def resolve_device(device: str) -> torch.device:
    """`"auto"` (a GPU if there is one), `"cpu"`, `"cuda"` or `"cuda:1"` as a device that exists.

    Raises
    ------
    ValueError, TypeError
        for another word, or a GPU that is not there.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    checks.value("run", "device", device, str)
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        rule = 'be "cpu", "auto", "cuda" or "cuda:1"'
        raise ValueError(checks.sentence("run", "device", rule, device))
    kind, _, index = device.partition(":")
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if kind == "cuda" and int(index or 0) >= there:
        raise ValueError(
            f"run: device must be one that is there, got {device!r} with {there} GPUs; "
            'use "cpu" or "auto".'
        )
    return torch.device(device)


def run(
    algorithms: Algorithm | Sequence[Algorithm],
    problem: Problem | Callable[[int], Problem],
    *,
    rounds: int,
    seeds: int | Sequence[int] = (0,),
    evaluate_every: int | str = 1,
    device: str = "cpu",
    checkpoint: Path | str | None = None,
    checkpoint_seconds: float = 30.0,
    progress: bool = True,
    engine: type[Federation] | None = None,
) -> Any:
    """Run one algorithm, or a grid of them that differ in floats only, for all seeds together.

    Parameters
    ----------
    algorithms : one algorithm, or a list (a grid).
    problem : the problem of all seeds, or `seed -> Problem` where the seed fixes the split; the
        problems of the seeds must have equal shapes.
    rounds : T.
    seeds : distinct whole numbers, one stream of draws each; seed 3 alone gives what it gives among
        others. One number is one seed: `seeds=3` is seed 3, `seeds=range(3)` are three.
    evaluate_every : rounds between two evaluations of `problem.metrics`, which come before round 0
        and after the last round in any case, and alone if it is no less than `rounds`.
        `"geometric"`: before every round up to 64, before every second one up to 128, every fourth
        up to 256 and so on, which shows what every round would and costs little in long runs.
    device : `"cpu"`, `"cuda"`, `"auto"`.
    checkpoint : file to resume from if it exists, and to write to (whole or not at all), in a
        folder that exists. A file that is damaged or of another run is refused and renamed to
        `NAME.refused`, so that the next start begins anew; give it back its name to use it.
    checkpoint_seconds : least time between two checkpoints.
    progress : a bar for runs that take longer than some seconds.
    engine : by default `Vectorized`, but `Sequential` on a CPU for a problem that asks for it;
        `Loop` for tests and debugging.

    Returns
    -------
    A `Trace`, or a list of them for a list of algorithms.

    Raises
    ------
    ValueError, TypeError
        before the first round, for parameters that make no sense, and for a round that branches
        on a tensor or draws random numbers.
    OSError
        if the checkpoint cannot be written, before the first round or on a full disk later; the
        one before is then whole.
    Diverged
        if the model is no longer finite; names round and seed.
    """
    grid = check_algorithms(algorithms)
    numbers = check_seeds(seeds)
    checks.count("run", "rounds", rounds)
    schedule = scheduled(evaluate_every)
    checks.nonnegative("run", "checkpoint_seconds", checkpoint_seconds)
    path = check_path(checkpoint)
    checks.flag("run", "progress", progress)
    check_engine(engine)
    if isinstance(problem, type) or not (isinstance(problem, Problem) or callable(problem)):
        rule = "be a Problem, or a function that makes one of a seed"
        raise TypeError(checks.sentence("run", "problem", rule, problem))
    rounds = int(rounds)  # numpy's, too
    loop = BatchedRuns(grid, problem, numbers, resolve_device(device), engine)
    config = {
        "algorithms": [describe(a) for a in grid],
        "problem": describe(loop.problems[0].config),
        "rounds": rounds,
        "seeds": list(numbers),
        "evaluate_every": schedule.every,
        "dtype": str(loop.problems[0].w0.dtype),
    }
    saver = Checkpoint(path, config, loop.sample_data, checkpoint_seconds)
    with _threads(loop.problems[0].dim, loop.device):
        begin = saver.resume(loop.start())
        now = RoundLoop(loop, rounds, schedule).run(begin, progress, saver)
    traces = loop.traces(now, rounds, schedule, config)
    return traces if isinstance(algorithms, Sequence) else traces[0]


def check_algorithms(algorithms: object) -> list[Algorithm]:
    """The algorithms of a grid, or the one; TypeError or ValueError for anything else."""
    many = isinstance(algorithms, Sequence) and not isinstance(algorithms, (str, bytes))
    grid: list[Any] = [*algorithms] if many else [algorithms]  # type: ignore[misc]
    if not grid:
        raise ValueError(checks.sentence("run", "algorithms", "not be empty", grid))
    for place, one in enumerate(grid):
        name = f"algorithms[{place}]" if many else "algorithms"
        checks.instance("run", name, one, Algorithm)
        if not is_dataclass(one):
            remedy = "write @dataclass(frozen=True) above its class"
            raise TypeError(checks.sentence("run", name, "be a dataclass", one, remedy))
    return grid


def check_seeds(seeds: object) -> tuple[int, ...]:
    """Distinct whole numbers of Python; TypeError or ValueError for anything else."""
    if isinstance(seeds, Integral):
        seeds = (seeds,)
    kinds = (Sequence, np.ndarray)
    if isinstance(seeds, (str, bytes)) or not isinstance(seeds, kinds) or not np.ndim(seeds):
        rule = "be a whole number, or a list or range of such"
        raise TypeError(checks.sentence("run", "seeds", rule, seeds))
    if not len(seeds):
        raise ValueError(checks.sentence("run", "seeds", "not be empty", seeds))
    for place, one in enumerate(seeds):
        checks.seed("run", f"seeds[{place}]", one)
    numbers = tuple(map(int, seeds))
    if len({*numbers}) < len(numbers):
        twice = next(s for s in numbers if numbers.count(s) > 1)
        remedy = "a seed that counts twice would narrow every interval"
        rule = f"be distinct, {twice} is there {numbers.count(twice)} times"
        raise ValueError(checks.sentence("run", "seeds", rule, [*numbers], remedy))
    return numbers


def check_engine(engine: object) -> None:
    """Raise TypeError unless it is None or an engine's class."""
    if engine is not None and not (
        isinstance(engine, type) and issubclass(engine, Federation) and engine is not Federation
    ):
        rule = "be None or a class: Vectorized, Sequential, Loop"
        raise TypeError(checks.sentence("run", "engine", rule, engine))


@contextmanager
def _threads(dim: int, device: torch.device) -> Iterator[None]:
    """One thread for small problems on the CPU; the caller's number afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count_threads(dim, device))
    try:
        yield
    finally:
        torch.set_num_threads(before)
