"""Estimates of the Gram matrix of the gradients, from what clients send of their Jacobians.

The Jacobian of client j is `H_j [M, d]` with a gradient in each row (the paper transposes it). The
server needs `G = (mean_j H_j)(mean_j H_j)' [M, M]`, but a client can send only about `d` numbers in
place of `M d`. A sketch (`fedlib.compress.sketches`) compresses one Jacobian; an estimate defines
the messages and how `G` is computed.

Askin, Sharma, Joshi, Joe-Wong, *Federated Communication-Efficient Multi-Objective Optimization*,
AISTATS 2025, Algorithms 3 and 6, eqs. (13), (14).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from fedlib import checks
from fedlib.compress.lowrank import LowRank
from fedlib.compress.sketches import Sketch, Wire
from fedlib.compress.wire import Noise
from fedlib.core.client import Client, ClientState, Reply
from fedlib.core.federation import Federation
from fedlib.shapes import Gram, Jacobian

Rows = Callable[[Client], Tensor]
#: An estimate of the Gram matrix, and the clients with their Jacobians in memory.
Estimate = tuple[Gram, ClientState]


class GramNoise(NamedTuple):
    """The randomness of one round's estimate; `()` where nothing is random."""

    up: Noise = ()  # [n, ...], for the clients' sketches
    down: Noise = ()  # for the server's sketch


@runtime_checkable
class GramEstimate(Protocol):
    """A message exchange from which the server estimates the Gram matrix."""

    def draw(
        self,
        count: int,
        tasks: int,
        dim: int,
        rng: torch.Generator,
    ) -> GramNoise:
        """Draw the randomness for `count` clients with Jacobians `[tasks, dim]`."""
        return GramNoise()

    def __call__(
        self,
        fed: Federation,
        clients: ClientState,
        noise: Noise,
        jacobian: Rows,
        shared: int,
    ) -> Estimate:
        """The estimate `[M, M]`, and the clients, who remember their Jacobians `[n, M, d]`.

        `jacobian` is the client's method that computes its `H_j [M, d]`; only the first `shared`
        columns enter the Gram matrix. `noise` is the noise of the server's sketch.
        """


def gram_of(rows: Float[Tensor, "*b M d"]) -> Float[Tensor, "*b M M"]:
    """`H H'`, the inner products of the rows."""
    return rows @ rows.mT


def symmetric(x: Float[Tensor, "*b M M"]) -> Float[Tensor, "*b M M"]:
    """`(X + X') / 2`."""
    return (x + x.mT) / 2


@dataclass(frozen=True)
class OneWay(checks.Checked, GramEstimate):
    """Each client sends a sketch of its Jacobian; G is the Gram matrix of the sketches' mean.

    `OneWay(Exact())` is the exact Gram matrix, at `32 M d` bits for each client.

    Parameters
    ----------
    sketch : Sketch
        The clients' compressor of Jacobians.
    """

    sketch: Sketch = LowRank()

    def draw(
        self,
        count: int,
        tasks: int,
        dim: int,
        rng: torch.Generator,
    ) -> GramNoise:
        """Draw the randomness of the clients' sketches."""
        return GramNoise(self.sketch.draw(count, tasks, dim, rng))

    def __call__(
        self,
        fed: Federation,
        clients: ClientState,
        noise: Noise,
        jacobian: Rows,
        shared: int,
    ) -> Estimate:
        """The Gram matrix of the mean."""
        received, clients = gather(fed, clients, self.sketch, jacobian, shared)
        return gram_of(received.mean(0)), forget_sketches(clients, shared)


@dataclass(frozen=True)
class TwoWay(checks.Checked, GramEstimate):
    r"""An estimate of the Gram matrix in which a second exchange corrects compression errors.

        1  each j in S sends the sketch C_j of H_j;  R_j = H_j - C_j is what it left out
        2  h = sketch of sum_j C_j, sent back to S
        3  each j in S sends H_j H_j' and R_j (h - C_j)', 2 M^2 numbers
        4  G = (sum_j H_j H_j' + sum_{i != j} C_i C_j' + 2 sum_j R_j (h - C_j)') / n^2, symmetrized

    If `h` is the sum itself, only `sum_{i != j} R_i R_j'` is left out (eq. 13). The paper's formula
    holds only for the symmetric part of the last sum, so the estimate is symmetrized.

    >>> from fedlib import FedCMOO, problems, run
    >>> method = FedCMOO(lr=0.1, local_steps=2, participants=2, gram=TwoWay())
    >>> run(method, problems.pareto(), rounds=1).info["bits_up"]
    array([[1152.]])

    Parameters
    ----------
    sketch : Sketch
        The compressor of Jacobians, of the clients and of the server.
    """

    sketch: Sketch = LowRank()

    def draw(
        self,
        count: int,
        tasks: int,
        dim: int,
        rng: torch.Generator,
    ) -> GramNoise:
        """Draw the randomness of the clients' sketches and of the server's sketch."""
        up = self.sketch.draw(count, tasks, dim, rng)
        down = self.sketch.draw(1, tasks, dim, rng)
        return GramNoise(up, down[0] if isinstance(down, Tensor) else ())

    def __call__(
        self,
        fed: Federation,
        clients: ClientState,
        noise: Noise,
        jacobian: Rows,
        shared: int,
    ) -> Estimate:
        """The symmetrized two-way estimate."""
        received, clients = gather(fed, clients, self.sketch, jacobian, shared)  # 1
        count, tasks = received.shape[:2]
        total = received.sum(0).flatten()
        wire = Wire(self.sketch, tasks)
        sent = fed.broadcast(wire, total, noise, receivers=count)  # 2
        h = sent.view(tasks, -1)
        # the client already holds its own sketch and h, so nothing more is sent to it
        answer = partial(self.corrections, h=h, shared=shared)
        grams, cross = fed.ask(answer, clients).unbind(1)  # 3
        return combine(grams, received, cross), forget_sketches(clients, shared)  # 4

    def corrections(
        self,
        client: Client,
        *,
        h: Jacobian,
        shared: int,
    ) -> Float[Tensor, "2 M M"]:
        """At the client: compute `H H'` and `R (h - C)'`, `[2, M, M]`."""
        H = client.memory[:, :shared]
        C = client.memory[:, -shared:]
        return torch.stack([gram_of(H), (H - C) @ (h - C).mT])  # 3


@dataclass(frozen=True)
class MeanOfGrams(GramEstimate):
    r"""The mean of the clients' own Gram matrices, for comparison.

    Each client sends `M^2` numbers. The scale of `G` does not change the weights it determines.
    """

    def __call__(
        self,
        fed: Federation,
        clients: ClientState,
        noise: Noise,
        jacobian: Rows,
        shared: int,
    ) -> Estimate:
        """The mean of the clients' own Gram matrices."""

        def gram_matrix(client: Client) -> Reply:
            """At the client: compute its own Gram matrix; remember the Jacobian."""
            H = jacobian(client)
            return Reply(upload=gram_of(H[:, :shared]), memory=H)

        grams, memory = fed.ask(gram_matrix, clients)
        return grams.mean(0), clients._replace(memory=memory)


def combine(
    grams: Float[Tensor, "n M M"],
    received: Float[Tensor, "n M d"],
    cross: Float[Tensor, "n M M"],
) -> Gram:
    """Line 4 of `TwoWay`: from H_j H_j', C_j, and R_j (h - C_j)' of n clients."""
    within = gram_of(received).sum(0)
    between = gram_of(received.sum(0)) - within  # sum over i != j
    total = grams.sum(0) + between + 2 * cross.sum(0)
    return symmetric(total) / len(grams) ** 2


def gather(
    fed: Federation,
    clients: ClientState,
    sketch: Sketch,
    jacobian: Rows,
    shared: int,
) -> tuple[Float[Tensor, "n M s"], ClientState]:
    """Collect the sketches of all clients' Jacobians.

    Each client remembers its Jacobian `[M, d]` and, behind it, the sketch `[M, shared]`.
    """

    def send(client: Client) -> Reply:
        """At the client: sketch its Jacobian, and remember both."""
        H = jacobian(client)
        C = sketch(H[:, :shared], client.noise)
        memory = torch.cat([H, C], 1)
        return Reply(upload=C.flatten(), memory=memory)

    tasks = fed.problem.num_objectives
    uploads, memory = fed.ask(send, clients, wire=Wire(sketch, tasks))
    return uploads.unflatten(1, (tasks, -1)), clients._replace(memory=memory)


def forget_sketches(clients: ClientState, shared: int) -> ClientState:
    """The clients with their Jacobians alone in memory."""
    assert isinstance(clients.memory, Tensor)
    return clients._replace(memory=clients.memory[..., :-shared])
