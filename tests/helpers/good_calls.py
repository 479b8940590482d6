"""Good arguments of functions and methods, for the corpus of bad ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from good_records import composite, problem_of

import fedlib as fl
from fedlib import data, metrics, models, problems
from fedlib.core.sampling import seeded
from fedlib.data import split
from fedlib.problems import classification
from fedlib.sets.blocks import Blocks
from fedlib.testing.examples import examples
from fedlib.vertical import contiguous, vertical
from papers.arena.problems import arena_problem
from papers.fedcmoo.problems.generated_molecules import generated
from papers.fedcmoo.standin import standin_pairs, standin_problem
from papers.fedfw.authors.rows import authors_problem, our_problem
from papers.fedfw.feasible_data import constrained_pictures, constrained_synthetic
from papers.fedfw.gaussian_labels import gaussian_labels
from papers.fedfw.matrices import matrix_completion, multi_task_regression
from papers.fedsgm import skewness
from papers.fedsgm.cartpole.simulator import cartpole
from papers.fedsgm.problems import norms, sampled, staircase, weakly_convex
from papers.kit import census
from papers.ssca import network as divided
from papers.ssca.common import digits_problem

X = torch.linspace(-1, 1, 48, dtype=torch.float64).view(24, 2)
Y = torch.arange(24) % 2
ROWS = torch.arange(24).view(4, 6)
TWO, FOUR, RNG = torch.ones(2), torch.ones(4), torch.Generator()
SETS = (fl.Ball(1.0), fl.Box(1.0), fl.L1Ball(1.0), fl.Simplex(1.0), fl.NuclearBall(1.0, 2, 2))
SETS += (Blocks((fl.Ball(1.0), fl.Box(1.0)), (2, 2)),)


@dataclass(frozen=True)
class Call:
    """A function or bound method, good arguments, and those that are not tried."""

    function: Callable[..., Any]
    good: dict[str, Any]
    skip: tuple[str, ...] = ()

    @property
    def who(self) -> str:
        return self.function.__qualname__.removesuffix(".__call__")

    def with_changes(self, **changes: Any) -> Any:
        """The result with changes to the good arguments."""
        return self.function(**{**self.good, **changes})


@cache
def digits() -> data.Table:
    return data.digits()


@cache
def network() -> Any:
    return divided.swish_network(digits(), digits(), clients=2, hidden=2, evaluate=5, scale=16.0)


def calls() -> Iterator[Call]:
    """All of them."""
    yield from of_problems()
    yield from of_papers()
    yield from of_splits()
    yield from of_ingredients()
    yield from of_models()


def of_problems() -> Iterator[Call]:
    """`run`, the library's makers of problems, metrics."""
    run = {"algorithms": fl.FedAvg(0.1, 1, 2), "problem": problem_of(0), "rounds": 1}
    yield Call(fl.run, {**run, "progress": False}, ("checkpoint", "engine"))
    yield Call(problem_of(0).within, {"convex_set": fl.Ball(1.0)})
    P, table = problems, digits()
    yield Call(P.quadratics, {"a": torch.ones(4, 2), "b": torch.zeros(4, 2), "level": 0.5})
    yield Call(P.pareto, {"centres": torch.ones(3, 2, 2, 2)})
    yield Call(P.neyman_pearson, {"X": X, "y": Y, "clients": 4})
    train, test = census.prepared(census.stand_in(400), census.stand_in(200, 1))[:2]
    yield Call(P.fairness, {"train": train, "test": test, "clients": 3, "hidden": (4,)})
    samples, fitted = classification.Samples(X, Y), classification.linear_model(2, 2)
    yield Call(P.classifier, {"train": samples, "test": samples, "rows": ROWS, "model": fitted})
    yield Call(classification.linear_model, {"features": 2, "classes": 2})
    small = {"train": table, "test": table, "clients": 2, "hidden": 2, "evaluate": 5}
    yield Call(divided.swish_network, small)
    yield Call(divided.vertical_network, {"network": network(), "clients": 2, "scale": 16.0})
    low = {"clients": 2, "rows": 3, "features": 3, "tasks": 2, "rank": 1}
    yield Call(multi_task_regression, low)
    yield Call(matrix_completion, {"clients": 2, "users": 4, "items": 4, "rank": 1})
    yield Call(cartpole, {"seed": 0, "clients": 2, "environments": 1, "evaluation": 1})
    at = {"problem": problem_of(0), "w": torch.zeros(2)}
    for function in (skewness.client_gradients, skewness.multiplier, metrics.mean_gradient):
        yield Call(function, at)
    yield Call(skewness.skewness, {"a": X, "b": X})
    yield Call(skewness.skew_matrix, {"a": X, "b": X})


def of_papers() -> Iterator[Call]:
    """The papers' makers of problems."""
    table = digits()
    yield Call(arena_problem, {"seed": 0, "name": "sparse"})
    pictures = {"train": table, "test": table, "data": "digits", "train_rows": 60}
    yield Call(constrained_pictures, pictures)
    yield Call(constrained_synthetic, {"samples": 8, "clients": 2})
    yield Call(authors_problem, {"seed": 0, "net": "mclr", "classes": 3})
    yield Call(our_problem, {"seed": 0, "most": 8})
    yield Call(gaussian_labels, {"clients": 2, "samples": 4, "rng": seeded(0, "split")})
    yield Call(standin_pairs, {"name": "multi_mnist", "split": "test"})
    yield Call(generated, {"train": 2, "test": 2})
    sizes = {"clients": 2, "alpha": 0.3, "copies": 0, "pictures": 40, "test_pictures": 8}
    yield Call(standin_problem, {"seed": 0, "data": "multi_mnist", **sizes})
    chosen = {"seed": 0, "data": "digits", "clients": 2, "hidden": 2, "evaluate": 5}
    yield Call(digits_problem, chosen)
    a, w0 = torch.ones(3, 2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    good = {"a": a, "b": -a, "c": 1.0, "w0": w0}
    yield Call(norms.norms, good)
    yield Call(weakly_convex.clipped_distances, {**good, "clip": 1.0, "radius": 2.0})
    yield Call(weakly_convex.random_clipped, {"seed": 0})
    yield Call(sampled.boxed_norms, {"seed": 0})
    yield Call(sampled.split_objectives, {})
    yield Call(sampled.skewed_levels, {})
    yield Call(staircase.staircase, {"dim": 2})


def of_splits() -> Iterator[Call]:
    """Splits and what is drawn."""
    base = {"labels": Y, "clients": 4, "rng": RNG}
    yield Call(split.stratified_iid, base)
    yield Call(split.dirichlet, {**base, "alpha": 1.0})
    yield Call(split.dirichlet_cells, {"cells": Y, "clients": 2, "alpha": 5.0, "rng": RNG})
    yield Call(split.label_windows, {**base, "k": 1})
    yield Call(split.train_test, {"labels": Y, "fraction": 0.5, "rng": RNG})
    yield Call(split.random_equal, {"count": 24, "clients": 4, "rng": RNG})
    yield Call(split.holdout, {"rows": ROWS, "sizes": (6,) * 4, "fraction": 0.5, "rng": RNG})
    yield Call(seeded, {"seed": 0, "stream": "split"})
    yield Call(census.stand_in, {"rows": 41})
    frames = {"train": census.stand_in(60), "test": census.stand_in(60)}
    yield Call(census.prepared, frames)
    yield Call(data.available, {"name": "digits"})


def of_ingredients() -> Iterator[Call]:
    """Methods of sets; those of other ingredients get what the library made."""
    for convex in SETS:
        yield from (Call(convex.project, {"x": FOUR}), Call(convex.lmo, {"direction": FOUR}))
        yield Call(convex.contains, {"x": FOUR}, ("tol",))


def of_models() -> Iterator[Call]:
    """Networks and divided features."""
    yield Call(models.mlp, {"sizes": (2, 2)})
    yield Call(models.ravel, {"module": torch.nn.Linear(2, 1)})
    yield Call(models.picture_cnn, {"rng": RNG})
    yield Call(contiguous, {"size": 4, "clients": 2})
    whole = next(e.problem for e in examples()["SSCA"])
    yield Call(vertical, {"problem": whole, "composite": composite()})
