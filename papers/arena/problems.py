"""The four problems of the arena, each in the forms that different methods can take.

Every problem is `min f(w)` subject to `g(w) <= LEVELS[name]` for a linear model `w [d]`, where f
and g are plain means over N clients with equally many rows. A fifth of every client's rows is held
out for validation. The forms have the same losses: g as a constraint, as a second objective, all
rows at one client, or (where g is a norm) as a set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

import torch
from jaxtyping import Float, Int
from torch import Tensor

from fedlib import checks, data
from fedlib.core import Problem
from fedlib.core.sampling import seeded
from fedlib.core.types import Batch
from fedlib.data import census as adult
from fedlib.data import split
from fedlib.data.split_labels import holdout
from fedlib.problems.neyman_pearson import class_shares, prepared
from fedlib.sets import L1Ball
from papers.arena.losses import (
    RADIUS,
    class_gradient,
    class_losses,
    gap_gradient,
    gap_losses,
    label_gradient,
    label_losses,
    square_gradient,
    square_loss,
    square_loss_gradient,
    square_losses,
)

NAMES = {
    "np": "Neyman-Pearson",
    "fair": "Fairness",
    "sparse": "Sparse regression",
    "pair": "Two tasks",
}
LEVELS = {"np": 0.2, "fair": 0.05, "sparse": 1.0, "pair": 0.6}  # of g
BATCHES: dict[str, int | None] = {"np": None, "fair": 64, "sparse": None, "pair": 32}
CLIENTS = {"np": 8, "fair": 10, "sparse": 8, "pair": 10}
FORMS = ("constraint", "objectives", "pooled", "set")

VALIDATION = 0.2  # of every client's rows
TEST = 0.25  # of all rows, where there are no test rows of their own
FEATURES, NONZERO, ROWS, MORE = 100, 10, 40, 25  # sparse: d, |w|_1, rows, test rows of a client
SPREAD = 0.5  # sparse: of the logarithm of a client's feature scales
MIXTURE = 0.5  # pair: concentration of the Dirichlet split over digits
PEOPLE, JUDGES = 6000, 5000  # fair: people of the clients, and of the test, drawn anew by each seed

Losses = Callable[[Tensor, Batch], Tensor]
Gradient = Callable[[Tensor, Batch, Tensor], Tensor]
Parts = tuple[Tensor, ...]


@lru_cache(maxsize=64)
def arena_problem(seed: int, *, name: str, form: str = "constraint", stand_in: int = 0) -> Problem:
    """A problem of the arena.

    `metrics` are `f`, `g` on the clients' training rows, `val_f`, `val_g` on their held-out rows
    and `test_f`, `test_g`; of `pair` also `stationary`, the shortest convex combination of the two
    gradients. `form` is one of `FORMS`, `"set"` for sparse alone; with a `stand_in` so many
    generated people take the place of Adult's files (fair alone).
    """
    checks.one_of("arena_problem", "name", name, tuple(NAMES))
    return shaped(MAKERS[name](seed, stand_in) if name == "fair" else MAKERS[name](seed, 0), form)


def shaped(problem: Problem, form: str) -> Problem:
    """The same losses in another form; a set is refused where the constraint is no norm."""
    checks.one_of("shaped", "form", form, FORMS)
    config = {**problem.config, "form": form}
    if form == "objectives":
        return replace(problem, num_objectives=2, num_constraints=0, config=config)
    if form == "pooled":
        rows = problem.rows.reshape(1, -1)
        return replace(problem, rows=rows, sizes=(rows.numel(),), config=config)
    if form == "set":
        if problem.config["name"] != "arena_sparse":
            rule = "be another for a constraint that is no norm"
            raise ValueError(checks.sentence("shaped", "form", rule, form))
        alone = replace(
            problem,
            losses=square_loss,
            gradient=square_loss_gradient,
            num_constraints=0,
            config=config,
        )
        return alone.within(L1Ball(RADIUS))
    return replace(problem, config=config)


def assembled(
    name: str, functions: tuple[Losses, Gradient], parts: Sequence[Parts], more: dict[str, object]
) -> Problem:
    """The constraint form from data of training (client after client), validation and test."""
    losses, gradient = functions
    train, count = parts[0], len(parts[0])

    def whole(w: Tensor, rows: Parts) -> Tensor:
        weight = torch.full_like(rows[0][:, 0], 1 / len(rows[0]))
        return losses(w, Batch(rows, weight))

    def metrics(w: Float[Tensor, "d"], problem: Problem) -> dict[str, Tensor]:
        held = problem.heldout
        sides = {"": problem.data, "val_": held[:count], "test_": held[count:]}
        found: dict[str, Tensor] = {}
        for side, rows in sides.items():
            both = whole(w, rows)
            found |= {f"{side}f": both[0], f"{side}g": both[1]}
        if name == "pair":
            X = problem.data[0]
            every = Batch(problem.data, torch.full_like(X[:, 0], 1 / len(X)))
            one, two = (gradient(w, every, x) for x in torch.eye(2).to(w))
            found["stationary"] = shortest(one, two)
        return found

    clients = CLIENTS[name]
    return Problem(
        name=f"arena_{name}",
        data=train,
        rows=torch.arange(len(train[0])).view(clients, -1),
        sizes=(len(train[0]) // clients,) * clients,
        losses=losses,
        gradient=gradient,
        num_objectives=1,
        num_constraints=1,
        w0=torch.zeros(train[0].shape[1]),
        metrics=metrics,
        heldout=(*parts[1], *parts[2]),
        config={"name": f"arena_{name}", "clients": clients, "split_by": "seed", **more},
    )


def shortest(one: Float[Tensor, "d"], two: Float[Tensor, "d"]) -> Float[Tensor, ""]:
    """The norm of the shortest convex combination of two vectors."""
    apart = two - one
    length = (apart @ apart).clamp(min=torch.finfo(one.dtype).tiny)
    shortest: Tensor = (one + (-(one @ apart) / length).clamp(0, 1) * apart).norm()
    return shortest


def held_out(
    rows: Int[Tensor, "N m"], rng: torch.Generator
) -> tuple[Int[Tensor, "N r"], Int[Tensor, "v"]]:
    """Every client's training rows, and all clients' validation rows."""
    kept, _, own = holdout(rows, (rows.shape[1],) * len(rows), VALIDATION, rng)
    return kept, own


def neyman_pearson_task(seed: int, _: int) -> Problem:
    """Breast cancer: benign rows are the objective, malignant ones the constraint."""
    table, rng = data.breast_cancer(), seeded(seed, "split")
    first, test = split.train_test(table.y, TEST, rng)
    rows, val = held_out(first[split.stratified_iid(table.y[first], CLIENTS["np"], rng)], rng)
    own = rows.flatten()
    X = prepared(table.X.double(), own, standardize=True, bias=True).float()
    y = table.y.float()
    shares = class_shares("neyman_pearson_task", table.y, rows).float()
    parts = [(X[own], y[own], shares[own])]
    for some in (val, test):
        of_all = class_shares("neyman_pearson_task", table.y, some.unsqueeze(0)).float()
        parts.append((X[some], y[some], of_all[some]))
    return assembled("np", (class_losses, class_gradient), parts, {"data": "breast cancer"})


@lru_cache(maxsize=2)
def people(stand_in: int) -> adult.Adult:
    """Adult, or generated people of the same schema (half as many for the test)."""
    if stand_in == 0:
        return adult.official()
    return adult.prepared(adult.stand_in(stand_in), adult.stand_in(stand_in // 2, seed=1))


def fairness_task(seed: int, stand_in: int) -> Problem:
    """Adult: the advantage of men in the mean output; unequal mixtures of sex and income."""
    rows_of, rng = people(stand_in), seeded(seed, "split")
    train, test = rows_of.train, rows_of.test
    some = torch.randperm(len(train.y), generator=rng)[:PEOPLE]
    judges = torch.randperm(len(test.y), generator=rng)[:JUDGES]
    cells = (2 * train.y + train.group).long()[some]
    rows, val = held_out(some[split.dirichlet(cells, CLIENTS["fair"], 2.0, rng)], rng)
    parts = [people_parts(train, rows.flatten()), people_parts(train, val)]
    parts.append(people_parts(test, judges))
    source = "generated stand-in" if stand_in else "adult"
    return assembled("fair", (gap_losses, gap_gradient), parts, {"data": source})


def people_parts(rows: adult.Rows, some: Int[Tensor, "r"]) -> Parts:
    """Features with a constant, incomes, and what a row's output counts in the groups' gap."""
    X, y, group = (x[some] for x in rows)
    men = group.sum()
    share = len(some) * (group / men - (1 - group) / (len(some) - men))
    return torch.cat([X, torch.ones_like(X[:, :1])], 1), y, share


def sparse_task(seed: int, _: int) -> Problem:
    """Generated: entries +1 and -1 at ten of a hundred places, clients with scales of their own."""
    rng, clients = seeded(seed, "split"), CLIENTS["sparse"]
    truth = torch.zeros(FEATURES)
    signs = 2.0 * torch.randint(2, (int(RADIUS),), generator=rng) - 1
    truth[torch.randperm(FEATURES, generator=rng)[: len(signs)]] = signs
    scale = (SPREAD * torch.randn(clients, 1, FEATURES, generator=rng)).exp()
    X = (scale * torch.randn(clients, ROWS + MORE, FEATURES, generator=rng)).flatten(0, 1)
    y = X @ truth + torch.randn(len(X), generator=rng)
    place = torch.arange(len(X)).view(clients, -1)
    rows, val = held_out(place[:, :ROWS], rng)
    parts = [(X[r], y[r]) for r in (rows.flatten(), val, place[:, ROWS:].flatten())]
    return assembled("sparse", (square_losses, square_gradient), parts, {"data": "generated"})


def pair_task(seed: int, _: int) -> Problem:
    """Digits: one linear score for two labels, even or not and five or more; unequal clients."""
    table, rng = data.digits(), seeded(seed, "split")
    first, test = split.train_test(table.y, TEST, rng)
    rows, val = held_out(first[split.dirichlet(table.y[first], CLIENTS["pair"], MIXTURE, rng)], rng)
    X = table.X.flatten(1).float() / table.X.max()
    X = torch.cat([X, torch.ones_like(X[:, :1])], 1)
    Y = torch.stack([table.y % 2 == 0, table.y >= 5], 1).float()
    parts = [(X[r], Y[r]) for r in (rows.flatten(), val, test)]
    return assembled("pair", (label_losses, label_gradient), parts, {"data": "digits"})


MAKERS: dict[str, Callable[[int, int], Problem]] = {
    "np": neyman_pearson_task,
    "fair": fairness_task,
    "sparse": sparse_task,
    "pair": pair_task,
}
