"""The workloads, as fedlib and its peers run them: same data, start, participants, batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from fedlib import data
from fedlib.algorithms import FedAvg, FedSGM
from fedlib.core import Problem
from fedlib.core.algorithm import Algorithm
from fedlib.core.problem import Batch
from fedlib.engine.batch import BatchedRuns
from fedlib.problems import neyman_pearson
from fedlib.problems.classification import Model, mlp_model, row_losses
from fedlib.problems.neyman_pearson import class_shares
from papers.fedcmoo.data.pairs import MNIST_SCALE, Pairs
from papers.fedcmoo.problems.paired_digits import paired_digits

#: Of W2: clients, rows of each, the paper's network, and (x / 255 - mean) / std of its pictures.
CLIENTS, ROWS = 100, 600
CODE = ((10, 1, 3, 3), (10,), (15, 10, 3, 3), (15,), (50, 540), (50,))
LENET = (*CODE, *((50, 50), (50,), (10, 50), (10,)) * 2)
SCALE = (MNIST_SCALE.mean[0], MNIST_SCALE.std[0])
#: The classes whose loss is the constraint of FedSGM on W1 and W4, where it starts at log 10 = 2.3.
LAST_CLASSES, LEVEL = (5, 6, 7, 8, 9), 2.0

#: Advances an entry over the rounds `first` to `last`; and gives its models, `[G, S, d]`.
Advance = Callable[[int, int], None]
Models = Callable[[], Tensor]


@dataclass(frozen=True)
class Workload:
    """A problem and what a round of it does.

    Parameters
    ----------
    title : what a table calls it.
    kind : the model, `softmax`, `logistic`, `network` or `lenet`.
    shapes : of its parameters, in the order of the flat vector.
    work : participants, local steps and batch size, as the algorithms take them.
    lr, level, tolerance : step size, and FedSGM's threshold.
    rounds, turns : of one turn, and how many turns are taken.
    rows : of the data; fewer for tests.
    clients : of a softmax regression or a network; the others fix theirs.
    seeds, sizes : runs together: so many seeds, times eleven step sizes or one.
    """

    title: str
    kind: str
    shapes: tuple[tuple[int, ...], ...]
    work: dict[str, int | None]
    lr: float
    level: float
    tolerance: float
    rounds: int
    turns: int
    rows: int
    clients: int = 0
    seeds: int = 1
    sizes: int = 1

    def problem(self, *, constrained: bool = False) -> Problem:
        """The problem, with a constraint for FedSGM."""
        if self.kind == "logistic":
            table = data.breast_cancer()
            return neyman_pearson(table.X[: self.rows], table.y[: self.rows], clients=20)
        if self.kind == "lenet":
            problem = paired(self.rows)
            one = {"num_objectives": 1, "num_constraints": 1}
            return replace(problem, **one) if constrained else problem
        (X, y), classes = digits_like(self.rows), LAST_CLASSES if constrained else ()
        if self.kind == "softmax":
            return by_class(softmax_model(784, 10), X, y, dealt(self.rows, self.clients), classes)
        network = mlp_model(784, self.shapes[0][0], 10, None)
        return by_class(network, X, y, dealt(self.rows, self.clients), classes)

    def algorithm(self, *, constrained: bool = False) -> Any:
        """FedAvg, or FedSGM with hard switching and as many rows for g's value as for a step."""
        work: dict[str, Any] = {"lr": self.lr, **self.work}
        if not constrained:
            return FedAvg(**work)
        batch = self.work["batch_size"]
        return FedSGM(tolerance=self.tolerance, level=self.level, value_batch_size=batch, **work)

    def grid(self, *, constrained: bool = False) -> list[Algorithm]:
        """The algorithm, or eleven step sizes of it from a fifth of its own to twice it."""
        one = self.algorithm(constrained=constrained)
        if self.sizes == 1:
            return [one]
        factors = torch.linspace(0.2, 2.0, self.sizes, dtype=torch.float64).tolist()
        return [replace(one, lr=self.lr * s) for s in factors]


def softmax_model(features: int, classes: int) -> Model:
    """Multinomial logistic regression without bias."""

    def apply(w: Tensor, X: Tensor) -> Tensor:
        # as a batch of one: else `vmap` folds clients that share w into one tall product, which is
        # nearly twice as slow on a CPU
        return torch.bmm(w.view(1, classes, -1), X.T.unsqueeze(0)).squeeze(0).T

    def gradient(w: Tensor, X: Tensor, error: Tensor) -> Tensor:  # noqa: ARG001 - linear
        return (error.T @ X).flatten()

    return Model(torch.zeros(classes * features), apply, gradient, ((classes, features),))


def by_class(
    model: Model, X: Tensor, y: Tensor, rows: Tensor, constrained: tuple[int, ...] = ()
) -> Problem:
    """Cross-entropy, that of some classes a constraint and that of the others the objective."""
    shares = torch.ones(len(y), 1, dtype=X.dtype)
    if constrained:
        groups = torch.isin(y, torch.tensor(constrained)).long()
        shares = class_shares("by_class", groups, rows).to(X.dtype)

    def losses(w: Tensor, batch: Batch) -> Tensor:
        inputs, target, share = batch.data
        return (batch.weight * row_losses(model.apply(w, inputs), target)) @ share

    def gradient(w: Tensor, batch: Batch, weights: Tensor) -> Tensor:
        inputs, target, share = batch.data
        return model.pullback(w, inputs, target, batch.weight * (share @ weights))

    def metrics(w: Tensor, problem: Problem) -> dict[str, Tensor]:
        mean = problem.mean_losses(w)
        return dict(zip("fg", mean, strict=False))

    return Problem(
        name="by_class",
        data=(X, y, shares),
        rows=rows,
        sizes=(rows.shape[1],) * len(rows),
        losses=losses,
        gradient=gradient,
        num_objectives=1,
        num_constraints=shares.shape[1] - 1,
        w0=model.w0.to(X.dtype),
        metrics=metrics,
    )


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


def paired(rows: int) -> Problem:
    """W2: two tasks on random pictures: what is learned does not matter to the clock."""
    rng = torch.Generator().manual_seed(0)
    X = torch.randint(256, (rows, 1, 28, 28), generator=rng, dtype=torch.uint8)
    y = torch.randint(10, (rows, 2), generator=rng)
    whole = Pairs(X, y, ("first", "second"), MNIST_SCALE)
    return paired_digits(whole, whole, clients=CLIENTS, evaluate=128)


W3 = Workload(
    "logistic regression, 30 features, 20 clients of 22 rows, 10 a round, 5 full steps",
    *("logistic", ((30,),), {"participants": 10, "local_steps": 5, "batch_size": None}),
    **{"lr": 0.1, "level": 0.0, "tolerance": 0.05, "rounds": 1520, "turns": 9, "rows": 460},  # type: ignore[arg-type]
)
WORKLOADS = {
    "W1": Workload(
        "softmax regression 784x10, 100 clients, all take part, 1 step on a batch of 64",
        *("softmax", ((10, 784),), {"participants": 100, "local_steps": 1, "batch_size": 64}),
        **{"lr": 0.05, "level": LEVEL, "tolerance": 0.0, "rounds": 20, "turns": 21},  # type: ignore[arg-type]
        rows=60_000,
        clients=100,
    ),
    "W2": Workload(
        "LeNet of two tasks, 34,635 parameters, 100 clients, 10 a round, 10 steps on batches of "
        "128",
        *("lenet", LENET, {"participants": 10, "local_steps": 10, "batch_size": 128}),
        **{"lr": 0.01, "level": LEVEL, "tolerance": 0.05, "rounds": 1, "turns": 9},  # type: ignore[arg-type]
        rows=CLIENTS * ROWS,
    ),
    "W3": W3,
    "W3, 33 runs": replace(
        W3, title="the same, 3 seeds and 11 step sizes together", rounds=200, turns=21, seeds=3,
        sizes=11,
    ),
    "W3, 330 runs": replace(
        W3, title="the same, 30 seeds and 11 step sizes together", rounds=50, turns=21, seeds=30,
        sizes=11,
    ),
    "W4": Workload(
        "network 784-128-10, 10 clients, all take part, 1 step on a batch of 100",
        *("network", ((128, 784), (128,), (10, 128), (10,))),
        {"participants": 10, "local_steps": 1, "batch_size": 100},
        **{"lr": 0.1, "level": LEVEL, "tolerance": 0.0, "rounds": 30, "turns": 21},  # type: ignore[arg-type]
        rows=60_000,
        clients=10,
    ),
    "W5": Workload(
        "network 784-1256-10, 998,530 parameters, 100 clients, 10 a round, 5 steps on batches of "
        "32",
        *("network", ((1256, 784), (1256,), (10, 1256), (10,))),
        {"participants": 10, "local_steps": 5, "batch_size": 32},
        **{"lr": 0.1, "level": LEVEL, "tolerance": 0.0, "rounds": 4, "turns": 15},  # type: ignore[arg-type]
        rows=60_000,
        clients=100,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Work:
    """A workload with its data and everything drawn; `[S]` seeds, `[T]` rounds, `[n]` participants.

    Parameters
    ----------
    workload, problem, grid : the workload, fedlib's problem and its FedAvg, one a step size.
    data : tensors whose rows the batches name: inputs, labels, and weights on W3.
    rows : `[S, T, n, E, B]` rows of each local step's batch; `E = 1` where all steps have one.
    """

    workload: Workload
    problem: Problem
    grid: list[Any]
    data: tuple[Tensor, ...]
    rows: Tensor

    @property
    def steps(self) -> int:
        """Local steps of a client."""
        return int(self.grid[0].local_steps)

    @property
    def lr(self) -> list[float]:
        """The step sizes."""
        return [float(a.lr) for a in self.grid]

    def start(self) -> list[Tensor]:
        """The start, as the model's parameters."""
        shapes = self.workload.shapes
        parts = self.problem.w0.split([torch.Size(s).numel() for s in shapes])
        return [p.view(s) for p, s in zip(parts, shapes, strict=True)]

    def loss(self, models: Tensor) -> float:
        """The mean over all runs of the final loss, of models `[G, S, d]`."""
        found = [self.problem.metrics(w, self.problem) for w in models.flatten(0, 1)]
        return float(torch.stack([m["loss"] if "loss" in m else m["f"] for m in found]).mean())


def drawn(workload: Workload, turns: int) -> Work:
    """A workload with its data; the draws are those that fedlib makes."""
    problem, grid = workload.problem(), workload.grid()
    drawing = BatchedRuns(
        grid[:1], problem, tuple(range(workload.seeds)), torch.device("cpu"), None
    )
    draws = drawing.draws(drawing.start().rngs, workload.rounds * (turns + 1))
    who = draws.participants.transpose(0, 1)
    own = problem.rows[who].unsqueeze(-2)  # [S, T, n, 1, m]
    if isinstance(draws.batches, Tensor):
        places = draws.batches.transpose(0, 1)
        own = own.expand(*places.shape[:-1], -1).gather(-1, places)
    tensors = problem.data[:2]
    if workload.kind == "logistic":
        tensors = (*tensors, problem.data[2][:, 0].contiguous())
    return Work(workload, problem, grid, tensors, own)
