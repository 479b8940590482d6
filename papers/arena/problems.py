"""The three problems of the arena in the forms that different methods can take.

Every problem is `min f(w)` subject to `g(w) <= LEVELS[name]`, where f and g are plain means over N
clients with equally many rows. The forms have the same losses: g as a constraint, as a second
objective, or (where g is a norm) as a set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib.core import Problem
from fedlib.core.problem import Batch, ConvexSet
from fedlib.sets import L1Ball
from papers.arena.losses import (
    RADIUS,
    class_gradient,
    class_losses,
    label_gradient,
    label_losses,
    square_gradient,
    square_loss,
    square_loss_gradient,
    square_losses,
)
from papers.arena.tasks import CLIENTS, TASKS, Parts

NAMES = {"np": "Neyman-Pearson", "pair": "Two tasks", "sparse": "Sparse regression"}
LEVELS = {"np": 0.5, "pair": 0.6, "sparse": 1.0}  # of g
BATCHES: dict[str, int | None] = {"np": None, "pair": 32, "sparse": None}
SETS: dict[str, ConvexSet] = {"sparse": L1Ball(RADIUS)}  # where g is a norm over a radius
FORMS = ("constraint", "objectives", "set")

Losses = Callable[[Tensor, Batch], Tensor]
Gradient = Callable[[Tensor, Batch, Tensor], Tensor]
FUNCTIONS: dict[str, tuple[Losses, Gradient]] = {
    "np": (class_losses, class_gradient),
    "pair": (label_losses, label_gradient),
    "sparse": (square_losses, square_gradient),
}


@lru_cache(maxsize=64)
def arena_problem(
    seed: int, *, name: str, form: str = "constraint", stand_in: int = 0, ratio: float = 1.0
) -> Problem:
    """A problem of the arena.

    `metrics` are `f`, `g` on the clients' training rows, `val_f`, `val_g` on validation rows and
    `test_f`, `test_g`. `form` is one of `FORMS`: `"set"` where the constraint is a norm. With a
    `stand_in` so many generated people take the place of Adult's files; `ratio` is the weight of g
    over that of f among two objectives.
    """
    return shaped(assembled(name, *TASKS[name](seed, stand_in)), form, ratio)


def shaped(problem: Problem, form: str, ratio: float = 1.0) -> Problem:
    """The same losses in another form."""
    config, name = {**problem.config, "form": form}, problem.name.removeprefix("arena_")
    if form == "set":
        alone = replace(problem, losses=square_loss, gradient=square_loss_gradient)
        return replace(alone, num_constraints=0, config=config).within(SETS[name])
    if form == "objectives":
        return weighted(replace(problem, num_objectives=2, num_constraints=0, config=config), ratio)
    return replace(problem, config=config)


def weighted(problem: Problem, ratio: float) -> Problem:
    """Two objectives as `2 f / (1 + ratio)` and `2 ratio g / (1 + ratio)`: their mean is convex."""
    losses, gradient = problem.losses, problem.gradient
    scale = 2 / (1 + ratio), 2 * ratio / (1 + ratio)
    assert gradient is not None

    def scaled(w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "2"]:
        return losses(w, batch) * w.new_tensor(scale)

    def slope(w: Tensor, batch: Batch, weights: Float[Tensor, "2"]) -> Float[Tensor, "d"]:
        return gradient(w, batch, weights * w.new_tensor(scale))

    config = {**problem.config, "ratio": ratio}
    return replace(problem, losses=scaled, gradient=slope, config=config)


def assembled(
    name: str, train: Parts, val: Parts, test: Parts, config: dict[str, object]
) -> Problem:
    """The constraint form from the data of training (client after client), validation, test."""
    losses, gradient = FUNCTIONS[name]
    clients, dim, count = CLIENTS[name], train[0].shape[1], len(train)

    def metrics(w: Float[Tensor, "d"], problem: Problem) -> dict[str, Tensor]:
        held = problem.heldout
        sides = {"": problem.data, "val_": held[:count], "test_": held[count:]}
        found = {side: over_rows(losses, w, rows) for side, rows in sides.items()}
        return {
            f"{side}{k}": x for side, both in found.items() for k, x in zip("fg", both, strict=True)
        }

    return Problem(
        name=f"arena_{name}",
        data=train,
        rows=torch.arange(len(train[0])).view(clients, -1),
        sizes=(len(train[0]) // clients,) * clients,
        losses=losses,
        gradient=gradient,
        num_objectives=1,
        num_constraints=1,
        w0=torch.zeros(dim),
        metrics=metrics,
        heldout=(*val, *test),
        config={"name": f"arena_{name}", "clients": clients, "dim": dim, **config},
    )


def over_rows(losses: Losses, w: Float[Tensor, "d"], rows: Parts) -> Float[Tensor, "2"]:
    """The means f and g over some rows."""
    count = len(rows[-1])
    return losses(w, Batch(rows, w.new_full((count,), 1 / count)))
