"""One small example of every algorithm or more: its settings, and a problem that it is made for.

The only list of its kind: the tests hold every example to account, and the book records a round of
each and prints what crossed the line. The first example of an algorithm is the one whose messages
the book lists, the others are there for their bits and for the tests. A method that is added to the
library is added here, in one line, beside its kin.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch.nn.functional import silu, softplus

from fedlib import algorithms, data
from fedlib.compress import Exact, RandK, Rounding, TopK
from fedlib.core import Problem
from fedlib.core.problem import ConvexSet
from fedlib.core.sampling import seeded
from fedlib.problems import mlp_classification, neyman_pearson, pareto
from fedlib.problems.classification import row_losses
from fedlib.sets import Ball, Box, L1Ball, NuclearBall, Simplex
from fedlib.steps import PowerLaw, Soft
from fedlib.vertical import Composite, Partition, VerticalProblem, contiguous
from fedlib.vertical import vertical as divided
from fedlib.weights import OneWay

methods: Any = algorithms  # whose names are those of the files of its folder

CLIENTS = 20
TASKS, TASK_DIM = 3, 300
SIDE = 8  # of the square matrices of the Frank-Wolfe problems
RADIUS = 4.0
RHO, GAMMA = PowerLaw(0.6, 0.3), PowerLaw(0.9, 0.35)


class Example(NamedTuple):
    """An algorithm with its parameters, and what it is run on."""

    algorithm: Any
    problem: Problem


Group = Iterator[Example]


@lru_cache(maxsize=1)
def examples() -> dict[str, tuple[Example, ...]]:
    """The examples of every algorithm, by its name.

    >>> [type(e.algorithm).__name__ for e in examples()["MGDA"]]
    ['MGDA']
    """
    groups = (switching(), baselines(), objectives(), frank_wolfe(), successive())
    by_name: dict[str, tuple[Example, ...]] = {}
    for example in (example for group in groups for example in group):
        name = type(example.algorithm).__name__
        by_name[name] = (*by_name.get(name, ()), example)
    return by_name


def on(problem: Problem, *algorithms: Any) -> Group:
    """Some algorithms on one problem."""
    return (Example(algorithm, problem) for algorithm in algorithms)


def classification(clients: int) -> Problem:
    """Neyman-Pearson classification on the breast cancer data: d = 30, one constraint."""
    table = data.breast_cancer()
    options: dict[str, Any] = {"train_fraction": 0.8, "dtype": torch.float64}
    return neyman_pearson(table.X, table.y, clients=clients, seed=0, **options)


def several(tasks: int, dim: int, convex_set: ConvexSet | None = None) -> Problem:
    """Quadratics of eight clients with three rows each, far from the best point at the start."""
    rng = seeded(0, "split")
    sizes = ((1, 1, tasks, dim), (8, 1, tasks, dim), (8, 3, tasks, dim))
    parts = [torch.randn(size, generator=rng, dtype=torch.float64) for size in sizes]
    centres = 0.3 * parts[0] + 0.1 * parts[1] + 0.1 * parts[2]
    if convex_set is None:
        return pareto(centres, w0=torch.ones(dim, dtype=torch.float64))
    corner = torch.eye(1, dim, dtype=torch.float64)[0]
    return pareto(centres, w0=RADIUS * corner).within(convex_set)


def switching() -> Group:
    """FedSGM and its kin, under a constraint."""
    hard = methods.FedSGM(lr=0.1, local_steps=5, participants=10, tolerance=0.05)
    top = TopK(0.1)
    yield from on(
        classification(CLIENTS),
        replace(hard, switch=Soft(40.0), uplink=top, downlink=top),
        hard,
        replace(hard, participants=CLIENTS, uplink=RandK(0.5), error_feedback=False),
        replace(hard, uplink=Rounding(3), downlink=Rounding(3)),
        methods.PenaltyFedAvg(lr=0.1, local_steps=5, participants=10, tolerance=0.05, rho=2.0),
    )


def baselines() -> Group:
    """Averaging, with and without a term that ties clients together; methods for one machine."""
    work: dict[str, Any] = {"lr": 0.1, "local_steps": 5, "participants": 10}
    yield from on(
        classification(CLIENTS),
        *(methods.FedAvg(**work), methods.FedAvg(**work, batch_size=6)),
        *(methods.FedProx(**work), methods.FedProx(**work, batch_size=6)),
    )
    yield from on(
        classification(1),
        methods.SGM(lr=0.1, tolerance=0.05, steps=5),
        methods.PenaltySGM(lr=0.1, tolerance=0.05, rho=2.0, steps=5),
        methods.ConEx(lr=0.1, dual_lr=0.5, tolerance=0.05, steps=5),
        methods.ConEx(lr=0.1, dual_lr=0.5, tolerance=0.05, steps=5, batch_size=20),
    )
    splitting = methods.FedDR(lr=0.1, local_steps=5)
    others = replace(splitting, participation=0.8, batch_size=2)
    yield from on(several(1, SIDE**2, L1Ball(RADIUS)), splitting, others)


def objectives() -> Group:
    """Three objectives at once."""
    work: dict[str, Any] = {"lr": 0.1, "local_steps": 5, "participants": 5}
    way = methods.FedCMOO(**work)
    theory: dict[str, Any] = {"step": 0.05, "gram_participants": 3, "compressor": RandK(0.5)}
    yield from on(
        several(TASKS, TASK_DIM),
        way,
        replace(way, gram=OneWay()),
        replace(way, gram=OneWay(Exact())),
        replace(way, batch_size=2),
        methods.FedCMOOPref(**work),
        methods.FedCMOOTheory(**work, **theory),
        methods.FedCMOOTheory(**work, **theory, batch_size=2),
        *(methods.FSMGDA(**work), methods.FSMGDA(**work, batch_size=2)),
        *(methods.Scalarized(**work), methods.Scalarized(**work, batch_size=2)),
        methods.MGDA(lr=0.1),
    )


def frank_wolfe() -> Group:
    """FedFW's family in several sets, of which the first is the l1 ball."""
    plain, noisy = methods.FedFW(lam0=0.1), methods.FedFWSto(lam0=0.1, batch_size=2)
    yield from on(
        several(1, SIDE**2, L1Ball(RADIUS)),
        *(plain, replace(plain, participation=0.8)),
        *(methods.FedFWPlus(lam0=0.1), methods.FedFWPlus(lam0=0.1, participation=0.8)),
        *(noisy, replace(noisy, participation=0.8)),
        methods.FedFWReset(lam0=0.1, local_steps=2),
        methods.FedFWReset(lam0=0.1, local_steps=2, participation=0.8, batch_size=2),
        methods.NaiveFW(),
    )
    sets: list[ConvexSet] = [Simplex(1.0), Box(-1.0, 1.0), NuclearBall(1.0, SIDE, SIDE), Ball(1.0)]
    yield from (Example(plain, several(1, SIDE**2, convex_set)) for convex_set in sets)


def successive() -> Group:
    """Successive convex approximation and SGD, samples split, and features split.

    The latter on a small network for digits, and on the classification of the former.
    """
    steps: dict[str, Any] = {"tau": 1.0, "rho": RHO, "gamma": GAMMA}
    yield from on(
        classification(CLIENTS),
        *(methods.SSCA(**steps, batch_size=10), methods.SSCA(**steps)),
        methods.ConstrainedSSCA(**steps, penalty=100.0, levels=0.3, batch_size=10),
        methods.MiniBatchSGD(lr=PowerLaw(0.3), local_steps=2, batch_size=10),
    )
    limited: dict[str, Any] = {**steps, "penalty": 100.0}
    sgd = methods.VerticalSGD(lr=PowerLaw(0.3), batch_size=10)
    yield from on(
        network(),
        methods.VerticalSSCA(**steps, batch_size=10),
        methods.ConstrainedVerticalSSCA(**limited, levels=1.0, objective="norm", batch_size=10),
        sgd,
    )
    yield from on(
        features_of(classification(CLIENTS)),
        methods.VerticalSSCA(**steps, batch_size=100),
        methods.ConstrainedVerticalSSCA(**limited, levels=0.3),
        replace(sgd, batch_size=100),
    )


def network() -> VerticalProblem:
    """A network with eight hidden units on scikit-learn's digits, pixels split among four clients.

    A client sends its part of the sums into the hidden units; all else is common.
    """
    X, y = data.digits().X.flatten(1).double() / 16, data.digits().y
    J, (R, K), L = 8, X.shape, 10  # hidden units, rows, pixels, classes
    whole = mlp_classification(X, y, torch.arange(R).unsqueeze(0), J, L, activation="swish")
    blocks = contiguous(K, 4)
    columns = [(K * torch.arange(J).unsqueeze(1) + block).flatten() for block in blocks]
    common = torch.arange(J * K, whole.dim)

    def outer(w: Any, heard: Any, labels: Any) -> Any:
        a, B, b = w.split([J, L * J, L])
        return row_losses(silu(sum(heard) + a) @ B.view(L, J).T + b, labels[0]).unsqueeze(1)

    parameters = Partition("parameters", (common, *columns), whole.dim)
    form = Composite(
        Partition("features", blocks, K), parameters, lambda w, x: x @ w.view(J, -1).T, outer
    )
    return divided(whole, form)


def features_of(problem: Problem) -> VerticalProblem:
    """Neyman-Pearson classification, its features split among three: a sum of products."""
    blocks = contiguous(problem.dim, 3)
    empty = torch.zeros(0, dtype=torch.int64)  # no common parameters

    def outer(_: Any, heard: Any, labels: Any) -> Any:
        z, (y, shares) = sum(heard).squeeze(-1), labels
        return (softplus(z) - y * z).unsqueeze(-1) * shares

    features = Partition("features", blocks, problem.dim)
    parameters = Partition("parameters", (empty, *blocks), problem.dim)
    form = Composite(features, parameters, lambda w, x: (x @ w).unsqueeze(-1), outer)
    return divided(problem, form)
