"""The five problems of the arena in the forms that different methods can take.

Every problem is `min f(w)` subject to `g(w) <= LEVELS[name]`, where f and g are plain means over N
clients with equally many rows. The forms have the same losses: g as a constraint, as a second
objective, all rows at one client, or (where g is a norm) as a set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Positive, Seed, Whole
from fedlib.core import Problem
from fedlib.core.problem import Batch, ConvexSet
from fedlib.sets import L1Ball
from papers.arena.losses import (
    RADIUS,
    class_gradient,
    class_losses,
    entry_gradient,
    entry_loss,
    gap_gradient,
    gap_losses,
    label_gradient,
    label_losses,
    square_gradient,
    square_loss,
    square_loss_gradient,
    square_losses,
)
from papers.arena.tasks import BALL, CLIENTS, TASKS, Parts

NAMES = {
    "np": "Neyman-Pearson",
    "fair": "Fairness",
    "pair": "Two tasks",
    "sparse": "Sparse regression",
    "rank": "Matrix completion",
}
LEVELS = {"np": 0.5, "fair": 0.1, "pair": 0.6, "sparse": 1.0, "rank": 1.0}  # of g
BATCHES: dict[str, int | None] = {"np": None, "fair": 64, "pair": 32, "sparse": None, "rank": None}
SETS: dict[str, ConvexSet] = {
    "sparse": L1Ball(RADIUS),
    "rank": BALL,
}  # where g is a norm over a radius
FORMS = ("constraint", "objectives", "pooled", "set")
ITERATES = ("", "mean_", "own_")  # what metrics are named after the parts of a longer model

Losses = Callable[[Tensor, Batch], Tensor]
Gradient = Callable[[Tensor, Batch, Tensor], Tensor]
FUNCTIONS: dict[str, tuple[Losses, Gradient]] = {
    "np": (class_losses, class_gradient),
    "fair": (gap_losses, gap_gradient),
    "pair": (label_losses, label_gradient),
    "sparse": (square_losses, square_gradient),
    "rank": (entry_loss, entry_gradient),
}


@lru_cache(maxsize=64)
def arena_problem(
    seed: Seed, *, name: str, form: str = "constraint", stand_in: Whole = 0, ratio: Positive = 1.0
) -> Problem:
    """A problem of the arena.

    `metrics` are `f`, `g` on the clients' training rows, `val_f`, `val_g` on validation rows and
    `test_f`, `test_g`; of `pair` also `stationary`, the shortest convex combination of the two
    gradients. Of a model that is several times as long, the parts are measured one by one, with
    names from `ITERATES`. `form` is one of `FORMS`: `"set"` where the constraint is a norm, and
    alone on `rank`. With a `stand_in` so many generated people take the place of Adult's files;
    `ratio` is the weight of g over that of f among two objectives.
    """
    checks.arguments(arena_problem, locals())
    checks.one_of("arena_problem", "name", name, tuple(NAMES))
    return shaped(assembled(name, *TASKS[name](seed, stand_in)), form, ratio)


def shaped(problem: Problem, form: str, ratio: Positive = 1.0) -> Problem:
    """The same losses in another form; a set is refused where the constraint is no norm."""
    checks.arguments(shaped, locals())
    checks.one_of("shaped", "form", form, FORMS)
    name = problem.config["name"].removeprefix("arena_")
    config = {**problem.config, "form": form}
    if form == "set":
        if name not in SETS:
            rule = "be another for a constraint that is no norm"
            raise ValueError(checks.sentence("shaped", "form", rule, form))
        losses = (square_loss, square_loss_gradient) if name == "sparse" else FUNCTIONS[name]
        alone = replace(problem, losses=losses[0], gradient=losses[1], num_constraints=0)
        return replace(alone, config=config).within(SETS[name])
    if name == "rank":
        rule = 'be "set" for a norm that takes a singular value decomposition'
        raise ValueError(checks.sentence("shaped", "form", rule, form))
    if form == "objectives":
        return weighted(replace(problem, num_objectives=2, num_constraints=0, config=config), ratio)
    if form == "pooled":
        rows = problem.rows.reshape(1, -1)
        return replace(problem, rows=rows, sizes=(rows.numel(),), config=config)
    return replace(problem, config=config)


def weighted(problem: Problem, ratio: Positive) -> Problem:
    """Two objectives as `2 f / (1 + ratio)` and `2 ratio g / (1 + ratio)`: their mean is convex."""
    checks.arguments(weighted, locals())
    checks.positive("weighted", "ratio", ratio)
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
    clients, dim = CLIENTS[name], size(name, train)

    def metrics(w: Float[Tensor, "kd"], problem: Problem) -> dict[str, Tensor]:
        parts = zip(ITERATES, w.view(-1, dim), strict=False)
        return {f"{own}{k}": v for own, x in parts for k, v in _measured(name, x, problem).items()}

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


def _measured(name: str, w: Float[Tensor, "d"], problem: Problem) -> dict[str, Tensor]:
    """The metrics of a single model."""
    held, count = problem.heldout, len(problem.data)
    sides = {"": problem.data, "val_": held[:count], "test_": held[count:]}
    found: dict[str, Tensor] = {}
    for side, rows in sides.items():
        both = _values(name, w, rows)
        found |= {f"{side}f": both[0], f"{side}g": both[1]}
    if name == "pair":
        X = problem.data[0]
        every = Batch(problem.data, torch.full_like(X[:, 0], 1 / len(X)))
        one, two = (label_gradient(w, every, x) for x in torch.eye(2).to(w))
        found["stationary"] = shortest(one, two)
    return found


def _values(name: str, w: Float[Tensor, "d"], rows: Parts) -> Float[Tensor, "2"]:
    """The means f and g over some rows."""
    losses, _ = FUNCTIONS[name]
    found = losses(w, Batch(rows, w.new_full((len(rows[-1]),), 1 / len(rows[-1]))))
    return torch.cat([found, BALL.gauge(w).unsqueeze(0)]) if name == "rank" else found


def size(name: str, train: Parts) -> int:
    """How long a model is."""
    return BALL.rows * BALL.columns if name == "rank" else train[0].shape[1]


def shortest(one: Float[Tensor, "d"], two: Float[Tensor, "d"]) -> Float[Tensor, ""]:
    """The norm of the shortest convex combination of two vectors."""
    apart = two - one
    length = (apart @ apart).clamp(min=torch.finfo(one.dtype).tiny)
    shortest: Tensor = (one + (-(one @ apart) / length).clamp(0, 1) * apart).norm()
    return shortest
