"""What problems with several tasks share: their form and metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from fedlib.core import Problem
from fedlib.core.problem import Batch
from fedlib.shapes import AnyRows, PerObjective, Scalar, Vector

#: `(w, rows of the data) -> (losses [B, M], hits [B, M] or None)`, what each row adds to each task.
RowValues = Callable[[Tensor, tuple[Tensor, ...]], tuple[Tensor, Tensor | None]]


def task_problem(
    name: str,
    values: RowValues,
    chunk: int,
    *,
    data: tuple[AnyRows, ...],
    rows: Int[Tensor, "N m"],
    heldout: tuple[Shaped[Tensor, "H ..."], ...],
    w0: Vector,
    tasks: int,
    config: Mapping[str, Any],
) -> Problem:
    """An objective for each of so many `tasks`: the mean of a task's values on a client's rows.

    Every client has m rows. Metrics are those of `task_metrics` on the rows held out; if these are
    two sets, one after the other, those of the second begin with `held_`.
    """

    def losses(w: Vector, batch: Batch) -> PerObjective:
        return batch.weight @ values(w, batch.data)[0]

    def metrics(w: Vector, problem: Problem) -> dict[str, Tensor]:
        metrics = task_metrics(w, problem.heldout[: len(data)], values, chunk)
        further_rows = problem.heldout[len(data) :]
        if further_rows:
            further = task_metrics(w, further_rows, values, chunk)
            metrics |= {f"held_{name}": value for name, value in further.items()}
        return metrics

    return Problem(
        name=name,
        data=data,
        rows=rows,
        sizes=(rows.shape[1],) * len(rows),
        losses=losses,
        num_objectives=tasks,
        num_constraints=0,
        w0=w0,
        metrics=metrics,
        heldout=heldout,
        sequential_clients=True,
        config={"name": name, **config},
    )


def task_metrics(
    w: Vector,
    rows: tuple[AnyRows, ...],
    values: RowValues,
    chunk: int,
) -> dict[str, Scalar]:
    """Mean `loss_1`, ..., `loss_M` over some rows, their mean `loss`; the same of `accuracy`.

    Parameters
    ----------
    w : the model.
    rows : tensors `[R, ...]`.
    values : losses and hits of rows; without hits there are no accuracies.
    chunk : how many rows are computed at a time.
    """
    pieces = zip(*(torch.split(tensor, chunk) for tensor in rows), strict=True)
    chunks = [values(w, piece) for piece in pieces]
    total = {"loss": [losses for losses, _ in chunks]}
    hits = [hit for _, hit in chunks if hit is not None]
    if hits:
        total["accuracy"] = hits
    metrics = {}
    for name, of_chunks in total.items():
        mean = torch.cat(of_chunks).mean(0)
        metrics[name] = mean.mean()
        metrics |= {f"{name}_{k + 1}": mean[k] for k in range(len(mean))}
    return metrics
