"""What methods for several objectives share: state, checks, gradients, local steps."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.core.client import Client
from fedlib.core.problem import Batch, Draw, Info, Problem
from fedlib.core.sampling import check_work, draw_round
from fedlib.steps.local import Gradient
from fedlib.weights.gram import GramEstimate


class State(NamedTuple):
    """What a method carries from round to round."""

    w: Float[Tensor, "d"]  # the model
    weights: Float[Tensor, "M"]  # lam, the objectives' weights of the last round


def check_numbers(
    who: str, lr: object, server_lr: object, local_steps: object, participants: object
) -> None:
    """Check the parameters that all these methods have; raises as `checks` does."""
    checks.positive(who, "lr", lr)
    checks.positive(who, "server_lr", server_lr)
    checks.count(who, "local_steps", local_steps)
    checks.count(who, "participants", participants)


def check_problem(
    who: str,
    problem: Problem,
    participants: int,
    batch_size: int | None = None,
    value_batch_size: int | None = None,
    shared: int | None = None,
) -> State:
    """Check a round's work against the problem; returns its start and equal weights.

    Raises
    ------
    ValueError
        for too few clients or rows, a problem with constraints, or more shared parameters than
        there are.
    """
    check_work(who, problem, participants, batch_size, value_batch_size)
    if problem.num_constraints:
        raise ValueError(
            f"{who}: the problem must have objectives only, {problem.name} has "
            f"{problem.num_constraints} constraints."
        )
    if shared is not None:
        checks.count(who, "shared", shared, 1, problem.dim, "the model's parameters")
    count = problem.num_objectives
    return State(problem.w0, problem.w0.new_full((count,), 1 / count))


def shared_part(shared: int | None, problem: Problem) -> int:
    """How many of the first parameters count for the Gram matrix: `shared`, or all of them."""
    return problem.dim if shared is None else shared


def draw_tasks(
    problem: Problem,
    rng: torch.Generator,
    *,
    gram: GramEstimate,
    participants: int,
    local_steps: int,
    batch_size: int | None,
    value_batch_size: int | None = None,
    shared: int | None = None,
    shared_batch: bool = False,
) -> Draw:
    """Participants; one batch an objective (or one for all), then those of steps 2 .. E; noise."""
    tasks = problem.num_objectives
    draw = draw_round(
        problem,
        rng,
        participants=participants,
        local_steps=first_batches(tasks, shared_batch) + local_steps - 1,
        batch_size=batch_size,
        value_batch_size=value_batch_size,
    )
    noise = gram.draw(participants, tasks, shared_part(shared, problem), rng)
    return draw._replace(uplink=noise.up, downlink=noise.down)


def first_batches(tasks: int, shared_batch: bool) -> int:
    """How many batches the gradients of step 1 take; those of steps 2 .. E follow them."""
    return 1 if shared_batch else tasks


def task_batch(client: Client, first: int, count: int) -> tuple[Batch, int | None]:
    """Batches `first .. first + count` of a client on a leading axis, or all its rows, with none.

    The second entry is the axis for `client.each`.
    """
    batches = client.state.batches
    if not isinstance(batches, Batch):
        return client.batch(0), None
    part = slice(first, first + count)
    return Batch(tuple(x[part] for x in batches.data), batches.weight[part]), 0


def task_gradients(
    client: Client, w: Float[Tensor, "d"], separate: bool = True
) -> Float[Tensor, "M d"]:
    """At the client: the gradients `[M, d]` of its objectives at `w`.

    Objective k is differentiated on batch k of the round if `separate`, else all on batch 0.
    """
    count = client.num_objectives
    batch, axis = task_batch(client, 0, count) if separate else (client.batch(0), None)
    each = torch.eye(count, dtype=w.dtype, device=w.device)
    gradients: Tensor = client.each(client.gradient, (None, axis, 0))(w, batch, each)
    return gradients


def weighted_gradient(client: Client, weights: Float[Tensor, "M"], shared_batch: bool) -> Gradient:
    """At the client: the gradient of its weighted objectives, in the first step what it remembers.

    It remembers the gradients that it has sent for the Gram matrix.
    """
    before = first_batches(len(weights), shared_batch)

    def gradient(u: Tensor, step: int) -> Tensor:
        if step == 0:
            return weights @ client.memory
        return client.gradient(u, client.batch(before + step - 1), weights)

    return gradient


def weight_info(gram: Float[Tensor, "M M"], weights: Float[Tensor, "M"]) -> Info:
    """The weights, and the squared norm of the direction that they promise."""
    each = {f"weight_{k}": weights[k - 1] for k in range(1, len(weights) + 1)}
    return {"direction": weights @ (gram @ weights), **each}
