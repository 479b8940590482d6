"""The workloads, as fedlib and its peers run them: same data, start, participants, batches."""

from __future__ import annotations

import math
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
from fedlib.engine.start import first_progress
from fedlib.problems import neyman_pearson
from fedlib.problems.classification import Model, mlp_model, row_losses
from fedlib.problems.neyman_pearson import class_shares
from papers.fedcmoo.data.pairs import MNIST_SCALE, Pairs
from papers.fedcmoo.problems.paired_digits import paired_digits

#: Of W2: clients, rows of each, the paper's network, and (x / 255 - mean) / std of its pictures.
CLIENTS = 100
ROWS = 600
ENCODER = ((10, 1, 3, 3), (10,), (15, 10, 3, 3), (15,), (50, 540), (50,))
DECODER = ((50, 50), (50,), (10, 50), (10,))
SCALE = (MNIST_SCALE.mean[0], MNIST_SCALE.std[0])
#: The classes whose loss is the constraint of FedSGM on W1 and W4, where it starts at log 10 = 2.3.
CONSTRAINED_CLASSES = (5, 6, 7, 8, 9)
LEVEL = 2.0

#: Advances an entry over the rounds from `start` to `end`; and gives its models, `[G, S, d]`.
Advance = Callable[[int, int], None]
Models = Callable[[], Tensor]


@dataclass(frozen=True)
class Workload:
    """A problem and what a round of it does.

    Parameters
    ----------
    title : what a table calls it.
    model : `softmax`, `logistic`, `network` or `lenet`.
    shapes : of its parameters, in the order of the flat vector.
    work : participants, local steps and batch size, as the algorithms take them.
    lr, level, tolerance : step size, and FedSGM's threshold.
    rounds, turns : of one turn, and how many turns are taken.
    rows : of the data; fewer for tests.
    clients : of a softmax regression or a network; the others fix theirs.
    seeds, sizes : runs together: so many seeds, times eleven step sizes or one.
    """

    title: str
    model: str
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
        if self.model == "logistic":
            table = data.breast_cancer()
            return neyman_pearson(table.X[: self.rows], table.y[: self.rows], clients=20)
        if self.model == "lenet":
            problem = paired(self.rows)
            if constrained:
                return replace(problem, num_objectives=1, num_constraints=1)
            return problem
        X, y = digits_like(self.rows)
        classes = CONSTRAINED_CLASSES if constrained else ()
        if self.model == "softmax":
            model = softmax_model(784, 10)
        else:
            model = mlp_model(784, self.shapes[0][0], 10, None)
        return by_class(model, X, y, dealt(self.rows, self.clients), classes)

    def algorithm(self, *, constrained: bool = False) -> Any:
        """FedAvg, or FedSGM with hard switching and as many rows for g's value as for a step."""
        work: dict[str, Any] = {"lr": self.lr, **self.work}
        if not constrained:
            return FedAvg(**work)
        batch = self.work["batch_size"]
        return FedSGM(tolerance=self.tolerance, level=self.level, value_batch_size=batch, **work)

    def grid(self, *, constrained: bool = False) -> list[Algorithm]:
        """The algorithm, or eleven step sizes of it from a fifth of its own to twice it."""
        algorithm = self.algorithm(constrained=constrained)
        if self.sizes == 1:
            return [algorithm]
        factors = torch.linspace(0.2, 2.0, self.sizes, dtype=torch.float64).tolist()
        return [replace(algorithm, lr=self.lr * factor) for factor in factors]


def softmax_model(features: int, classes: int) -> Model:
    """Multinomial logistic regression without bias."""

    def apply(w: Tensor, X: Tensor) -> Tensor:
        # as a batch of one: else `vmap` folds clients that share w into one tall product, which is
        # slower on a CPU
        products = torch.bmm(w.view(1, classes, -1), X.T.unsqueeze(0))
        return products.squeeze(0).T

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
        losses = row_losses(model.apply(w, inputs), target)
        return (batch.weight * losses) @ share

    def gradient(w: Tensor, batch: Batch, weights: Tensor) -> Tensor:
        inputs, target, share = batch.data
        row_weights = batch.weight * (share @ weights)
        return model.pullback(w, inputs, target, row_weights)

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
    noise = torch.rand(rows, 784, generator=rng)
    return 0.7 * noise + 0.3 * prototypes[y], y


def dealt(rows: int, clients: int) -> Tensor:
    """All rows in a fixed random order, equally many a client, `[clients, rows / clients]`."""
    rng = torch.Generator().manual_seed(1)
    order = torch.randperm(rows, generator=rng)
    return order[: rows // clients * clients].view(clients, -1)


def paired(rows: int) -> Problem:
    """W2: two tasks on random pictures: what is learned does not matter to the clock."""
    rng = torch.Generator().manual_seed(0)
    X = torch.randint(256, (rows, 1, 28, 28), generator=rng, dtype=torch.uint8)
    y = torch.randint(10, (rows, 2), generator=rng)
    pairs = Pairs(X, y, ("first", "second"), MNIST_SCALE)
    return paired_digits(pairs, pairs, clients=CLIENTS, evaluate=128)


def work(participants: int, local_steps: int, batch_size: int | None) -> dict[str, int | None]:
    """What a client does in a round, as the algorithms take it."""
    return {
        "participants": participants,
        "local_steps": local_steps,
        "batch_size": batch_size,
    }


def network_shapes(width: int) -> tuple[tuple[int, ...], ...]:
    """The parameters of a network with one hidden layer."""
    return ((width, 784), (width,), (10, width), (10,))


W3 = Workload(
    "logistic regression, 30 features, 20 clients of 22 rows, 10 a round, 5 full steps",
    model="logistic",
    shapes=((30,),),
    work=work(10, 5, None),
    lr=0.1,
    level=0.0,
    tolerance=0.05,
    rounds=1520,
    turns=9,
    rows=460,
)
WORKLOADS = {
    "W1": Workload(
        "softmax regression 784x10, 100 clients, all take part, 1 step on a batch of 64",
        model="softmax",
        shapes=((10, 784),),
        work=work(100, 1, 64),
        lr=0.05,
        level=LEVEL,
        tolerance=0.0,
        rounds=20,
        turns=21,
        rows=60_000,
        clients=100,
    ),
    "W2": Workload(
        "LeNet of two tasks, 34,635 parameters, 100 clients, 10 a round, 10 steps on batches of "
        "128",
        model="lenet",
        shapes=(*ENCODER, *DECODER, *DECODER),
        work=work(10, 10, 128),
        lr=0.01,
        level=LEVEL,
        tolerance=0.05,
        rounds=1,
        turns=9,
        rows=CLIENTS * ROWS,
    ),
    "W3": W3,
    "W3, 33 runs": replace(
        W3,
        title="the same, 3 seeds and 11 step sizes together",
        rounds=200,
        turns=21,
        seeds=3,
        sizes=11,
    ),
    "W3, 330 runs": replace(
        W3,
        title="the same, 30 seeds and 11 step sizes together",
        rounds=50,
        turns=21,
        seeds=30,
        sizes=11,
    ),
    "W4": Workload(
        "network 784-128-10, 10 clients, all take part, 1 step on a batch of 100",
        model="network",
        shapes=network_shapes(128),
        work=work(10, 1, 100),
        lr=0.1,
        level=LEVEL,
        tolerance=0.0,
        rounds=30,
        turns=21,
        rows=60_000,
        clients=10,
    ),
    "W5": Workload(
        "network 784-1256-10, 998,530 parameters, 100 clients, 10 a round, 5 steps on batches of "
        "32",
        model="network",
        shapes=network_shapes(1256),
        work=work(10, 5, 32),
        lr=0.1,
        level=LEVEL,
        tolerance=0.0,
        rounds=4,
        turns=15,
        rows=60_000,
        clients=100,
    ),
}


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
        return [float(algorithm.lr) for algorithm in self.grid]

    def start(self) -> list[Tensor]:
        """The start, as the model's parameters."""
        shapes = self.workload.shapes
        vectors = torch.split(self.problem.w0, list(map(math.prod, shapes)))
        return [vector.view(shape) for vector, shape in zip(vectors, shapes, strict=True)]

    def loss(self, models: Tensor) -> float:
        """The mean over all runs of the final loss, of models `[G, S, d]`."""
        losses = []
        for w in models.flatten(0, 1):
            metrics = self.problem.metrics(w, self.problem)
            losses.append(metrics["loss"] if "loss" in metrics else metrics["f"])
        return float(torch.stack(losses).mean())


def drawn(workload: Workload, turns: int) -> Work:
    """A workload with its data; the draws are those that fedlib makes."""
    problem = workload.problem()
    grid = workload.grid()
    seeds = tuple(range(workload.seeds))
    runs = BatchedRuns(grid[:1], problem, seeds, torch.device("cpu"), None)
    draws = runs.draws(first_progress(runs).rngs, workload.rounds * (turns + 1))
    participants = draws.participants.transpose(0, 1)
    rows = problem.rows[participants].unsqueeze(-2)  # [S, T, n, 1, m]
    if isinstance(draws.batches, Tensor):
        positions = draws.batches.transpose(0, 1)
        rows = rows.expand(*positions.shape[:-1], -1).gather(-1, positions)
    tensors = problem.data[:2]
    if workload.model == "logistic":
        shares = problem.data[2][:, 0]
        tensors = (*tensors, shares.contiguous())
    return Work(workload, problem, grid, tensors, rows)
