"""What centralized methods share: one client, and fresh batches for every step of a round."""

from __future__ import annotations

import torch

from fedlib.core.client import Client
from fedlib.core.problem import Batch, Draw, Problem
from fedlib.core.sampling import check_one_constraint, draw_round


def check_centralized(who: str, problem: Problem) -> None:
    """Raise ValueError unless the problem has one client, one objective and one constraint."""
    check_one_constraint(who, problem)
    if problem.num_clients != 1:
        raise ValueError(
            f"{who}: the problem must have one client that holds all data, {problem.name} has "
            f"{problem.num_clients}; build it with clients=1."
        )


def draw_steps(
    problem: Problem,
    rng: torch.Generator,
    steps: int,
    batch_size: int | None,
    value_batch_size: int | None,
) -> Draw:
    """The batches of `steps` steps; those for loss values lie one after another in `values`."""
    return draw_round(
        problem,
        rng,
        participants=1,
        local_steps=steps,
        batch_size=batch_size,
        value_batch_size=None if value_batch_size is None else steps * value_batch_size,
    )


def step_values(pool: Client, step: int, steps: int) -> Batch:
    """The batch for loss values at one of the steps of `draw_steps`, or all rows."""
    whole = pool.value_batch()
    if not isinstance(pool.state.values, Batch):
        return whole
    size = whole.weight.shape[-1] // steps
    part = slice(step * size, (step + 1) * size)
    return Batch(tuple(x[part] for x in whole.data), steps * whole.weight[part])
