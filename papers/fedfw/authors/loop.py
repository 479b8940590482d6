"""The loops behind FedFW's printed tables, as far as the authors' public code tells.

They are for comparison only: the library's FedFW and FedDR are those of the papers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fedlib.core import Problem
from fedlib.core.describe import added_field
from fedlib.core.federation import Federation
from fedlib.core.problem import Draw, Info
from fedlib.steps.schedules import Convex, Stochastic

BATCH = 64
NORMS = ("l2", "l1")
FEDDR_STEP = 0.05
FEDDR_ALPHA = 0.01
Array = np.ndarray[Any, Any]


class State(NamedTuple):
    """The server's model, and what the clients keep."""

    w: Tensor  # [d]
    x: Tensor  # [N, d] the clients' models at the end of the round
    kept: Tensor  # [N, k, d] averaged gradients, k = 1, of FedFW-sto; y and x-hat, k = 2, of FedDR
    t: Tensor  # rounds done


@dataclass(frozen=True)
class AuthorsFW:
    """FedFW and FedFW-sto as the published code runs them, and what lies between it and the text.

        1  round t = 1, 2, ...: every client i starts from x_i = w
        2  for each minibatch of 64 of its own rows, in random or fixed order, all rows once:
        3      s counts the client's minibatches of all rounds
               g = grad f_i(x_i; minibatch) / N + lam_s (x_i - w)
        4      x_i <- (1 - eta_s) x_i + eta_s lmo(g), in every tensor for itself
        5  w <- mean_i x_i

    Parameters
    ----------
    lam0, radius : lambda_0, and the radius of every ball.
    norm : `"l2"` or `"l1"`.
    reset : line 1; if not, clients keep their models, as in the paper.
    epoch : line 2; if not, a round is one step on all rows of a client.
    tensors : a ball for every tensor; if not, one for the whole vector.
    averaged : FedFW-sto: line 3 has the client's running mean of gradients, which lives on.
    ordered : line 2: whether the rows have the same order in every round, as in the published code.
    """

    lam0: float
    norm: str = "l2"
    radius: float = 10.0
    reset: bool = True
    epoch: bool = True
    tensors: bool = True
    averaged: bool = False
    ordered: bool = added_field(False)

    def init(self, problem: Problem) -> State:
        w = problem.w0
        n = problem.num_clients
        return State(w, w.repeat(n, 1), w.new_zeros(n, int(self.averaged), len(w)), w.new_zeros(()))

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        return drawn(problem, rng)

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        problem = fed.problem
        rounds = int(state.t)
        lam0 = float(self.lam0)
        radius = float(self.radius)
        w, x, kept = (tensor.numpy().copy() for tensor in (state.w, state.x, state.kept))
        if self.reset:
            x[:] = w
        n = problem.num_clients
        shapes = shapes_of(problem)
        schedule = Stochastic() if self.averaged else Convex()
        ends = parts_of(shapes) if self.tensors else ((0, len(w)),)
        per_round = steps_of(problem.sizes, self.epoch)
        at = (
            torch.arange(int(per_round.max()))[:, None] + rounds * torch.from_numpy(per_round) + 1.0
        )
        eta, growth, rho = (
            rule.numpy().astype(np.float32)[:, :, None]
            for rule in (schedule.eta(at, 1.0), lam0 * schedule.growth(at, 1.0), schedule.rho(at))
        )  # 3
        chance = None if self.ordered else generator(draw)
        for step, clients, X, y, weight in minibatches(problem, chance, self.epoch):
            models = x[clients]
            g = gradients(models, X, y, weight, shapes) / np.float32(n)
            if self.averaged:
                g = kept[clients, 0] + rho[step, clients] * (g - kept[clients, 0])
                kept[clients, 0] = g
            g = g + growth[step, clients] * (models - w)
            corner = oracle(g, ends, self.norm, radius)  # 4
            x[clients] = models + eta[step, clients] * (corner - models)
        server, client_models, averages = map(torch.from_numpy, (x.mean(0), x, kept))
        new = State(server, client_models, averages, state.t + 1)  # 5
        return new, fed.info()


@dataclass(frozen=True)
class AuthorsFedDR:
    """FedDR as the published code runs it.

        1  the server starts at w = 0, each client at a random model: y_i, x_i, xhat_i
        2  round: each client i, on one minibatch of 64 of its rows:
        3      y_i <- y_i + 0.01 (w - x_i)
        4      x_i <- x_i - 0.05 (grad f_i(x_i; minibatch) + 0.01 (x_i - y_i))
        5      xhat_i <- 2 x_i - y_i, and sends its change
        6  w <- w + mean of the changes, scaled back into the ball if it is outside

    Parameters
    ----------
    norm, radius : of the ball around the whole vector; line 6 is a projection for `"l2"` alone.
    common : line 1: whether all clients start at the same random model, as in the published code.
    ordered : line 2: whether a client walks through its rows in a fixed order, as there; if not, it
        draws a minibatch.
    """

    norm: str = "l2"
    radius: float = 10.0
    common: bool = added_field(False)
    ordered: bool = added_field(False)

    def init(self, problem: Problem) -> State:
        w = torch.zeros_like(problem.w0)
        n = problem.num_clients
        return State(w, w.repeat(n, 1), w.new_zeros(n, 2, len(w)), w.new_zeros(()))

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        return drawn(problem, rng)

    def round(self, fed: Federation, state: State, draw: Draw) -> tuple[State, Info]:
        problem = fed.problem
        rng = generator(draw)
        w = state.w.numpy()
        x = state.x.numpy()
        y, previous = state.kept.numpy().swapaxes(0, 1)
        shapes = shapes_of(problem)
        if int(state.t) == 0:
            starts = random_models(shapes, 1 if self.common else len(x), rng)
            x = y = previous = np.broadcast_to(starts, x.shape)  # 1
        if self.ordered:
            X, labels, weight = next_batch(problem, int(state.t))  # 2
        else:
            X, labels, weight = one_batch(problem, rng)  # 2
        y = y + np.float32(FEDDR_ALPHA) * (w - x)  # 3
        slope = gradients(x, X, labels, weight, shapes)
        x = x - np.float32(FEDDR_STEP) * (slope + np.float32(FEDDR_ALPHA) * (x - y))  # 4
        reflected = 2 * x - y  # 5
        moved = w + (reflected - previous).mean(0)  # 6
        size = np.abs(moved).sum() if self.norm == "l1" else np.sqrt((moved * moved).sum())
        moved = moved * np.float32(min(1.0, float(self.radius) / max(float(size), 1e-30)))
        kept = np.stack([y, reflected], 1)
        server, models, remembered = map(torch.from_numpy, (moved, x, kept))
        state_after = State(server, models, remembered, state.t + 1)
        return state_after, fed.info()


def drawn(problem: Problem, rng: torch.Generator) -> Draw:
    """One number, from which the round's own generator starts."""
    number = torch.randint(2**62, (1,), generator=rng)
    return Draw(torch.arange(problem.num_clients), chance=number)


def generator(draw: Draw) -> np.random.Generator:
    assert isinstance(draw.chance, Tensor)
    return np.random.default_rng(int(draw.chance))


def shapes_of(problem: Problem) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(shape) for shape in problem.config["shapes"])


@lru_cache(maxsize=8)
def parts_of(shapes: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, int], ...]:
    """First and last place of every tensor in the vector."""
    ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)]).tolist()
    return tuple(pairwise(ends))


@lru_cache(maxsize=8)
def steps_of(sizes: tuple[int, ...], epoch: bool) -> Array:
    """Steps of every client in a round."""
    return np.array([-(-n // BATCH) if epoch else 1 for n in sizes])


Step = tuple[int, Array, Array, Array, Array]


def minibatches(problem: Problem, rng: np.random.Generator | None, epoch: bool) -> Iterator[Step]:
    """Step by step: its number, the clients that still have rows, their rows, labels, weights.

    The clients of a step are worked on together; a row beyond a client's last weighs nothing.
    """
    X, y = (tensor.numpy() for tensor in problem.data)
    rows = problem.rows.numpy()
    sizes = problem.sizes
    steps = steps_of(sizes, epoch)
    width = BATCH if epoch else max(sizes)
    orders = [
        np.resize(rows[j, rng.permutation(n) if epoch and rng else slice(n)], (count, width))
        for j, (n, count) in enumerate(zip(sizes, steps, strict=True))
    ]
    for step, (clients, weight) in enumerate(plan(sizes, epoch)):
        chosen = np.stack([orders[j][step] for j in clients])
        yield step, clients, X[chosen], y[chosen], weight


@lru_cache(maxsize=8)
def plan(sizes: tuple[int, ...], epoch: bool) -> tuple[tuple[Array, Array], ...]:
    """For every step of a round, who still has rows, and what each row counts."""
    steps = steps_of(sizes, epoch)
    width = BATCH if epoch else max(sizes)
    steps_plan = []
    for step in range(int(steps.max())):
        clients_left = np.flatnonzero(steps > step)
        left = np.minimum(np.array(sizes)[clients_left] - step * width, width)[:, None]
        steps_plan.append((clients_left, (np.arange(width) < left) / left.astype(np.float32)))
    return tuple(steps_plan)


def next_batch(problem: Problem, rounds: int) -> tuple[Array, Array, Array]:
    """The minibatch of every client that follows the `rounds` before, in the order of its rows."""
    X, y = (tensor.numpy() for tensor in problem.data)
    sizes = np.array(problem.sizes)
    first_row = BATCH * (rounds % steps_of(problem.sizes, epoch=True))
    left = np.minimum(sizes - first_row, BATCH)[:, None]
    places = (first_row[:, None] + np.arange(BATCH)) % sizes[:, None]
    chosen = np.take_along_axis(problem.rows.numpy(), places, 1)
    return X[chosen], y[chosen], (np.arange(BATCH) < left) / left.astype(np.float32)


def one_batch(problem: Problem, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """A minibatch of every client's rows, without replacement where it has as many."""
    X, y = (tensor.numpy() for tensor in problem.data)
    rows = problem.rows.numpy()
    places = [rng.choice(n, BATCH, replace=n < BATCH) for n in problem.sizes]
    chosen = np.stack([rows[j, local_places] for j, local_places in enumerate(places)])
    return X[chosen], y[chosen], np.full(chosen.shape, 1 / BATCH, np.float32)


def gradients(
    x: Array, X: Array, y: Array, weight: Array, shapes: tuple[tuple[int, ...], ...]
) -> Array:
    """Of the clients' mean cross-entropies at their models, `[n, d]`; one layer, or two with ReLU.

    `x [n, d]`, rows `X [n, B, p]`, labels and weights `[n, B]`.
    """
    tensors = [
        x[:, a:b].reshape(len(x), *shape)
        for (a, b), shape in zip(parts_of(shapes), shapes, strict=True)
    ]
    W, b = tensors[:2]
    rows = X.swapaxes(1, 2)  # labels and cells before rows: sums over them are fast then
    Z = W @ rows + b[:, :, None]
    deep = len(tensors) > 2
    V, c = tensors[2:] if deep else (W, b)
    hidden = np.maximum(Z, 0)
    outputs = V @ hidden + c[:, :, None] if deep else Z
    outputs = np.exp(outputs - outputs.max(1, keepdims=True))
    outputs *= (weight / outputs.sum(1))[:, None]
    n, size = y.shape
    outputs[np.arange(n)[:, None], y, np.arange(size)] -= weight
    blocks = [outputs @ (hidden.swapaxes(1, 2) if deep else X), outputs.sum(2)]
    if deep:
        back = (V.swapaxes(1, 2) @ outputs) * (Z > 0)
        blocks = [back @ X, back.sum(2), *blocks]
    return np.concatenate([block.reshape(n, -1) for block in blocks], 1)


def oracle(g: Array, ends: tuple[tuple[int, int], ...], norm: str, radius: float) -> Array:
    """The corner of every ball that minimizes the inner product with its part of g, `[n, d]`."""
    corner = np.zeros_like(g)
    for a, b in ends:
        block = g[:, a:b]
        if norm == "l2":
            size = np.sqrt(np.einsum("nd,nd->n", block, block))
            corner[:, a:b] = block * (np.float32(-radius) / np.maximum(size, 1e-30))[:, None]
        else:
            line = np.arange(len(block))
            at = np.abs(block).argmax(1)
            corner[line, a + at] = -radius * np.sign(block[line, at])
    return corner


def random_models(
    shapes: tuple[tuple[int, ...], ...], clients: int, rng: np.random.Generator
) -> Array:
    """Every tensor of a layer uniform within 1 / sqrt(inputs), as torch starts layers."""
    ends = [1 / np.sqrt(shapes[k - k % 2][1]) for k in range(len(shapes))]
    blocks = [
        rng.uniform(-end, end, (clients, int(np.prod(shape))))
        for end, shape in zip(ends, shapes, strict=True)
    ]
    return np.concatenate(blocks, 1).astype(np.float32)
