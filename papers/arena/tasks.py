"""The data of the arena's problems: training rows client after client, validation, test.

Every maker takes a seed and how many generated people take Adult's place (0: none), and returns the
tensors of the three kinds of rows and what a stored run records of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch
from jaxtyping import Int
from torch import Tensor

from fedlib import data
from fedlib.core.sampling import seeded
from fedlib.data import split
from fedlib.data.split import holdout
from fedlib.problems.fairness import Rows
from fedlib.problems.neyman_pearson import class_shares
from papers import adult
from papers.arena.losses import RADIUS

CLIENTS = {"np": 8, "pair": 10, "sparse": 8}
VALIDATION = 0.2  # of every client's rows
TEST = 0.25  # pair: of all rows
PEOPLE = 4000  # np: the clients' rows of Adult's 45,222, drawn by each seed
JUDGES = 10000  # validation rows of Adult; all other people are for the test
ALL = 45222  # of which these are numbers
FEATURES, NONZERO, ROWS, MORE = 100, 10, 40, 25  # sparse: d, |w|_1, rows, test rows of a client
SPREAD = 0.5  # sparse: of the logarithm of a client's feature scales
MIXTURE = 0.5  # pair: concentration of the Dirichlet split over digits

Parts = tuple[Tensor, ...]
Made = tuple[Parts, Parts, Parts, dict[str, object]]


def held_out(
    rows: Int[Tensor, "N m"], rng: torch.Generator
) -> tuple[Int[Tensor, "N r"], Int[Tensor, "v"]]:
    """Every client's training rows, and all clients' validation rows."""
    kept, _, own = holdout(rows, (rows.shape[1],) * len(rows), VALIDATION, rng)
    return kept, own


@lru_cache(maxsize=2)
def people(stand_in: int) -> Rows:
    """All rows of Adult's two files, or of generated people of the same schema."""
    if stand_in == 0:
        both = adult.official()
    else:
        both = adult.prepared(adult.stand_in(stand_in), adult.stand_in(stand_in // 2, seed=1))
    return Rows(*(torch.cat(pair) for pair in zip(both.train, both.test, strict=True)))


def neyman_pearson_task(seed: int, stand_in: int) -> Made:
    """Adult: people of low income are the objective, those of high income the constraint."""
    rows, rng = people(stand_in), seeded(seed, "split")
    order = torch.randperm(len(rows.y), generator=rng)
    cut = [int(len(order) * n / ALL) for n in (PEOPLE, JUDGES)]
    own, val, test = order.split([*cut, len(order) - sum(cut)])  # type: ignore[no-untyped-call]
    table = own[split.stratified_iid(rows.y[own].long(), CLIENTS["np"], rng)]
    table = table[:, : len(own) // CLIENTS["np"] - 1]  # as wide for every seed
    parts = [class_parts(rows, some) for some in (table, val.unsqueeze(0), test.unsqueeze(0))]
    source = "generated stand-in" if stand_in else "adult"
    return parts[0], parts[1], parts[2], {"data": source, "split_by": "seed"}


def class_parts(rows: Rows, table: Int[Tensor, "N m"]) -> Parts:
    """Features with a constant, incomes, and what a row counts in the mean of its class."""
    some = table.flatten()
    shares = class_shares("neyman_pearson_task", rows.y, table)[some]
    return with_constant(rows.X[some]), rows.y[some].float(), shares.float()


def with_constant(X: Tensor) -> Tensor:
    return torch.cat([X, torch.ones_like(X[:, :1])], 1)


def pair_task(seed: int, _: int) -> Made:
    """Digits: one linear score for two labels, even or not and five or more; unequal clients."""
    table, rng = data.digits(), seeded(seed, "split")
    first, test = split.train_test(table.y, TEST, rng)
    rows, val = held_out(first[split.dirichlet(table.y[first], CLIENTS["pair"], MIXTURE, rng)], rng)
    X = with_constant(table.X.flatten(1).float() / table.X.max())
    Y = torch.stack([table.y % 2 == 0, table.y >= 5], 1).float()
    parts = [(X[r], Y[r]) for r in (rows.flatten(), val, test)]
    return parts[0], parts[1], parts[2], {"data": "digits", "split_by": "seed"}


def sparse_task(seed: int, _: int) -> Made:
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
    return parts[0], parts[1], parts[2], {"data": "generated", "split_by": "seed"}


TASKS: dict[str, Callable[[int, int], Made]] = {
    "np": neyman_pearson_task,
    "pair": pair_task,
    "sparse": sparse_task,
}
