"""The problems of the low-rank study, and the scales of their step sizes and penalties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import vmap

from fedlib import checks, data
from fedlib.checks import Count, Seed
from fedlib.core import Problem
from fedlib.core.describe import describe
from fedlib.core.problem import Batch, ConvexSet, pullback
from fedlib.sets import NuclearBall
from papers.fedfw.feasible_data import constrained_pictures
from papers.fedfw.matrices import matrix_completion, multi_task_regression

MAKERS: dict[str, Callable[..., Problem]] = {
    "regression": multi_task_regression,
    "completion": matrix_completion,
}
ITERATIONS = 40  # of the power method, for step sizes


def clock_problem(seed: Seed, *, rows: Count, columns: Count, steps: Count) -> Problem:
    """The unit nuclear ball around 0, and nothing to minimize."""
    checks.arguments(clock_problem, locals())
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


def nothing(w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "1"]:
    del batch
    return 0 * w[:1]


def still(w: Float[Tensor, "d"], problem: Problem) -> dict[str, Tensor]:
    del problem
    return {"norm": w.norm()}


@lru_cache(maxsize=16)
def task_problem(seed: Seed, *, task: str, steps: Count, **sizes: Any) -> Problem:
    """Regression or completion, whose oracle makes `steps` steps of Lanczos."""
    checks.arguments(task_problem, locals())
    made: Problem = MAKERS[task](seed=seed, **sizes)
    assert isinstance(made.set, NuclearBall)
    return made.within(replace(made.set, steps=steps))


def pictures_within(seed: int, *, convex_set: ConvexSet, rows: int) -> Problem:
    table = data.digits()
    return constrained_pictures(
        table, table, data="digits", labels=3, clients=10, seed=seed, train_rows=rows
    ).within(convex_set)


class Scales(NamedTuple):
    """What step sizes and penalties are multiples of."""

    client: float  # the largest smoothness of a client's loss
    mean: float  # that of the mean
    penalty: float  # mean |grad f_i(0)| / (N D), at which penalty and gradient are about alike


def scales(problems: tuple[Problem, ...]) -> Scales:
    """The largest of some quadratic problems, by the power method; two significant digits."""
    each = [one_scale(p) for p in problems]
    return Scales(*(float(f"{max(x):.2g}") for x in zip(*each, strict=True)))


def one_scale(problem: Problem) -> Scales:
    n, ball, clients = problem.num_clients, problem.set, problem.all_clients()
    assert isinstance(ball, NuclearBall)

    def slopes(W: Tensor) -> Tensor:
        weights = torch.ones_like(W[0, :1])
        found: Tensor = vmap(
            lambda w, b: pullback(problem.losses, problem.gradient, w, b, weights)
        )(W, clients)
        return found

    origin = slopes(torch.zeros(n, problem.dim).to(problem.w0))
    rng = torch.Generator().manual_seed(0)
    V = torch.randn(n, problem.dim, generator=rng).to(problem.w0)
    u, top, mean = V.mean(0), V.norm(), V.norm()
    for _ in range(ITERATIONS):
        V = slopes(V / V.norm(dim=1, keepdim=True)) - origin
        u = (slopes((u / u.norm()).expand(n, -1)) - origin).mean(0)
        top, mean = V.norm(dim=1).amax(), u.norm()
    size = origin.norm(dim=1).mean() / (n * ball.diameter(problem.dim))
    return Scales(float(top), float(mean), float(size))
