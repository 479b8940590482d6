"""The problems of the low-rank study."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import data
from fedlib.core import Problem
from fedlib.core.describe import describe
from fedlib.core.problem import Batch, ConvexSet
from fedlib.sets import NuclearBall
from fedlib.shapes import Vector
from papers.fedfw.feasible_data import constrained_pictures
from papers.fedfw.matrices import multi_task_regression


def clock_problem(
    seed: int,
    *,
    rows: int,
    columns: int,
    steps: int,
) -> Problem:
    """The unit nuclear ball around 0, and nothing to minimize."""
    del seed
    ball = NuclearBall(1.0, rows, columns, steps)
    return Problem(
        name="clock_problem",
        data=(torch.zeros(1),),
        rows=torch.zeros(1, 1, dtype=torch.long),
        sizes=(1,),
        losses=nothing,
        num_objectives=1,
        num_constraints=0,
        w0=torch.zeros(rows * columns),
        metrics=still,
        set=ball,
        sequential_clients=True,
        config={"name": "clock_problem", "set": describe(ball)},
    )


def nothing(w: Vector, batch: Batch) -> Float[Tensor, "1"]:
    del batch
    return 0 * w[:1]


def still(w: Vector, problem: Problem) -> dict[str, Tensor]:
    del problem
    return {"norm": w.norm()}


def tasks_within(seed: int, *, steps: int, **sizes: Any) -> Problem:
    """Regression of several tasks in the nuclear ball, whose oracle makes `steps` of Lanczos."""
    problem = multi_task_regression(seed=seed, **sizes)
    assert isinstance(problem.set, NuclearBall)
    return problem.within(replace(problem.set, steps=steps))


def pictures_within(seed: int, *, convex_set: ConvexSet, rows: int) -> Problem:
    table = data.digits()
    return constrained_pictures(
        table,
        table,
        data="digits",
        labels=3,
        clients=10,
        seed=seed,
        train_rows=rows,
    ).within(convex_set)
