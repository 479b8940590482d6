"""What problems with several tasks share: their form, metrics, and rows with turned copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from fedlib.core import Problem
from fedlib.core.problem import Batch

#: `(w, rows of the data) -> (losses [B, M], hits [B, M] or None)`, what each row adds to each task.
RowValues = Callable[[Tensor, tuple[Tensor, ...]], tuple[Tensor, Tensor | None]]


def task_problem(
    name: str,
    losses: Callable[[Tensor, Batch], Tensor],
    metrics: Callable[[Tensor, Problem], dict[str, Tensor]],
    *,
    data: tuple[Shaped[Tensor, "R ..."], ...],
    rows: Int[Tensor, "N m"],
    heldout: tuple[Shaped[Tensor, "H ..."], ...],
    w0: Float[Tensor, "d"],
    tasks: int,
    config: Mapping[str, Any],
) -> Problem:
    """An objective for each of so many `tasks`; every client has m rows."""
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
    w: Float[Tensor, "d"], rows: tuple[Shaped[Tensor, "R ..."], ...], values: RowValues, chunk: int
) -> dict[str, Float[Tensor, ""]]:
    """Mean `loss_1`, ..., `loss_M` over some rows, their mean `loss`; the same of `accuracy`.

    Parameters
    ----------
    w : the model.
    rows : tensors `[R, ...]`.
    values : losses and hits of rows; without hits there are no accuracies.
    chunk : how many rows are computed at a time.
    """
    parts = [values(w, some) for some in zip(*(torch.split(x, chunk) for x in rows), strict=True)]
    total = {"loss": [losses for losses, _ in parts]}
    hits = [hit for _, hit in parts if hit is not None]
    if hits:
        total["accuracy"] = hits
    found = {}
    for name, pieces in total.items():
        mean = torch.cat(pieces).mean(0)
        found[name] = mean.mean()
        found |= {f"{name}_{k + 1}": mean[k] for k in range(len(mean))}
    return found


def with_copies(rows: Int[Tensor, "N m"], count: int, copies: int) -> Int[Tensor, "N more"]:
    """A client's rows in every copy of a data set of `count` rows, one copy after another."""
    return torch.cat([rows + k * count for k in range(copies)], dim=1)
