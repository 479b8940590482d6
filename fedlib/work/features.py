"""Work on mini-batches of pooled samples, of which every client holds some features."""

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count
from fedlib.core.problem import Draw, Problem, objective_weights
from fedlib.shapes import Vector
from fedlib.vertical import Line, check_vertical
from fedlib.work.samples import distinct

NO_LOSS = slice(0)


class OverFeatures(checks.Checked):
    """Base of methods over features: each client has some features of every pooled sample.

    Parameters
    ----------
    batch_size : int or None
        B, the number of samples in a batch, drawn from the pool without replacement; None for all.
    head : int
        Number, 1 .. I, of the client that also sends the gradient of the common parameters.
    """

    batch_size: Count | None
    head: Count

    def check(self, problem: Problem) -> None:
        """Raise ValueError or TypeError unless features are divided, and head and batch fit."""
        name = type(self).__name__
        clients = check_vertical(name, problem).composite.clients
        checks.count(name, "head", self.head, 1, clients, "the problem's clients")
        if self.batch_size is not None:
            samples = problem.sizes[0]
            checks.count(
                name,
                "batch_size",
                self.batch_size,
                1,
                samples,
                "the problem's samples",
            )

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        """Draw distinct samples of the pool for all clients; take all if `batch_size` is None."""
        count = problem.sizes[0]
        samples = torch.arange(count)
        if self.batch_size is not None:
            samples = distinct(count, (self.batch_size,), rng)  # 1
        pool = torch.zeros(1, dtype=torch.int64)
        batches = samples.view(1, 1, -1)
        return Draw(participants=pool, batches=batches)


def mean_of(problem: Problem) -> Float[Tensor, "1 K"]:
    """The weights `[1, K]` of the mean of all objectives."""
    weights = objective_weights(
        problem.num_objectives,
        problem.num_constraints,
        problem.w0,
    )
    return weights.unsqueeze(0)


def exchange(
    line: Line,
    w: Vector,
    draw: Draw,
    weights: Float[Tensor, "k K"],
    head: int,
    valued: slice = NO_LOSS,
) -> tuple[Float[Tensor, "k d"], Float[Tensor, "V"]]:
    """Exchange a round's messages between clients that hold features; return the mean gradients.

    Returns the gradients `[k, d]` of the mean over the batch of `weights [k, K] @ losses`, and the
    means of the losses named by `valued`, which client `head` sends with the gradient by w_0.
    """
    assert isinstance(draw.batches, Tensor)
    samples = draw.batches[0, 0]
    form = line.problem.composite
    w_0, *blocks = form.parameters.split(w)

    received = {}
    parties = {}
    for client in form.numbers:
        block = blocks[client - 1]
        received[client] = line.to_client(
            client,
            "samples, head, block",
            samples,
            w_0,
            block,
        )
        parties[client] = line.problem.party(client, received[client][0])

    embeddings: list[Tensor] = []
    for client in form.numbers:
        _, _, w_i = received[client]
        embedding = parties[client].embedding(w_i)
        embeddings += line.to_others(client, "embeddings", embedding)
    heard = tuple(embeddings)

    sums: list[Tensor] = []
    for client in form.numbers:
        _, client_w_0, w_i = received[client]
        gradients = parties[client].gradients(client_w_0, w_i, heard, weights)
        sums += line.to_server(client, "gradient of the block", gradients)

    _, head_w_0, _ = received[head]
    head_sum, values = line.to_server(
        head,
        "gradient of the head",
        parties[head].head_gradients(head_w_0, heard, weights),
        parties[head].values(head_w_0, heard)[valued],
    )
    count = len(samples)
    return form.parameters.join([head_sum, *sums]) / count, values / count
