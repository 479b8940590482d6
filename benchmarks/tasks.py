"""What fedlib and its peers do alike: the same data, start, participants and batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from benchmarks import multiobjective
from benchmarks.workloads import TOLERANCE, WORKLOADS
from fedlib.algorithms.baselines import FedAvg
from fedlib.algorithms.fedsgm import FedSGM
from fedlib.core import Problem
from fedlib.core.algorithm import Algorithm
from fedlib.engine.batch import BatchedRuns
from papers.fedcmoo.data.pairs import MNIST_SCALE

MLP = ((128, 784), (128,), (10, 128), (10,))
CODE = ((10, 1, 3, 3), (10,), (15, 10, 3, 3), (15,), (50, 540), (50,))
LENET = (*CODE, *((50, 50), (50,), (10, 50), (10,)) * 2)
#: (x / 255 - mean) / std of the pictures of W2.
SCALE = (MNIST_SCALE.mean[0], MNIST_SCALE.std[0])


@dataclass(frozen=True)
class Task:
    """A workload as a table shows it.

    Parameters
    ----------
    title : what a round does.
    goal : at most so much of the best peer's time.
    kind : the model, `softmax`, `logistic`, `network` or `lenet`.
    shapes : of its parameters, in the order of the flat vector.
    rounds, turns : of one turn, and how many turns are taken.
    seeds, sizes : runs together: so many seeds, times eleven step sizes or one.
    """

    title: str
    goal: float
    kind: str
    shapes: tuple[tuple[int, ...], ...]
    rounds: int
    turns: int
    seeds: int = 1
    sizes: int = 1


_LOGISTIC = "logistic regression, 30 features, 20 clients of 22 rows, 10 a round, 5 full steps"
TASKS = {
    "W1": Task(
        "softmax regression 784x10, 100 clients, all take part, 1 step on a batch of 64",
        *(0.8, "softmax", ((10, 784),), 20, 21),
    ),
    "W2": Task(
        "LeNet of two tasks, 34,635 parameters, 100 clients, 10 a round, 10 steps on batches "
        "of 128",
        *(0.6, "lenet", LENET, 1, 9),
    ),
    "W3": Task(_LOGISTIC, 0.8, "logistic", ((30,),), 304, 15),
    "W3, 33 runs": Task(
        "the same, 3 seeds and 11 step sizes together", 0.8, "logistic", ((30,),), 200, 21, 3, 11
    ),
    "W3, 330 runs": Task(
        "the same, 30 seeds and 11 step sizes together", 0.8, "logistic", ((30,),), 50, 21, 30, 11
    ),
    "W4": Task(
        "network 784-128-10, 10 clients, all take part, 1 step on a batch of 100",
        *(0.8, "network", MLP, 30, 21),
    ),
}


@dataclass(frozen=True)
class Work:
    """A task with its data and everything drawn; `[S]` seeds, `[T]` rounds, `[n]` participants.

    Parameters
    ----------
    task, problem, grid : the task, fedlib's problem and its FedAvg, one a step size.
    data : tensors whose rows the batches name: inputs, labels, and weights on W3.
    rows : `[S, T, n, E, B]` rows of each local step's batch; `E = 1` where all steps have one.
    """

    task: Task
    problem: Problem
    grid: list[Algorithm]
    data: tuple[Tensor, ...]
    rows: Tensor

    @property
    def steps(self) -> int:
        """Local steps of a client."""
        at: Any = self.grid[0]
        return int(at.local_steps)

    @property
    def lr(self) -> list[float]:
        """The step sizes."""
        grid: list[Any] = self.grid
        return [float(a.lr) for a in grid]

    def start(self) -> list[Tensor]:
        """The start, as the model's parameters."""
        return apart(self.problem.w0, self.task.shapes)

    def loss(self, models: Tensor) -> float:
        """The mean over all runs of the final loss, of models `[G, S, d]`."""
        found = [self.problem.metrics(w, self.problem) for w in models.flatten(0, 1)]
        return float(torch.stack([m["loss"] if "loss" in m else m["f"] for m in found]).mean())


def apart(w: Tensor, shapes: tuple[tuple[int, ...], ...]) -> list[Tensor]:
    """A flat vector as tensors of some shapes."""
    parts = w.split([torch.Size(s).numel() for s in shapes])
    return [p.view(s) for p, s in zip(parts, shapes, strict=True)]


def work(name: str, turns: int, rows: int | None = None) -> Work:
    """A task with its data; the draws are those that fedlib makes. Fewer `rows` for tests."""
    task = TASKS[name]
    problem, one = problem_of(name, rows), algorithm_of(name)
    grid: list[Any] = [one] if task.sizes == 1 else WORKLOADS["W3"].grid("FedAvg")
    drawing = BatchedRuns([one], problem, tuple(range(task.seeds)), torch.device("cpu"), None)
    rngs = drawing.start().rngs
    draws = drawing.draws(rngs, task.rounds * (turns + 1))
    who = draws.participants.transpose(0, 1)
    own = problem.rows[who].unsqueeze(-2)  # [S, T, n, 1, m]
    if isinstance(draws.batches, Tensor):
        places = draws.batches.transpose(0, 1)
        own = own.expand(*places.shape[:-1], -1).gather(-1, places)
    data = problem.data[:2]
    if task.kind == "logistic":
        data = (*data, problem.data[2][:, 0].contiguous())
    return Work(task, problem, grid, data, own)


def problem_of(name: str, rows: int | None = None, constrained: bool = False) -> Problem:
    """The problem of a task; `constrained` for FedSGM."""
    if name != "W2":
        return WORKLOADS[name[:2]].problem("FedSGM" if constrained else "FedAvg", rows)
    problem = multiobjective.generated(multiobjective.ROWS if rows is None else rows)
    return replace(problem, num_objectives=1, num_constraints=1) if constrained else problem


def algorithm_of(name: str, constrained: bool = False) -> Any:
    """FedAvg or FedSGM with the work of a task."""
    if name != "W2":
        return WORKLOADS[name[:2]].algorithm("FedSGM" if constrained else "FedAvg")
    at = {name: getattr(multiobjective, name) for name in ("STEPS", "PARTICIPANTS", "BATCH")}
    size = at["BATCH"]
    common: dict[str, Any] = {"lr": 0.01, "local_steps": at["STEPS"]}
    common |= {"participants": at["PARTICIPANTS"], "batch_size": size}
    if constrained:
        return FedSGM(tolerance=TOLERANCE, level=2.0, value_batch_size=size, **common)
    return FedAvg(**common)


#: Advances an entry over the rounds `first` to `last`, and gives its models, `[G, S, d]`.
Advance = Callable[[int, int], None]
Models = Callable[[], Tensor]
