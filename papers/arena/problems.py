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
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import softplus

from fedlib import data
from fedlib.core import Problem
from fedlib.core.problem import Batch, ConvexSet
from fedlib.core.sampling import seeded
from fedlib.data import split
from fedlib.data.split import holdout
from fedlib.problems.fairness import Rows
from fedlib.problems.neyman_pearson import class_shares, logistic_gradient, logistic_losses
from fedlib.sets import L1Ball
from fedlib.shapes import Vector
from papers import adult

Two = Float[Tensor, "2"]  # a number for f and another one for g

RIDGE = 0.03  # f of the two logistic models has RIDGE / 2 |w|^2 in it, for a finite solution
RADIUS = 10.0  # sparse: the l1 norm of the truth, whose entries are +1, -1 and 0


def class_losses(w: Vector, batch: Batch) -> Two:
    """np: mean logistic loss of class 0 with the ridge, and of class 1."""
    return with_ridge(logistic_losses(w, batch), w)


def class_gradient(w: Tensor, batch: Batch, weights: Two) -> Vector:
    """Gradient of `weights @ class_losses`."""
    slope = logistic_gradient(w, batch, weights)
    return slope + RIDGE * weights[0] * w


def label_losses(w: Vector, batch: Batch) -> Two:
    """pair: mean logistic losses of the same outputs for two labels, the first with the ridge."""
    X, Y = batch.data
    z = (X @ w).unsqueeze(-1)
    logistic = softplus(z) - z * Y
    return with_ridge(batch.weight @ logistic, w)


def label_gradient(w: Tensor, batch: Batch, weights: Two) -> Vector:
    """Gradient of `weights @ label_losses`."""
    X, Y = batch.data
    shares = torch.sigmoid(X @ w)
    error = weights.sum() * shares - Y @ weights
    slope = (batch.weight * error) @ X
    return slope + RIDGE * weights[0] * w


def square_losses(w: Vector, batch: Batch) -> Two:
    """sparse: mean of half the squared error, and the l1 norm over the radius."""
    X, y = batch.data
    errors = 0.5 * (X @ w - y).square()
    f = batch.weight @ errors
    g = w.abs().sum() / RADIUS
    return torch.stack([f, g])


def square_gradient(w: Tensor, batch: Batch, weights: Two) -> Vector:
    """Gradient of `weights @ square_losses`, a subgradient where an entry is 0."""
    X, y = batch.data
    error = X @ w - y
    weighted = batch.weight * weights[0] * error
    slope = weighted @ X
    if len(weights) == 1:
        return slope
    return slope + weights[1] * w.sign() / RADIUS


def with_ridge(losses: Two, w: Vector) -> Two:
    """The losses, the ridge added to the first."""
    f, g = losses
    ridge = 0.5 * RIDGE * (w @ w)
    return torch.stack([f + ridge, g])


NAMES = {"np": "Neyman-Pearson", "pair": "Two tasks", "sparse": "Sparse regression"}
LEVELS = {"np": 0.5, "pair": 0.6, "sparse": 1.0}  # of g
BATCHES: dict[str, int | None] = {"np": None, "pair": 32, "sparse": None}
SETS: dict[str, ConvexSet] = {"sparse": L1Ball(RADIUS)}  # where g is a norm over a radius
FORMS = ("constraint", "objectives", "set")

Parts = tuple[Tensor, ...]
Made = tuple[Parts, Parts, Parts, dict[str, object]]
Losses = Callable[[Tensor, Batch], Tensor]
Gradient = Callable[[Tensor, Batch, Tensor], Tensor]
FUNCTIONS: dict[str, tuple[Losses, Gradient]] = {
    "np": (class_losses, class_gradient),
    "pair": (label_losses, label_gradient),
    "sparse": (square_losses, square_gradient),
}


@lru_cache(maxsize=64)
def arena_problem(
    seed: int,
    *,
    name: str,
    form: str = "constraint",
    stand_in: int = 0,
    ratio: float = 1.0,
) -> Problem:
    """A problem of the arena.

    `metrics` are `f`, `g` on the clients' training rows, `val_f`, `val_g` on validation rows and
    `test_f`, `test_g`. `form` is one of `FORMS`: `"set"` where the constraint is a norm. With a
    `stand_in` so many generated people take the place of Adult's files; `ratio` is the weight of g
    over that of f among two objectives.
    """
    task = TASKS[name](seed, stand_in)
    problem = assembled(name, *task)
    config = {**problem.config, "form": form}
    problem = replace(problem, config=config)
    if form == "set":
        return in_set(problem, SETS[name])
    if form == "objectives":
        two_objectives = replace(problem, num_objectives=2, num_constraints=0)
        return weighted(two_objectives, ratio)
    return problem


def in_set(problem: Problem, allowed: ConvexSet) -> Problem:
    """The sparse problem whose constraint is a set: its first loss alone."""

    def losses(w: Vector, batch: Batch) -> Float[Tensor, "1"]:
        return square_losses(w, batch)[:1]

    single = replace(problem, losses=losses, num_constraints=0)
    return single.within(allowed)


def weighted(problem: Problem, ratio: float) -> Problem:
    """Two objectives as `2 f / (1 + ratio)` and `2 ratio g / (1 + ratio)`: their mean is convex."""
    losses = problem.losses
    gradient = problem.gradient
    total = 1 + ratio
    scale = (2 / total, 2 * ratio / total)
    assert gradient is not None

    def scaled(w: Vector, batch: Batch) -> Two:
        return losses(w, batch) * w.new_tensor(scale)

    def slope(w: Tensor, batch: Batch, weights: Two) -> Vector:
        return gradient(w, batch, weights * w.new_tensor(scale))

    config = {**problem.config, "ratio": ratio}
    return replace(problem, losses=scaled, gradient=slope, config=config)


def assembled(
    name: str,
    train: Parts,
    val: Parts,
    test: Parts,
    config: dict[str, object],
) -> Problem:
    """The constraint form from the data of training (client after client), validation, test."""
    losses, gradient = FUNCTIONS[name]
    clients = CLIENTS[name]
    count, dim = train[0].shape
    columns = len(train)

    def metrics(w: Vector, problem: Problem) -> dict[str, Tensor]:
        sides = {
            "": problem.data,
            "val_": problem.heldout[:columns],
            "test_": problem.heldout[columns:],
        }
        curves = {}
        for side, rows in sides.items():
            f, g = losses(w, equal_batch(rows))
            curves[f"{side}f"] = f
            curves[f"{side}g"] = g
        return curves

    return Problem(
        name=f"arena_{name}",
        data=train,
        rows=torch.arange(count).view(clients, -1),
        sizes=(count // clients,) * clients,
        losses=losses,
        gradient=gradient,
        num_objectives=1,
        num_constraints=1,
        w0=torch.zeros(dim),
        metrics=metrics,
        heldout=(*val, *test),
        config={"name": f"arena_{name}", "clients": clients, "dim": dim, **config},
    )


def equal_batch(rows: Parts) -> Batch:
    """Some rows as one batch, of which each counts alike."""
    first_column = rows[0]
    count = len(first_column)
    weight = first_column.new_full((count,), 1 / count)
    return Batch(rows, weight)


CLIENTS = {"np": 8, "pair": 10, "sparse": 8}
VALIDATION = 0.2  # of every client's rows
TEST = 0.25  # pair: of all rows
PEOPLE = 4000  # np: the clients' rows of Adult's 45,222, drawn by each seed
JUDGES = 10000  # validation rows of Adult; all other people are for the test
ALL = 45222  # of which these are numbers
FEATURES = 100  # sparse: d
ROWS = 40  # sparse: rows of a client
TEST_ROWS = 25  # sparse: of a client
SPREAD = 0.5  # sparse: of the logarithm of a client's feature scales
MIXTURE = 0.5  # pair: concentration of the Dirichlet split over digits


def held_out(
    rows: Int[Tensor, "N m"], rng: torch.Generator
) -> tuple[Int[Tensor, "N r"], Int[Tensor, "v"]]:
    """Every client's training rows, and all clients' validation rows."""
    sizes = (rows.shape[1],) * len(rows)
    kept, _, validation = holdout(rows, sizes, VALIDATION, rng)
    return kept, validation


@lru_cache(maxsize=2)
def people(stand_in: int) -> Rows:
    """All rows of Adult's two files, or of generated people."""
    both = adult.stand_in(stand_in) if stand_in else adult.official()
    pairs = zip(both.train, both.test, strict=True)
    return Rows(*(torch.cat(pair) for pair in pairs))


def neyman_pearson_task(seed: int, stand_in: int) -> Made:
    """Adult: people of low income are the objective, those of high income the constraint."""
    rows = people(stand_in)
    rng = seeded(seed, "split")
    count = len(rows.y)
    order = torch.randperm(count, generator=rng)
    first_judge = count * PEOPLE // ALL
    first_of_test = first_judge + count * JUDGES // ALL
    chosen, val, test = order.tensor_split([first_judge, first_of_test])
    clients = CLIENTS["np"]
    places = split.stratified_iid(rows.y[chosen].long(), clients, rng)
    width = len(chosen) // clients - 1  # the same for every seed
    config: dict[str, object] = {
        "data": "generated stand-in" if stand_in else "adult",
        "split_by": "seed",
    }
    return (
        class_parts(rows, chosen[places][:, :width]),
        class_parts(rows, val.unsqueeze(0)),
        class_parts(rows, test.unsqueeze(0)),
        config,
    )


def class_parts(rows: Rows, table: Int[Tensor, "N m"]) -> Parts:
    """Features with a constant, incomes, and what a row counts in the mean of its class."""
    flat = table.flatten()
    shares = class_shares("neyman_pearson_task", rows.y, table)
    X = with_constant(rows.X[flat])
    return X, rows.y[flat].float(), shares[flat].float()


def with_constant(X: Tensor) -> Tensor:
    """The rows with a last entry 1."""
    constant = torch.ones_like(X[:, :1])
    return torch.cat([X, constant], 1)


def pair_task(seed: int, _: int) -> Made:
    """Digits: one linear score for two labels, even or not and five or more; unequal clients."""
    table = data.digits()
    rng = seeded(seed, "split")
    train, test = split.train_test(table.y, TEST, rng)
    of_clients = split.dirichlet(table.y[train], CLIENTS["pair"], MIXTURE, rng)
    rows, val = held_out(train[of_clients], rng)
    pixels = table.X.flatten(1).float()
    X = with_constant(pixels / table.X.max())
    is_even = table.y % 2 == 0
    is_large = table.y >= 5
    Y = torch.stack([is_even, is_large], 1)
    return divided((X, Y.float()), (rows.flatten(), val, test), "digits")


def divided(columns: Parts, sides: Parts, name: str) -> Made:
    """The columns of some data on the rows of training, of validation and of the test."""
    train, val, test = (tuple(column[rows] for column in columns) for rows in sides)
    return train, val, test, {"data": name, "split_by": "seed"}


def sparse_task(seed: int, _: int) -> Made:
    """Generated: entries +1 and -1 at ten of a hundred places, clients with scales of their own."""
    rng = seeded(seed, "split")
    clients = CLIENTS["sparse"]
    truth = torch.zeros(FEATURES)
    coins = torch.randint(2, (int(RADIUS),), generator=rng)
    places = torch.randperm(FEATURES, generator=rng)
    truth[places[: len(coins)]] = 2.0 * coins - 1
    log_scale = SPREAD * torch.randn(clients, 1, FEATURES, generator=rng)
    features = torch.randn(clients, ROWS + TEST_ROWS, FEATURES, generator=rng)
    X = (log_scale.exp() * features).flatten(0, 1)
    noise = torch.randn(len(X), generator=rng)
    y = X @ truth + noise
    numbers = torch.arange(len(X)).view(clients, -1)
    rows, val = held_out(numbers[:, :ROWS], rng)
    test = numbers[:, ROWS:]
    return divided((X, y), (rows.flatten(), val, test.flatten()), "generated")


TASKS: dict[str, Callable[[int, int], Made]] = {
    "np": neyman_pearson_task,
    "pair": pair_task,
    "sparse": sparse_task,
}
