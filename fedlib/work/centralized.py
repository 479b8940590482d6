"""Work on data in one place: one client holds all data, and a round makes several steps."""

from abc import abstractmethod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.core.client import Client
from fedlib.core.federation import Federation
from fedlib.core.problem import Batch, Draw, Info, Problem
from fedlib.core.sampling import check_work, draw_round
from fedlib.core.trees import index_tree
from fedlib.shapes import PerLoss, Scalar
from fedlib.work.states import Model


class Centralized(checks.Checked):
    """Base of methods for data in one place: one client draws fresh batches for every step.

    Parameters
    ----------
    steps : int
        Number of steps in a round.
    batch_size : int or None
        Number of rows in a step's batch for gradients; None for all rows.
    value_batch_size : int or None
        Number of rows in a step's batch for loss values; None for all rows.
    """

    steps: int
    batch_size: int | None
    value_batch_size: int | None

    def init(self, problem: Problem) -> Any:
        """Check that the problem has one client, which holds all data."""
        name = type(self).__name__
        clients = problem.num_clients
        check_work(name, problem, 1, constrained=True)
        checks.require(
            clients == 1,
            name,
            "problem",
            "have one client with all data",
            clients,
            "build it with clients=1",
        )
        checks.require(
            not problem.whole_batches,
            name,
            "problem",
            "draw batches with replacement",
            "whole_batches",
        )
        return Model(problem.w0)

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Draw every step's batches; those for loss values lie one after another in `values`."""
        all_values = None
        if self.value_batch_size is not None:
            all_values = self.steps * self.value_batch_size
        return draw_round(  # 1
            problem,
            rng,
            participants=1,
            local_steps=self.steps,
            batch_size=self.batch_size,
            value_batch_size=all_values,
        )

    def values(self, pool: Client, step: int) -> Batch:
        """The batch on which a step computes loss values; all rows if no batch size is set."""
        rows = pool.value_batch()
        if self.value_batch_size is None:
            return rows
        start = step * self.value_batch_size
        data, weight = index_tree(rows, slice(start, start + self.value_batch_size))
        return Batch(data, self.steps * weight)


class Descent(Centralized):
    """Base of methods that step along a weighted sum of the gradients of f and g."""

    lr: float

    @abstractmethod
    def weigh(
        self,
        g: Scalar,
        slope: Float[Tensor, "*C"],
    ) -> tuple[Scalar, PerLoss]:
        """Compute `sigma` and the weights of grad f and grad g from g and its slope."""

    def round(
        self,
        fed: Federation,
        state: Model,
        draw: Draw,
    ) -> tuple[Model, Info]:
        """Make `steps` steps on the pooled data."""
        pool = fed.only_client(draw)
        w = state.w
        for step in range(self.steps):  # 1
            values = pool.constraint(w, self.values(pool, step))
            g, slope = fed.constraint(values.unsqueeze(0))
            sigma, weights = self.weigh(g, slope)  # 2
            gradient = pool.gradient(w, pool.batch(step), weights)
            w = fed.project(w - self.lr * gradient)  # 3
        return Model(w), fed.info(g_hat=g, sigma=sigma)
