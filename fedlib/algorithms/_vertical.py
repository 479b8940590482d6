"""What the algorithms of vertical federation share: the exchange of messages, batches, checks."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from fedlib import checks
from fedlib.core.problem import Draw, Problem
from fedlib.core.sampling import distinct
from fedlib.vertical.line import Line, check_vertical

NO_VALUES = slice(0, 0)


def exchange(
    line: Line,
    w: Float[Tensor, "d"],
    draw: Draw,
    weights: Float[Tensor, "k K"],
    head: int,
    valued: slice = NO_VALUES,
) -> tuple[Float[Tensor, "k d"], Float[Tensor, "V"]]:
    """All messages of a round, and what the server makes of them.

    Returns the gradients `[k, d]` of the mean over the batch of `weights [k, K] @ losses`, and the
    means of the losses named by `valued`, which client `head` sends with the gradient by w_0.
    """
    form, samples = line.problem.composite, draw_of(draw)
    w_0, *own = form.parameters.split(w)
    told = {
        i: line.to_client(i, "samples, head, block", samples, w_0, own[i - 1]) for i in form.numbers
    }
    party = {i: line.problem.party(i, told[i][0]) for i in form.numbers}
    heard: tuple[Tensor, ...] = ()
    for i in form.numbers:
        _, _, w_i = told[i]
        heard += line.to_others(i, "embeddings", party[i].embedding(w_i))
    sums: list[Tensor] = []
    for i in form.numbers:
        _, mine_0, w_i = told[i]
        sums += line.to_server(
            i, "gradient of the block", party[i].gradients(mine_0, w_i, heard, weights)
        )
    _, mine_0, _ = told[head]
    first, values = line.to_server(
        head,
        "gradient of the head",
        party[head].head_gradients(mine_0, heard, weights),
        party[head].values(mine_0, heard)[valued],
    )
    return form.parameters.join([first, *sums]) / len(samples), values / len(samples)


def mean_objective(problem: Problem, w: Float[Tensor, "d"]) -> Float[Tensor, "1 K"]:
    """The weights `[1, K]` of the mean of all objectives."""
    counts = problem.num_objectives, problem.num_constraints
    shares = [1 / counts[0]] * counts[0] + [0.0] * counts[1]
    return torch.tensor([shares], dtype=w.dtype, device=w.device)


def draw_samples(problem: Problem, rng: torch.Generator, batch_size: int | None) -> Draw:
    """Distinct samples of the pool, the same for all clients; all of them for None."""
    count = problem.sizes[0]
    samples = torch.arange(count) if batch_size is None else distinct(count, (batch_size,), rng)
    return Draw(participants=torch.zeros(1, dtype=torch.int64), batches=samples.view(1, 1, -1))


def draw_of(draw: Draw) -> Int[Tensor, "B"]:
    """The samples `[B]` of a draw of `draw_samples`."""
    if not isinstance(draw.batches, Tensor):
        raise ValueError("vertical: the draw must name the samples; see draw_samples().")
    return draw.batches[0, 0]


def check_batch(who: str, problem: Problem, batch_size: int | None, head: int) -> None:
    """Check a round's work against the problem.

    Raises
    ------
    ValueError, TypeError
        for a problem whose features are not divided among clients, more rows than samples, or a
        head that is no client.
    """
    form = check_vertical(who, problem).composite
    checks.count(who, "head", head, 1, form.clients, "the problem's clients")
    if batch_size is not None:
        checks.count(who, "batch_size", batch_size, 1, problem.sizes[0], "the problem's samples")
