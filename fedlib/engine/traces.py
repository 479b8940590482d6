"""The traces that `run` returns."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import vmap
from torch.utils import _pytree as pytree

from fedlib.core.algorithm import Algorithm
from fedlib.core.trace import Trace
from fedlib.core.trees import index_tree
from fedlib.engine.batch import BatchedRuns, count_threads
from fedlib.engine.checkpoint import Named, Progress, join_blocks
from fedlib.engine.kernels import product_library


def make_traces(
    runs: BatchedRuns,
    progress: Progress,
    evaluate_every: int,
    config: Mapping[str, Any],
) -> list[Trace]:
    """One Trace for each point of the grid, on the CPU."""
    metrics = as_curves(progress.metrics)
    info = as_curves(progress.info)
    rounds = np.array([*range(0, progress.round, evaluate_every), progress.round])
    warn_of_nan(metrics, rounds, runs.seeds)
    shared_config = dict(config)
    descriptions = shared_config.pop("algorithms")
    processor = "cpu"
    if runs.device.type == "cuda":
        processor = torch.cuda.get_device_name(runs.device)
    provenance = {
        "device": processor,
        "threads": count_threads(runs.stacked.form.dim, runs.device),
        "compiled": progress.compiled,  # the number of compiled rounds
        "products": product_library(),  # of matrices in captured and compiled rounds
        "wall_s": progress.seconds / len(runs.grid),
    }
    traces = []
    for g, point in enumerate(runs.grid.points):
        state = index_tree(progress.state, g)
        trace = Trace(
            metrics={name: curves[g] for name, curves in metrics.items()},
            info={name: curves[g] for name, curves in info.items()},
            rounds=rounds,
            seeds=runs.seeds,
            config={"algorithm": descriptions[g], **shared_config},
            provenance=provenance,
            state=pytree.tree_map(Tensor.cpu, state),
            output=output_of(point, state),
            identity=runs.identity,
        )
        traces.append(trace)
    return traces


def as_curves(blocks: Sequence[Named]) -> dict[str, NDArray[np.float64]]:
    """Join the blocks: one `[G, S, T]` in float64 for each name."""
    return {name: x.double().numpy() for name, x in join_blocks(blocks).items()}


def warn_of_nan(
    metrics: Mapping[str, NDArray[np.float64]],
    rounds: NDArray[np.int64],
    seeds: Sequence[int],
) -> None:
    """Warn of every metric that is NaN, with the first round and a seed."""
    for name, curves in metrics.items():
        places = np.argwhere(np.isnan(curves))  # rows of grid point, seed, evaluation
        if len(places):
            first = places[:, 2].argmin()
            _, seed, evaluation = places[first]
            warnings.warn(
                f"run: metric {name!r} is NaN from round {rounds[evaluation]} on (seed "
                f"{seeds[seed]}); look for a quotient or a logarithm in it.",
                stacklevel=4,  # the line that calls `run`
            )


def output_of(algorithm: Algorithm, state: Any) -> NDArray[np.float64] | None:
    """The solutions of all seeds `[S, d]` where a method's solution is not its model."""
    output = getattr(algorithm, "output", None)
    if output is None:
        return None
    return np.asarray(vmap(output)(state).double().cpu())
