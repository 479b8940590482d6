"""The only loop: rounds x seeds x hyperparameter grid, evaluated, checkpointed, resumable."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from numbers import Integral
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import torch

from fedlib import checks
from fedlib.checks import SOME, Count, Nonnegative, Seed
from fedlib.core.algorithm import Algorithm
from fedlib.core.describe import describe
from fedlib.core.federation import Federation
from fedlib.core.problem import Problem
from fedlib.core.trace import Trace
from fedlib.engine.batch import BatchedRuns, count_threads
from fedlib.engine.checkpoint import Checkpoint, check_path
from fedlib.engine.loop import Callback, RoundLoop


def resolve_device(device: str | torch.device) -> torch.device:
    """`"auto"` (a GPU if there is one) or a name that torch knows, as a device that exists.

    Raises ValueError for another word, or a GPU that is not there.
    """
    gpus = [f"cuda:{i}" for i in range(torch.cuda.device_count() * torch.cuda.is_available())]
    known = ["auto", "cpu", *["cuda"][: len(gpus)], *gpus]
    known += ["mps"] if torch.backends.mps.is_available() else []
    name = str(device).removesuffix(":0") if str(device) in ("cpu:0", "mps:0") else str(device)
    checks.one_of("run", "device", name, known)
    return torch.device(("cuda" if gpus else "cpu") if name == "auto" else name)


def run(
    algorithms: Algorithm | Sequence[Algorithm],
    problem: Problem | Callable[[int], Problem],
    *,
    rounds: Count,
    seeds: int | Sequence[int] = (0,),
    evaluate_every: Count = 1,
    device: str | torch.device = "cpu",
    checkpoint: Path | str | None = None,
    checkpoint_seconds: Nonnegative = 30.0,
    progress: bool = True,
    engine: type[Federation] | None = None,
    start: Trace | None = None,
    callback: Callback | None = None,
    schedules: Mapping[str, Callable[[int], float]] | None = None,
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
    device : `"cpu"`, `"cuda"`, `"auto"`, `"mps"` for a problem in float32, or a `torch.device`.
    checkpoint : file to resume from if it exists, and to write to (whole or not at all), in a
        folder that exists. With more `rounds` than it has, the run goes on. A file that is damaged
        or of another run is refused.
    checkpoint_seconds : least time between two checkpoints.
    progress : a bar for runs that take longer than some seconds.
    engine : by default `Vectorized`, but `Sequential` on a CPU for a problem that asks for it;
        `Loop` for tests and debugging.
    start : the trace of one algorithm that is to go on: its rounds are the first of `rounds`, and
        the whole is what it would have been at once. For a start from other models give the problem
        another `w0`, for instance by a trained module.
    callback : called as `callback(round, metrics, state)` after every evaluation but the last, with
        metrics and state `[G, S, ...]` of the grid's algorithms and the seeds; if it returns True
        the run ends there.
    schedules : a field of the algorithm -> rule of the round t = 1, 2, ..., whose value multiplies
        it: `{"lr": PowerLaw(1.0, 0.5)}`, or `{"lr": lambda t: 0.99**t}`.

    Returns
    -------
    A `Trace`, or a list of them for a list of algorithms.

    Raises ValueError or TypeError before the first round, for parameters that make no sense, and
    for a round that branches on a tensor or draws random numbers; OSError if the checkpoint cannot
    be written (the one before is then whole); Diverged, with round and seed, if the model is no
    longer finite.
    """
    grid, seeds = check_algorithms(algorithms), check_seeds(seeds)
    checks.arguments(run, locals())
    path, rounds, every = check_path(checkpoint), int(rounds), int(evaluate_every)  # numpy's, too
    loop = BatchedRuns(grid, problem, seeds, resolve_device(device), engine, schedules or {})
    config = {
        "algorithms": [describe(a) for a in grid],
        "problem": describe(loop.problems[0].config),
        "rounds": rounds,
        "seeds": list(seeds),
        "evaluate_every": every,
        "dtype": str(loop.problems[0].w0.dtype),
    }
    if schedules:
        config["schedules"] = {k: describe_rule(rule) for k, rule in schedules.items()}
    saver = Checkpoint(path, config | {"rounds": None}, loop.sample_data, checkpoint_seconds)
    with _threads(loop.problems[0].dim, loop.device):
        begin = loop.start()
        if start is not None:
            begin = loop.go_on(begin, start, config)
        begin = saver.resume(begin, rounds)
        now = RoundLoop(loop, rounds, every, callback).run(begin, progress, saver)
    traces = loop.traces(now, every, config | {"rounds": now.round})
    return traces if isinstance(algorithms, Sequence) else traces[0]


def describe_rule(rule: Callable[[int], float]) -> Any:
    """A schedule as a configuration has it: its fields, or values at some rounds."""
    if is_dataclass(rule):
        return describe(rule)
    return {str(t): float(rule(t)) for t in (1, 2, 3, 10, 100, 1000)}


def check_algorithms(algorithms: object) -> list[Algorithm]:
    """The algorithms of a grid, or the one; TypeError or ValueError for anything else."""
    grid: list[Any] = [*algorithms] if isinstance(algorithms, Sequence) else [algorithms]
    checks.value("run", "algorithms", grid, Annotated[list[Algorithm], SOME])
    rule = "be dataclasses: write @dataclass(frozen=True) above their class"
    checks.require(all(map(is_dataclass, grid)), "run", "algorithms", rule, grid)
    return grid


def check_seeds(seeds: object) -> tuple[int, ...]:
    """Distinct whole numbers of Python; TypeError or ValueError for anything else."""
    given = [seeds] if isinstance(seeds, Integral) else seeds
    given = given.tolist() if isinstance(given, np.ndarray) else given
    checks.value("run", "seeds", given, Annotated[Sequence[Seed], SOME])
    numbers = tuple(map(int, cast("Sequence[int]", given)))
    checks.require(len({*numbers}) == len(numbers), "run", "seeds", "be distinct", [*numbers])
    return numbers


@contextmanager
def _threads(dim: int, device: torch.device) -> Iterator[None]:
    """One thread for small problems on the CPU; the caller's number afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count_threads(dim, device))
    try:
        yield
    finally:
        torch.set_num_threads(before)
