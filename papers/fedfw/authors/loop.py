"""The loops behind FedFW's printed tables, as far as the authors' public code tells.

They are for comparison only: the library's FedFW and FedDR are those of the papers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from math import prod
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
FEDDR_STEP = np.float32(0.05)
FEDDR_ALPHA = np.float32(0.01)
Array = np.ndarray[Any, Any]
Shapes = tuple[tuple[int, ...], ...]  # of a model's tensors


class State(NamedTuple):
    """The server's model, and what the clients keep."""

    w: Tensor  # [d]
    x: Tensor  # [N, d] the clients' models at the end of the round
    kept: Tensor  # [N, k, d] averaged gradients, k = 1, of FedFW-sto; y and x-hat, k = 2, of FedDR
    t: Tensor  # rounds done


def state_of(
    w: Array,
    x: Array,
    kept: Array,
    t: Tensor,
) -> State:
    """The state of these arrays."""
    return State(
        w=torch.from_numpy(w),
        x=torch.from_numpy(x),
        kept=torch.from_numpy(kept),
        t=t,
    )


class Rows(NamedTuple):
    """The same number of rows for each of some clients, and what each counts in a mean."""

    X: Array  # [n, B, p]
    y: Array  # [n, B]
    weight: Array  # [n, B]


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
        averages = w.new_zeros(n, int(self.averaged), len(w))
        models = w.repeat(n, 1)
        return State(w, models, averages, t=w.new_zeros(()))

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        return drawn(problem, rng)

    def round(
        self,
        fed: Federation,
        state: State,
        draw: Draw,
    ) -> tuple[State, Info]:
        problem = fed.problem
        shapes = shapes_of(problem)
        w = state.w.numpy()
        x = state.x.numpy().copy()
        averages = state.kept.numpy().copy()
        if self.reset:
            x[:] = w
        ends = parts_of(shapes) if self.tensors else ((0, len(w)),)
        eta, lam, rho = self.step_sizes(problem, int(state.t))
        rng = None if self.ordered else generator(draw)
        count = np.float32(problem.num_clients)
        for step, clients, rows in minibatches(problem, rng, self.epoch):
            x_i = x[clients]
            g = gradients(x_i, rows, shapes) / count
            if self.averaged:
                average = averages[clients, 0]
                change = rho[step, clients] * (g - average)
                g = average + change
                averages[clients, 0] = g
            g = g + lam[step, clients] * (x_i - w)
            corner = oracle(g, ends, self.norm, float(self.radius))  # 4
            x[clients] = x_i + eta[step, clients] * (corner - x_i)
        w = x.mean(0)  # 5
        return state_of(w, x, averages, state.t + 1), fed.info()

    def step_sizes(self, problem: Problem, rounds: int) -> tuple[Array, Array, Array]:
        """Line 3's eta_s, lambda_s and rho_s in the round after `rounds`, each `[steps, N, 1]`."""
        schedule = Stochastic() if self.averaged else Convex()
        per_round = steps_of(problem.sizes, self.epoch)
        step = torch.arange(int(per_round.max()))[:, None]
        s = step + rounds * torch.from_numpy(per_round) + 1.0
        eta = schedule.eta(s, 1.0)
        lam = float(self.lam0) * schedule.growth(s, 1.0)
        rho = schedule.rho(s)
        return single(eta), single(lam), single(rho)


def single(values: Tensor) -> Array:
    """Values `[steps, N]` in float32, as `[steps, N, 1]`."""
    return values.numpy().astype(np.float32)[:, :, None]


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
        y_and_xhat = w.new_zeros(n, 2, len(w))
        models = w.repeat(n, 1)
        return State(w, models, y_and_xhat, t=w.new_zeros(()))

    def draw(self, problem: Problem, rng: torch.Generator) -> Draw:
        return drawn(problem, rng)

    def round(
        self,
        fed: Federation,
        state: State,
        draw: Draw,
    ) -> tuple[State, Info]:
        problem = fed.problem
        rounds = int(state.t)
        rng = generator(draw)
        shapes = shapes_of(problem)
        w = state.w.numpy()
        x = state.x.numpy()
        y, xhat = state.kept.numpy().swapaxes(0, 1)
        if rounds == 0:
            count = 1 if self.common else len(x)
            starts = random_models(shapes, count, rng)
            x = y = xhat = np.broadcast_to(starts, x.shape)  # 1
        rows = next_batch(problem, rounds) if self.ordered else one_batch(problem, rng)  # 2
        y = y + FEDDR_ALPHA * (w - x)  # 3
        slope = gradients(x, rows, shapes) + FEDDR_ALPHA * (x - y)
        x = x - FEDDR_STEP * slope  # 4
        next_xhat = 2 * x - y  # 5
        changes = next_xhat - xhat
        w = self.into_ball(w + changes.mean(0))  # 6
        kept = np.stack([y, next_xhat], 1)
        return state_of(w, x, kept, state.t + 1), fed.info()

    def into_ball(self, w: Array) -> Array:
        """Line 6's scaling of a model that is outside of the ball."""
        length = np.abs(w).sum() if self.norm == "l1" else np.sqrt((w * w).sum())
        share = float(self.radius) / max(float(length), 1e-30)
        return w * np.float32(min(1.0, share))


def drawn(problem: Problem, rng: torch.Generator) -> Draw:
    """One number, from which the round's own generator starts."""
    number = torch.randint(2**62, (1,), generator=rng)
    return Draw(torch.arange(problem.num_clients), chance=number)


def generator(draw: Draw) -> np.random.Generator:
    """The round's own generator."""
    assert isinstance(draw.chance, Tensor)
    return np.random.default_rng(int(draw.chance))


def shapes_of(problem: Problem) -> Shapes:
    """The shapes of the model's tensors."""
    return tuple(tuple(shape) for shape in problem.config["shapes"])


@lru_cache(maxsize=8)
def parts_of(shapes: Shapes) -> tuple[tuple[int, int], ...]:
    """First and last place of every tensor in the vector."""
    lengths = map(prod, shapes)
    ends = accumulate(lengths, initial=0)
    return tuple(pairwise(ends))


@lru_cache(maxsize=8)
def steps_of(sizes: tuple[int, ...], epoch: bool) -> Array:
    """Steps of every client in a round."""
    if not epoch:
        return np.ones(len(sizes), dtype=int)
    return -(-np.array(sizes) // BATCH)  # rounded up


def minibatches(
    problem: Problem,
    rng: np.random.Generator | None,
    epoch: bool,
) -> Iterator[tuple[int, Array, Rows]]:
    """Step by step: its number, the clients that still have rows, and their rows.

    The clients of a step are worked on together; a row beyond a client's last weighs nothing.
    """
    orders = row_orders(problem, rng, epoch)
    for step, (clients, weight) in enumerate(plan(problem.sizes, epoch)):
        numbers = [orders[client][step] for client in clients]
        yield step, clients, rows_of(problem, np.stack(numbers), weight)


def rows_of(problem: Problem, numbers: Array, weight: Array) -> Rows:
    """The rows of these numbers, `[n, B]`."""
    X, y = problem.data
    return Rows(X.numpy()[numbers], y.numpy()[numbers], weight)


def row_orders(
    problem: Problem,
    rng: np.random.Generator | None,
    epoch: bool,
) -> list[Array]:
    """For every client its rows in the order of the round, `[steps, width]`; the last ones repeat.

    In an epoch the order is random, without `rng` that of the problem.
    """
    sizes = problem.sizes
    width = width_of(sizes, epoch)
    orders = []
    clients = zip(problem.rows.numpy(), sizes, steps_of(sizes, epoch), strict=True)
    for padded, size, count in clients:
        rows = padded[:size]
        if epoch and rng is not None:
            rows = padded[rng.permutation(size)]
        orders.append(np.resize(rows, (count, width)))
    return orders


def width_of(sizes: tuple[int, ...], epoch: bool) -> int:
    """The rows of a step: of a minibatch, or of the largest client."""
    return BATCH if epoch else max(sizes)


@lru_cache(maxsize=8)
def plan(sizes: tuple[int, ...], epoch: bool) -> tuple[tuple[Array, Array], ...]:
    """For every step of a round, who still has rows, and what each row counts."""
    steps = steps_of(sizes, epoch)
    width = width_of(sizes, epoch)
    of_steps = []
    for step in range(int(steps.max())):
        clients = np.flatnonzero(steps > step)
        rows_left = np.array(sizes)[clients] - step * width
        counts = np.minimum(rows_left, width)
        of_steps.append((clients, equal_weights(counts, width)))
    return tuple(of_steps)


def equal_weights(counts: Array, width: int) -> Array:
    """The weights of as many rows as each client has, and 0 for those beyond, `[n, width]`."""
    counts = counts[:, None]
    is_row = np.arange(width) < counts
    return is_row / counts.astype(np.float32)


def next_batch(problem: Problem, rounds: int) -> Rows:
    """The minibatch of every client that follows the `rounds` before, in the order of its rows."""
    sizes = np.array(problem.sizes)
    batches = steps_of(problem.sizes, epoch=True)
    first_row = BATCH * (rounds % batches)
    places = first_row[:, None] + np.arange(BATCH)
    numbers = np.take_along_axis(problem.rows.numpy(), places % sizes[:, None], 1)
    rows_left = np.minimum(sizes - first_row, BATCH)
    return rows_of(problem, numbers, equal_weights(rows_left, BATCH))


def one_batch(problem: Problem, rng: np.random.Generator) -> Rows:
    """A minibatch of every client's rows, without replacement where it has as many."""
    batches = []
    for rows, size in zip(problem.rows.numpy(), problem.sizes, strict=True):
        places = rng.choice(size, BATCH, replace=size < BATCH)
        batches.append(rows[places])
    numbers = np.stack(batches)
    weight = np.full(numbers.shape, 1 / BATCH, np.float32)
    return rows_of(problem, numbers, weight)


def gradients(x: Array, rows: Rows, shapes: Shapes) -> Array:
    """Of the clients' mean cross-entropies at their models `x`, `[n, d]`; one layer, or two."""
    X = rows.X
    columns = X.swapaxes(1, 2)  # labels and cells before rows: sums over them are fast then
    W, b, *second_layer = tensors_of(x, shapes)
    Z = W @ columns + b[:, :, None]
    if not second_layer:
        error = output_error(Z, rows)
        blocks = [error @ X, error.sum(2)]
    else:
        V, c = second_layer
        hidden = np.maximum(Z, 0)
        outputs = V @ hidden + c[:, :, None]
        error = output_error(outputs, rows)
        at_hidden = V.swapaxes(1, 2) @ error
        back = at_hidden * (Z > 0)
        blocks = [back @ X, back.sum(2), error @ hidden.swapaxes(1, 2), error.sum(2)]
    flat = [block.reshape(len(x), -1) for block in blocks]
    return np.concatenate(flat, 1)


def tensors_of(x: Array, shapes: Shapes) -> list[Array]:
    """The tensors of all clients' models `[n, d]`, each `[n, ...]`."""
    tensors = []
    for (start, end), shape in zip(parts_of(shapes), shapes, strict=True):
        block = x[:, start:end]
        tensors.append(block.reshape(len(x), *shape))
    return tensors


def output_error(outputs: Array, rows: Rows) -> Array:
    """The gradient of the mean cross-entropies by the outputs `[n, classes, B]`."""
    largest = outputs.max(1, keepdims=True)
    error = np.exp(outputs - largest)
    factor = rows.weight / error.sum(1)
    error *= factor[:, None]
    n, size = rows.y.shape
    clients = np.arange(n)[:, None]
    error[clients, rows.y, np.arange(size)] -= rows.weight
    return np.asarray(error)


def oracle(
    g: Array,
    ends: tuple[tuple[int, int], ...],
    norm: str,
    radius: float,
) -> Array:
    """The corner of every ball that minimizes the inner product with its part of g, `[n, d]`."""
    corner = np.zeros_like(g)
    for start, end in ends:
        block = g[:, start:end]
        if norm == "l2":
            length = np.sqrt(np.einsum("nd,nd->n", block, block))
            factor = np.float32(-radius) / np.maximum(length, 1e-30)
            corner[:, start:end] = block * factor[:, None]
        else:
            clients = np.arange(len(block))
            largest = np.abs(block).argmax(1)
            sign = np.sign(block[clients, largest])
            corner[clients, start + largest] = -radius * sign
    return corner


def random_models(shapes: Shapes, clients: int, rng: np.random.Generator) -> Array:
    """Every tensor of a layer uniform within 1 / sqrt(inputs), as torch starts layers."""
    blocks = []
    for k, shape in enumerate(shapes):
        matrix_shape = shapes[k - k % 2]  # of the layer whose matrix or bias this is
        end = 1 / np.sqrt(matrix_shape[1])
        block = rng.uniform(-end, end, (clients, prod(shape)))
        blocks.append(block)
    return np.concatenate(blocks, 1).astype(np.float32)
