"""Where the runs of one call of `run` start: at their first states, or at the end of a trace."""

from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch.utils import _pytree as pytree

from fedlib import checks
from fedlib.core.algorithm import Algorithm
from fedlib.core.sampling import round_generators
from fedlib.core.trace import Trace
from fedlib.core.trees import stack_trees
from fedlib.engine.batch import BatchedRuns
from fedlib.engine.checkpoint import Named, Progress
from fedlib.engine.memories import is_large


def first_progress(runs: BatchedRuns) -> Progress:
    """The states before round 0, `[G, S, ...]`, and generators for the draws.

    There is a generator for each seed, or for each grid point and seed if their draws differ.
    Raises ValueError if the states of two grid points have different shapes.
    """
    states = [first_states(runs, algorithm) for algorithm in runs.grid.points]
    shapes = [[list(x.shape) for x in pytree.tree_leaves(state)] for state in states]
    for shapes_of_point in shapes:
        checks.require(
            shapes_of_point == shapes[0],
            "run",
            f"init of {type(runs.template).__name__}",
            f"return tensors of shapes {shapes[0]} at every point of the grid",
            shapes_of_point,
            "run the points of the grid one by one",
        )
    if len(states) == 1:  # a large state is not copied again
        state = pytree.tree_map(lambda x: x.unsqueeze(0), states[0])
    else:
        state = stack_trees(states)
    state = pytree.tree_map(lambda x: x.to(runs.device), state)
    runs.large = is_large(state)
    runs.postpones_rows = runs.large
    return Progress(state, round_generators(runs.seeds, len(runs.grid.drawing)))


def first_states(runs: BatchedRuns, algorithm: Algorithm) -> Any:
    """The first states of one grid point for all seeds, `[S, ...]`."""
    states: dict[int, Any] = {}
    for problem in runs.problems:
        if id(problem) not in states:
            states[id(problem)] = algorithm.init(problem)
    return stack_trees([states[id(problem)] for problem in runs.problems])


def continue_trace(
    runs: BatchedRuns,
    progress: Progress,
    trace: Trace,
    config: Mapping[str, Any],
) -> Progress:
    """Continue from the end of a trace that `run` returned.

    Raises ValueError unless the trace belongs to this run (see `identity`), apart from its number
    of rounds, and has its state.
    """
    has_state = type(trace.state) is type(progress.state)
    fits = len(runs.grid) == 1 and has_state and is_configured(trace, config)
    rule = "be a trace of this algorithm, problem, seeds and evaluate_every, with its state"
    remedy = "a file has models only: use `checkpoint`"
    checks.require(fits, "run", "start", rule, trace.config.get("algorithm"), remedy)
    part = runs.identity.difference(trace.identity)
    checks.require(not part, "run", "start", "be a trace of this run", f"another {part}")
    device = runs.device
    # the rounds may change the state in place, but not the caller's
    copied = pytree.tree_map(lambda x: x.to(device, copy=True), trace.state)
    progress.state = pytree.tree_map(lambda x: x.unsqueeze(0), copied)
    progress.round = int(trace.rounds[-1])
    for _ in range(progress.round):
        runs.draws(progress.rngs, 1)
    # the evaluation after the last round is made again
    metrics = {name: curves[:, :-1] for name, curves in trace.metrics.items()}
    progress.metrics.append(as_block(metrics, device))
    progress.info.append(as_block(trace.info, device))
    return progress


def is_configured(trace: Trace, config: Mapping[str, Any]) -> bool:
    """Whether a trace has the configuration of a run, but for rounds and schedules."""
    expected = {"algorithm": config["algorithms"][0], **config}
    del expected["algorithms"]
    actual = dict(trace.config)
    for name in ("rounds", "schedules"):
        expected.pop(name, None)
        actual.pop(name, None)
    return actual == expected


def as_block(
    curves: Mapping[str, NDArray[Any]],
    device: torch.device,
) -> Named:
    """The curves `[S, T]` of a trace as a block `[1, S, T]` of a run's progress."""
    return {name: torch.as_tensor(x[None]).to(device) for name, x in curves.items()}
