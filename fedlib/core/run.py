"""The only loop: rounds x seeds x hyperparameter grid, evaluated, checkpointed, resumable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from fedlib import checks
from fedlib.core.batched import Batched, threads
from fedlib.core.checkpoint import Saver
from fedlib.core.federation import Federation
from fedlib.core.protocols import Algorithm
from fedlib.core.types import Problem, describe


def resolve_device(device: str) -> torch.device:
    """`"auto"` (a GPU if there is one), `"cpu"`, `"cuda"` or `"cuda:1"` as a device that exists.

    Raises
    ------
    ValueError
        for another word, or a GPU that is not there.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind, _, index = device.partition(":")
    checks.one_of("run", "device", kind, ("auto", "cpu", "cuda"))
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
    seeds: Sequence[int] = (0,),
    evaluate_every: int = 1,
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
    seeds : one stream of draws each; seed 3 alone gives what it gives among others.
    evaluate_every : rounds between two evaluations of `problem.metrics`.
    device : `"cpu"`, `"cuda"`, `"auto"`.
    checkpoint : file to resume from if it exists, and to write to (whole or not at all).
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
    Diverged
        if the model is no longer finite; names round and seed.
    """
    grid = list(algorithms) if isinstance(algorithms, Sequence) else [algorithms]
    checks.count("run", "rounds", rounds)
    checks.count("run", "evaluate_every", evaluate_every)
    if not grid or not seeds:
        raise ValueError("run: algorithms and seeds must not be empty; pass at least one of each.")
    loop = Batched(grid, problem, tuple(seeds), resolve_device(device), engine)
    config = {
        "algorithms": [describe(a) for a in grid],
        "problem": describe(loop.problems[0].config),
        "rounds": rounds,
        "seeds": list(seeds),
        "evaluate_every": evaluate_every,
        "dtype": str(loop.problems[0].w0.dtype),
    }
    saver = Saver(checkpoint, config, checkpoint_seconds)
    with _threads(loop.problems[0].dim, loop.device):
        now = loop.go(saver.resume(loop.start()), rounds, evaluate_every, progress, saver)
    traces = loop.traces(now, rounds, evaluate_every, config)
    return traces if isinstance(algorithms, Sequence) else traces[0]


@contextmanager
def _threads(dim: int, device: torch.device) -> Iterator[None]:
    """One thread for small problems on the CPU; the caller's number afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads(dim, device))
    try:
        yield
    finally:
        torch.set_num_threads(before)
