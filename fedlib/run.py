"""The loop over rounds, seeds and a grid of hyperparameters, with evaluations and checkpoints."""

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
from fedlib.engine.start import continue_trace, first_progress
from fedlib.engine.surroundings import plain_torch
from fedlib.engine.traces import make_traces


def resolve_device(device: str | torch.device) -> torch.device:
    """The device for `"auto"` (a GPU if there is one) or for a name that torch knows.

    Raises ValueError for any other word, or if the GPU does not exist.
    """
    names = ["auto", "cpu"]
    has_gpu = torch.cuda.is_available() and torch.cuda.device_count() > 0
    if has_gpu:
        names.append("cuda")
        names.extend(f"cuda:{i}" for i in range(torch.cuda.device_count()))
    if torch.backends.mps.is_available():
        names.append("mps")
    name = str(device)
    if name in ("cpu:0", "mps:0"):
        name = name.removesuffix(":0")
    checks.one_of("run", "device", name, names)
    if name == "auto":
        name = "cpu"
        if has_gpu:
            name = "cuda"
    return torch.device(name)


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
    """Run one algorithm, or a grid of them, for all seeds together.

    Parameters
    ----------
    algorithms : Algorithm or sequence of Algorithm
        One algorithm, or a list that differs only in float parameters (a grid). Every point of a
        grid starts and draws as it does alone.
    problem : Problem or callable
        One problem for all seeds, or a function `seed -> Problem` if the seed fixes the split, with
        equal shapes for all seeds.
    rounds : int
        T, the number of rounds.
    seeds : int or sequence of int
        Distinct whole numbers. A seed's result does not depend on the other seeds. `seeds=3` runs
        seed 3, `seeds=range(3)` three seeds. Neither does it depend on other points of a grid, on
        other threads, or on autocast, inference mode and the default dtype around the call, but for
        rounding. The masks of dropout are drawn, so rounding does not change them.
    evaluate_every : int
        The number of rounds between two evaluations of `problem.metrics`. There is always one
        before the first round and one after the last.
    device : str or torch.device
        `"cpu"`, `"cuda"`, `"auto"` (a GPU if there is one), `"mps"` for a problem in float32, or a
        `torch.device`.
    checkpoint : Path or str or None
        The file, in an existing folder, to which the run saves its state, also when the callback,
        Ctrl-C or an error ends the run. If the file exists, the run resumes from it, also with more
        `rounds` than before; ValueError if it is damaged or of another run. A run is known by its
        arguments, functions and data; `fedlib.engine.identity` says how, and what is not seen.
    checkpoint_seconds : float
        The least time between two checkpoints, in seconds.
    progress : bool
        Whether runs of more than some seconds show a progress bar.
    engine : type or None
        How the clients of a round are computed: by default `Vectorized` (all at once), or
        `Sequential` (one by one) on a CPU if `problem.sequential_clients`; `Loop` is for tests.
    start : Trace or None
        The trace of one algorithm, which the run continues. `rounds` includes the trace's rounds,
        and the result is that of one uninterrupted run; ValueError for the trace of another run,
        which is known as that of a checkpoint is. To start from a model alone, set the problem's
        `w0`.
    callback : callable or None
        Called as `callback(round, metrics, state)` after every evaluation except the last. Metrics
        and state are `[G, S, ...]` for G algorithms and S seeds. If the callback returns True, the
        run ends.
    schedules : mapping or None
        Field of the algorithm -> function of the round t = 1, 2, ..., whose value multiplies the
        field, as in `{"lr": lambda t: 0.99**t}`. It is asked for rounds of the run alone.
        ValueError in the round in which a field leaves its range; 0 makes a field that must be
        positive the smallest positive number, so a warm-up may begin at 0.

    Returns
    -------
    Trace or list of Trace
        A list of traces for a list of algorithms.

    Raises ValueError or TypeError before the first round for invalid parameters, and for a round
    that branches on a tensor or draws random numbers; OSError if the checkpoint cannot be written
    (the one before stays complete); Diverged, with round and seed, if the model is not finite.
    """
    grid = check_algorithms(algorithms)
    seeds = check_seeds(seeds)
    checks.arguments(run, locals())
    path = check_path(checkpoint)
    rounds = int(rounds)  # may be numpy's, as the next
    evaluate_every = int(evaluate_every)
    device = resolve_device(device)
    with plain_torch(device):
        runs = BatchedRuns(grid, problem, seeds, device, engine, schedules or {})
        form = runs.problems[0]
        config = {
            "algorithms": [describe(algorithm) for algorithm in grid],
            "problem": describe(form.config),
            "rounds": None,
            "seeds": list(seeds),
            "evaluate_every": evaluate_every,
            "dtype": str(form.w0.dtype),
        }
        saver = Checkpoint(path, config, runs.identity, checkpoint_seconds)
        with _threads(form.dim, device):
            current = first_progress(runs)
            if start is not None:
                current = continue_trace(runs, current, start, config)
            current = saver.resume(current, rounds)
            loop = RoundLoop(runs, rounds, evaluate_every, callback)
            current = loop.run(current, progress, saver)
        config["rounds"] = current.round
        if schedules:
            config["schedules"] = runs.grid.schedules.describe(current.round)
        traces = make_traces(runs, current, evaluate_every, config)
    if isinstance(algorithms, Sequence):
        return traces
    return traces[0]


def check_algorithms(algorithms: object) -> list[Algorithm]:
    """The list of algorithms to run; TypeError or ValueError for anything else."""
    grid: list[Any] = [algorithms]
    if isinstance(algorithms, Sequence):
        grid = list(algorithms)
    checks.value("run", "algorithms", grid, Annotated[list[Algorithm], SOME])
    rule = "be dataclasses: write @dataclass(frozen=True) above their class"
    are_dataclasses = all(map(is_dataclass, grid))
    checks.require(are_dataclasses, "run", "algorithms", rule, grid)
    return grid


def check_seeds(seeds: object) -> tuple[int, ...]:
    """The seeds as distinct whole numbers of Python; TypeError or ValueError for anything else."""
    if isinstance(seeds, Integral):
        seeds = [seeds]
    elif isinstance(seeds, np.ndarray):
        seeds = seeds.tolist()
    checks.value("run", "seeds", seeds, Annotated[Sequence[Seed], SOME])
    numbers = tuple(map(int, cast("Sequence[int]", seeds)))
    are_distinct = len(set(numbers)) == len(numbers)
    checks.require(are_distinct, "run", "seeds", "be distinct", list(numbers))
    return numbers


@contextmanager
def _threads(dim: int, device: torch.device) -> Iterator[None]:
    """Use one thread for small problems on the CPU; restore the number of threads afterwards."""
    callers_number = torch.get_num_threads()
    torch.set_num_threads(count_threads(dim, device))
    try:
        yield
    finally:
        torch.set_num_threads(callers_number)
