"""The speed workloads: problems of fixed shapes, and the algorithms that run on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from fedlib import data
from fedlib.algorithms.baselines import FedAvg
from fedlib.algorithms.fedsgm import FedSGM
from fedlib.core import Problem
from fedlib.core.algorithm import Algorithm
from fedlib.problems import mlp_classification, neyman_pearson, softmax_regression

__all__ = ["ALGORITHMS", "WORKLOADS", "Workload"]

ALGORITHMS = ("FedAvg", "FedSGM")
TOLERANCE = 0.05  # FedSGM's switching threshold on W3
LAST_CLASSES = (5, 6, 7, 8, 9)  # their loss is the constraint of FedSGM on W1 and W4
LEVEL = 2.0  # which it is to keep below; the start has log 10 = 2.3, so that both branches are met


@dataclass(frozen=True)
class Workload:
    """A problem and what a round of it does.

    Parameters
    ----------
    name, title : what tables call it.
    build : `(rows, constrained) -> Problem`; `rows` data rows in all, `constrained` says whether
        some classes are a constraint.
    rows : the size that is timed.
    work : participants, local steps and batch size, as the algorithms take them.
    lr : step size.
    level, tolerance : of FedSGM's constraint.
    rounds : rounds of one timed pass.
    together : whether 33 runs are timed, 3 seeds x 11 step sizes.
    """

    name: str
    title: str
    build: Callable[[int, bool], Problem]
    rows: int
    work: dict[str, int | None]
    lr: float
    level: float
    tolerance: float
    rounds: int
    together: bool = False

    def problem(self, algorithm: str, rows: int | None = None) -> Problem:
        """The problem that `algorithm` runs on; fewer `rows` for tests."""
        return self.build(self.rows if rows is None else rows, algorithm == "FedSGM")

    def algorithm(self, name: str) -> Algorithm:
        """FedAvg, or FedSGM with hard switching and without compression."""
        work: dict[str, Any] = {"lr": self.lr, **self.work}
        if name == "FedAvg":
            return FedAvg(**work)
        batch = self.work["batch_size"]  # as many rows for the constraint's value as for a step
        return FedSGM(tolerance=self.tolerance, level=self.level, value_batch_size=batch, **work)

    def grid(self, name: str) -> list[Algorithm]:
        """Eleven step sizes, from a fifth of the workload's own to twice it."""
        sizes = torch.linspace(0.2, 2.0, 11, dtype=torch.float64).tolist()
        at: Any = self.algorithm(name)
        return [replace(at, lr=self.lr * s) for s in sizes]


def digits_like(rows: int) -> tuple[Tensor, Tensor]:
    """Generated data of MNIST's shape: `[rows, 784]` in [0, 1] around ten prototypes, labels."""
    rng = torch.Generator().manual_seed(0)
    y = torch.arange(rows) % 10
    prototypes = torch.rand(10, 784, generator=rng)
    return 0.7 * torch.rand(rows, 784, generator=rng) + 0.3 * prototypes[y], y


def dealt(rows: int, clients: int) -> Tensor:
    """All rows in a fixed random order, equally many a client, `[clients, rows / clients]`."""
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(1))
    return order[: rows // clients * clients].view(clients, -1)


def softmax(rows: int, constrained: bool) -> Problem:
    """W1: multinomial logistic regression on 100 clients."""
    X, y = digits_like(rows)
    classes = LAST_CLASSES if constrained else ()
    return softmax_regression(X, y, dealt(rows, 100), 10, constrained=classes)


def logistic(rows: int, constrained: bool) -> Problem:  # noqa: ARG001 - it always has one
    """W3: logistic regression on breast cancer, 20 clients of 22 samples."""
    table = data.breast_cancer()
    return neyman_pearson(table.X[:rows], table.y[:rows], clients=20)


def network(rows: int, constrained: bool) -> Problem:
    """W4: a network with one hidden layer of 128 on 10 clients."""
    X, y = digits_like(rows)
    classes = LAST_CLASSES if constrained else ()
    return mlp_classification(X, y, dealt(rows, 10), 128, 10, constrained=classes)


WORKLOADS = {
    w.name: w
    for w in (
        Workload(
            "W1",
            "multinomial logistic regression 784x10, 100 clients, all take part, 1 step, batch 64",
            softmax,
            60_000,
            {"participants": 100, "local_steps": 1, "batch_size": 64},
            lr=0.05,
            level=LEVEL,
            tolerance=0.0,
            rounds=20,
        ),
        Workload(
            "W3",
            "logistic regression, 30 features, 20 clients of 22 samples, 10 a round, 5 full steps",
            logistic,
            460,
            {"participants": 10, "local_steps": 5, "batch_size": None},
            lr=0.1,
            level=0.0,
            tolerance=TOLERANCE,
            rounds=500,
            together=True,
        ),
        Workload(
            "W4",
            "network 784-128-10, 10 clients, all take part, 1 step, batch 100",
            network,
            60_000,
            {"participants": 10, "local_steps": 1, "batch_size": 100},
            lr=0.1,
            level=LEVEL,
            tolerance=0.0,
            rounds=30,
        ),
    )
}
