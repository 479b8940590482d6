"""What the parameters of the arena's grids are multiples of, from each problem itself."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch

from fedlib.core import Problem
from papers.arena.problems import BATCHES, LEVELS, SETS, arena_problem


class Units(NamedTuple):
    """What the parameters of a problem's grids are multiples of."""

    lr: float  # 1 / L of the least smooth loss of a client
    start: float  # f(w0)
    level: float
    penalty: float  # mean |grad f_i(0)| / (N D), FedFW's
    clients: int
    dim: int
    batch: int | None
    local_steps: int

    def work(self, x: float) -> dict[str, Any]:
        """What most methods have in common, with x / L as step size; everybody takes part."""
        work = {"lr": x * self.lr, "local_steps": self.local_steps, "participants": self.clients}
        return {**work, "batch_size": self.batch}


#: Of the problem on Adult and seed 0, whose files not every machine has that reads the stored runs;
#: a test holds it against the files.
ADULT = {"lr": 0.54, "start": 0.69, "penalty": 0.0, "clients": 8, "dim": 88}


@lru_cache(maxsize=16)
def units(name: str, seed: int, local_steps: int, batch: int, stand_in: int) -> Units:
    """The units of a problem's grids, from one seed, to two significant digits.

    `batch` is the most rows that a minibatch has.
    """
    recorded = name == "np" and not (seed or stand_in)
    found = ADULT if recorded else of_data(name, seed, stand_in)
    own = BATCHES[name]
    return Units(
        level=LEVELS[name],
        batch=None if own is None else min(own, batch),
        local_steps=local_steps,
        **found,  # type: ignore[arg-type]
    )


def of_data(name: str, seed: int, stand_in: int) -> dict[str, float]:
    """What of the units is computed from the data."""
    form = "set" if name in SETS else "constraint"
    problem = arena_problem(seed, name=name, form=form, stand_in=stand_in)
    return {
        "lr": two_digits(1 / smoothness(problem)),
        "start": two_digits(float(problem.metrics(problem.w0, problem)["f"])),
        "penalty": two_digits(oracle_unit(problem)) if name in SETS else 0.0,
        "clients": problem.num_clients,
        "dim": problem.dim,
    }


def two_digits(x: float) -> float:
    return float(f"{x:.2g}")


def smoothness(problem: Problem) -> float:
    """L: of the loss of a client that bends most, by the largest eigenvalue of its rows.

    A logistic loss bends by a quarter of a squared error.
    """
    X, *rest = problem.data
    bends = {"arena_np": 0.25, "arena_sparse": 1.0, "arena_pair": 0.25}
    most = 0.0
    for rows in problem.rows:
        shares = rest[1][rows].T if problem.name == "arena_np" else torch.ones(1, len(rows))
        for share in shares:
            scaled = X[rows] * (share / len(rows)).sqrt().unsqueeze(1)
            most = max(most, float(torch.linalg.matrix_norm(scaled, ord=2)) ** 2)
    return bends[problem.name] * most


def oracle_unit(problem: Problem) -> float:
    """FedFW's unit of lambda where there is a set: mean |grad f_i(0)| / (N D)."""
    clients, slope, ball = problem.all_clients(), problem.gradient, problem.set
    assert slope is not None
    one = torch.ones(1)
    each = torch.func.vmap(lambda b: slope(problem.w0, b, one))(clients)
    wide: float = ball.diameter(problem.dim)  # type: ignore[union-attr]
    return float(each.norm(dim=1).mean()) / (problem.num_clients * wide)
