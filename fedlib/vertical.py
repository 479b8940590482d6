r"""Vertical federation: every client holds some features of every sample.

The objective has the composite form $f(w; x) = g(w_0, (h_i(w_i, x_i))_i)$ (equation (2) of Ye and
Cui): client i has the block $x_i$ of every sample and the parameters $w_i$ that belong to it, and
$w_0$ is common. `Composite` states that form, `vertical` gives it to an ordinary problem, `Party`
is what one client can reach in a round, and every message of a round crosses a `Line`.

Clients are numbered 1 .. I, as in the paper's tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.func import jacrev

from fedlib import checks
from fedlib.federation import FLOAT_BITS, Federation
from fedlib.types import Batch, Info, Problem

__all__ = [
    "Composite",
    "Line",
    "Message",
    "Partition",
    "Party",
    "VerticalProblem",
    "contiguous",
    "vertical",
]

INDEX_BITS = 32  # a sample's number on the wire
SERVER = "server"

Pieces = tuple[Tensor, ...]


@dataclass(frozen=True, eq=False)
class Partition:
    """The numbers 0 .. size - 1 in disjoint parts that leave none out.

    Raises
    ------
    ValueError
        for a number that is in no part, in two of them, or outside 0 .. size - 1.
    """

    name: str  # of what is divided, for errors
    parts: tuple[Int[Tensor, "k"], ...]
    size: int
    order: Int[Tensor, "size"] = field(init=False, repr=False)  # where each number lies in the cat

    def __post_init__(self) -> None:
        """Check the parts."""
        whole = torch.cat(self.parts) if self.parts else torch.zeros(0, dtype=torch.int64)
        outside = whole[(whole < 0) | (whole >= self.size)]
        if len(outside):
            wanted = f"lie in 0..{self.size - 1}"
            raise ValueError(checks.sentence("vertical", self.name, wanted, int(outside[0])))
        times = torch.bincount(whole, minlength=self.size)
        for wrong, verb in ((times > 1, "appear only once"), (times == 0, "all appear")):
            if wrong.any():
                first, count = int(wrong.nonzero()[0]), int(wrong.sum())
                held = [str(i) for i, part in enumerate(self.parts) if bool((part == first).any())]
                where = f"in parts {', '.join(held)}" if held else "in no part"
                raise ValueError(
                    f"vertical: {self.name} must {verb} in the clients' blocks, "
                    f"{first} is {where} ({count} such)."
                )
        object.__setattr__(self, "order", whole.argsort())

    def cut(self, x: Shaped[Tensor, "*b size"], part: int) -> Shaped[Tensor, "*b k"]:
        """The entries of one part."""
        return x[..., self.parts[part]]

    def split(self, x: Shaped[Tensor, "*b size"]) -> Pieces:
        """All parts."""
        return tuple(self.cut(x, part) for part in range(len(self.parts)))

    def join(self, pieces: Sequence[Shaped[Tensor, "*b k"]]) -> Shaped[Tensor, "*b size"]:
        """The whole from its parts."""
        return torch.cat(list(pieces), -1)[..., self.order]

    def to(self, device: torch.device | str) -> Partition:
        """The same partition with its tensors on `device`."""
        moved = copy(self)  # checked already
        object.__setattr__(moved, "parts", tuple(part.to(device) for part in self.parts))
        object.__setattr__(moved, "order", self.order.to(device))
        return moved


def contiguous(size: int, clients: int) -> tuple[Int[Tensor, "k"], ...]:
    """The numbers 0 .. size - 1 in blocks of neighbours, the first ones longer by one if need be.

    >>> [len(block) for block in contiguous(10, 4)]
    [3, 3, 2, 2]

    Raises
    ------
    ValueError
        if there are more clients than numbers.
    """
    checks.count("contiguous", "clients", clients, 1, size, "the number of features")
    return torch.tensor_split(torch.arange(size), clients)


@dataclass(frozen=True, eq=False)
class Composite:
    r"""The form of the losses: `outer(w_0, (inner(w_1, x_1), ..., inner(w_I, x_I)), labels)`.

    Parameters
    ----------
    features : which features each client has, I parts.
    parameters : which parameters belong to whom, 1 + I parts: w_0, then w_1, ..., w_I.
    inner : `(w_i [d_i], x_i [B, K_i]) -> h_i [B, J]`, what a client tells the others.
    outer : `(w_0 [d_0], (h_1, ..., h_I), labels) -> [B, K]`, every sample's losses.
    outer_pullback : `(w_0, (h_1, ...), labels, weights [K]) -> ([d_0], (e_1, ..., e_I))`, the
        derivatives by w_0 and by each h_i of the samples' sum of `weights @ losses`, in closed
        form; without it autograd is used.
    inner_pullback : `(w_i, x_i, e_i [B, J]) -> [d_i]`, the derivative by w_i of `(e_i * h_i).sum()`
        in closed form, if there is `outer_pullback`.
    labels_at : the clients who hold the labels; None for all.

    Raises
    ------
    ValueError
        if parameters and features are not divided among the same clients, or a client lacks labels.
    """

    features: Partition
    parameters: Partition
    inner: Callable[[Tensor, Tensor], Tensor]
    outer: Callable[[Tensor, Pieces, Pieces], Tensor]
    outer_pullback: Callable[[Tensor, Pieces, Pieces, Tensor], tuple[Tensor, Pieces]] | None = None
    inner_pullback: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None
    labels_at: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Check that the parts fit together."""
        if len(self.parameters.parts) != 1 + self.clients:
            wanted = f"be in {1 + self.clients} parts, the common one and one a client"
            got = len(self.parameters.parts)
            raise ValueError(checks.sentence("Composite", "parameters", wanted, got))
        if self.labels_at is not None and set(self.labels_at) != set(self.numbers):
            lacking = sorted(set(self.numbers) - set(self.labels_at))
            raise ValueError(
                f"Composite: labels_at must name all clients 1..{self.clients}, each of whom forms "
                f"the derivative of the loss, got {self.labels_at}; give the labels to {lacking}."
            )
        if (self.outer_pullback is None) != (self.inner_pullback is None):
            raise ValueError(
                "Composite: outer_pullback and inner_pullback must be given together, got one."
            )

    @property
    def clients(self) -> int:
        """I."""
        return len(self.features.parts)

    @property
    def numbers(self) -> range:
        """The clients' numbers, 1 .. I."""
        return range(1, self.clients + 1)

    def losses(self, w: Float[Tensor, "d"], x: Shaped[Tensor, "B f"], labels: Pieces) -> Tensor:
        """Every sample's losses `[B, K]`, with all features in one place."""
        w_0, *own = self.parameters.split(w)
        blocks = self.features.split(x)
        return self.outer(w_0, tuple(map(self.inner, own, blocks)), labels)


@dataclass(frozen=True)
class Party:
    """All that one client can reach in a round: its block of the batch, and the batch's labels."""

    number: int
    features: Shaped[Tensor, "B k"]
    labels: Pieces
    form: Composite

    def embedding(self, w_i: Float[Tensor, "e"]) -> Float[Tensor, "B J"]:
        """What it tells the other clients: h_i of every sample."""
        return self.form.inner(w_i, self.features)

    def gradients(
        self, w_0: Tensor, w_i: Tensor, heard: Pieces, weights: Float[Tensor, "k K"]
    ) -> Float[Tensor, "k e"]:
        """The derivatives by its own w_i of `weights @ losses`, summed over the batch.

        `heard` are the embeddings of all clients, its own among them.
        """
        form, own = self.form, self.number - 1
        if form.outer_pullback is None or form.inner_pullback is None:

            def combined(u: Tensor) -> Tensor:
                mine = form.inner(u, self.features)
                all_of_them = (*heard[:own], mine, *heard[own + 1 :])
                return weights @ form.outer(w_0, all_of_them, self.labels).sum(0)

            derivative: Tensor = jacrev(combined)(w_i)
            return derivative
        errors = [form.outer_pullback(w_0, heard, self.labels, row)[1][own] for row in weights]
        return torch.stack([form.inner_pullback(w_i, self.features, e) for e in errors])

    def head_gradients(
        self, w_0: Tensor, heard: Pieces, weights: Float[Tensor, "k K"]
    ) -> Float[Tensor, "k e"]:
        """The derivatives by the common w_0 of `weights @ losses`, summed over the batch."""
        form, labels = self.form, self.labels
        if form.outer_pullback is None:
            derivative: Tensor = jacrev(lambda u: weights @ form.outer(u, heard, labels).sum(0))(
                w_0
            )
            return derivative
        return torch.stack([form.outer_pullback(w_0, heard, labels, row)[0] for row in weights])

    def values(self, w_0: Tensor, heard: Pieces) -> Float[Tensor, "K"]:
        """The losses, summed over the batch."""
        return self.form.outer(w_0, heard, self.labels).sum(0)


@dataclass(frozen=True)
class VerticalProblem(Problem):
    """A problem whose losses have composite form: `data[0]` holds the features, the rest labels.

    `rows [1, R]` is the one pool of samples that all clients have (their own features of), so as an
    ordinary problem it is the centralized one; the clients are those of `composite`.
    """

    composite: Composite = field(kw_only=True)

    def party(self, number: int, samples: Int[Tensor, "B"]) -> Party:
        """Client `number`, with what it holds of some samples of the pool."""
        rows = self.rows[0][samples]
        features = self.composite.features.cut(self.data[0][rows], number - 1)
        return Party(number, features, tuple(x[rows] for x in self.data[1:]), self.composite)

    def to(self, device: torch.device | str) -> VerticalProblem:
        """The same problem with all its tensors on `device`."""
        form = self.composite
        moved = replace(
            form, features=form.features.to(device), parameters=form.parameters.to(device)
        )
        return replace(self, **super().to(device).tensors(), composite=moved)


def vertical(problem: Problem, composite: Composite) -> VerticalProblem:
    """The problem with its samples pooled and its features divided among clients.

    Parameters
    ----------
    problem : with the features of all samples in `data[0]`, `[R, f]`. Its losses, its metrics and
        its start remain; how its samples were divided does not matter any more.
    composite : the form of its losses.

    Raises
    ------
    ValueError
        if the composite is not for so many features or parameters, or gives other losses than the
        problem on its first samples.
    """
    whole = problem.data[0]
    for name, part, size in (
        ("features", composite.features, tuple(whole.shape[1:])),
        ("parameters", composite.parameters, (problem.dim,)),
    ):
        if size != (part.size,):
            raise ValueError(
                f"vertical: {name} must be divided as {problem.name} has them, shape {list(size)}, "
                f"got a partition of {part.size}."
            )
    few = problem.rows[0, :2]
    x, *labels = (z[few] for z in problem.data)
    batch = Batch((x, *labels), problem.w0.new_full((len(few),), 1 / len(few)))
    direct = problem.losses(problem.w0, batch)
    composed = composite.losses(problem.w0, x, tuple(labels)).mean(0)
    if direct.shape != composed.shape or not torch.allclose(direct, composed, rtol=1e-4):
        raise ValueError(
            f"vertical: composite must give the losses of {problem.name}, {direct.tolist()} on its "
            f"first samples, got {composed.tolist()}."
        )
    pool = torch.cat([own[:size] for own, size in zip(problem.rows, problem.sizes, strict=True)])
    same = {f.name: getattr(problem, f.name) for f in fields(Problem)}
    changed = {
        "rows": pool.unsqueeze(0),
        "sizes": (len(pool),),
        "lengths": (),
        "config": {
            **problem.config,
            "clients": composite.clients,
            "blocks": [_span(block) for block in composite.features.parts],
        },
    }
    return VerticalProblem(**{**same, **changed}, composite=composite)


def _span(block: Int[Tensor, "k"]) -> list[int] | str:
    """First and last feature of a block of neighbours, or all of them."""
    numbers: list[int] = block.tolist()
    ends = [numbers[0], numbers[-1]] if numbers else []
    together = ends and numbers == list(range(ends[0], ends[1] + 1))
    return f"{ends[0]}-{ends[1]}" if together else numbers


class Message(NamedTuple):
    """One message that crossed the line."""

    sender: str
    receiver: str
    what: str
    floats: int
    indices: int = 0


class Line:
    """Everything that is sent in one round, by whom to whom.

    Bits are counted at 32 a number: those from and to the server by the federation, those from
    client to client in `bits_between`.

    Parameters
    ----------
    fed : the round's federation; its problem is a `VerticalProblem`.
    log : a list that is to receive every message as a `Message`, in order; None for none.
    """

    def __init__(self, fed: Federation, log: list[Message] | None = None) -> None:
        self.fed, self.log, self.bits_between = fed, log, 0
        self.problem = check_vertical("Line", fed.problem)

    def to_client(self, client: int, what: str, *parts: Tensor) -> Pieces:
        """From the server to one client."""
        self.fed.bits_down += self._sent(SERVER, name(client), what, parts)
        return parts

    def to_server(self, client: int, what: str, *parts: Tensor) -> Pieces:
        """From one client to the server."""
        self.fed.bits_up += self._sent(name(client), SERVER, what, parts)
        return parts

    def to_others(self, client: int, what: str, *parts: Tensor) -> Pieces:
        """From one client to every other client."""
        for other in self.problem.composite.numbers:
            if other != client:
                self.bits_between += self._sent(name(client), name(other), what, parts)
        return parts

    def info(self, **metrics: Tensor) -> Info:
        """What the round reports: `metrics`, and the bits that crossed the line in it."""
        report = self.fed.info(**metrics)
        return {**report, "bits_between": torch.zeros_like(report["bits_up"]) + self.bits_between}

    def _sent(self, sender: str, receiver: str, what: str, parts: Pieces) -> int:
        floats = sum(x.numel() for x in parts if x.is_floating_point())
        indices = sum(x.numel() for x in parts) - floats
        if self.log is not None:
            self.log.append(Message(sender, receiver, what, floats, indices))
        return FLOAT_BITS * floats + INDEX_BITS * indices


def name(client: int) -> str:
    """A client, as a message names it."""
    return f"client {client}"


def check_vertical(who: str, problem: Problem) -> VerticalProblem:
    """The problem itself; raises TypeError unless its features are divided among clients."""
    if not isinstance(problem, VerticalProblem):
        raise TypeError(
            f"{who}: the problem must be a VerticalProblem, {problem.name} is none; "
            "make it one with fedlib.vertical.vertical(problem, composite)."
        )
    return problem
