r"""Vertical federation: each client holds some features of every sample.

$f(w; x) = g(w_0, (h_i(w_i, x_i))_i)$ is equation (2) of Ye and Cui (arXiv 2104.06011). Client i has
the block $x_i$ of every sample and its own parameters $w_i$; the parameters $w_0$ are common.
`Composite` defines this form, and `Partition` who has what. A `Party` holds what one client can use
in a round. `vertical` adds the form to a problem. Every message of a round crosses a `Line`, which
counts its bits. Clients are numbered 1 .. I, as in the paper's tables.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import cast

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.func import jacrev

from fedlib import checks
from fedlib.checks import Count, Whole
from fedlib.compress.compressors import FLOAT_BITS
from fedlib.core.federation import SERVER, Federation, Sent, count_numbers
from fedlib.core.problem import Batch, Info, Problem

Own = Float[Tensor, "e"]

__all__ = ["Composite", "Partition", "Party", "VerticalProblem", "contiguous", "vertical"]

INDEX_BITS = 32  # bits of a sample's number on the wire
Pieces = tuple[Tensor, ...]
Inner = Callable[[Own, Shaped[Tensor, "B k"]], Float[Tensor, "B J"]]
Outer = Callable[[Own, Pieces, Pieces], Float[Tensor, "B K"]]
OuterPullback = Callable[[Own, Pieces, Pieces, Float[Tensor, "K"]], tuple[Own, Pieces]]
InnerPullback = Callable[[Own, Shaped[Tensor, "B k"], Float[Tensor, "B J"]], Own]


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition of the numbers 0 .. size - 1 into disjoint parts.

    >>> halves = Partition("features", (torch.tensor([0, 2]), torch.tensor([1, 3])), 4)
    >>> halves.split(torch.tensor([5, 6, 7, 8]))
    (tensor([5, 7]), tensor([6, 8]))

    Raises ValueError for a number that is in no part, in two of them, or outside 0 .. size - 1.
    """

    name: str  # names the parts in error messages, such as "features"
    parts: tuple[Int[Tensor, "_"], ...]
    size: Whole
    order: Int[Tensor, "size"] = field(init=False, repr=False)  # places in the joined parts
    ranges: tuple[slice | None, ...] = field(init=False, repr=False)  # parts that are consecutive

    def __post_init__(self) -> None:
        checks.fields(self)
        numbers = torch.cat(self.parts) if self.parts else torch.zeros(0, dtype=torch.int64)
        times, size = Counter(numbers.tolist()), self.size
        wrong = {i: times[i] for i in {*times, *range(size)} if times[i] != (0 <= i < size)}
        rule = f"have each of 0..{size - 1} in one block"
        checks.require(not wrong, "vertical", self.name, rule, wrong, "shown: number of blocks")
        object.__setattr__(self, "order", numbers.argsort())
        object.__setattr__(self, "ranges", tuple(map(consecutive, self.parts)))

    def cut(self, x: Shaped[Tensor, "*b size"], part: int) -> Shaped[Tensor, "*b k"]:
        """Select the entries of one part."""
        return x[..., self.ranges[part] or self.parts[part]]

    def split(self, x: Shaped[Tensor, "*b size"]) -> Pieces:
        """Split a vector into all parts."""
        return tuple(self.cut(x, part) for part in range(len(self.parts)))

    def join(self, pieces: Sequence[Shaped[Tensor, "*b _"]]) -> Shaped[Tensor, "*b size"]:
        """Join the parts to a vector."""
        return torch.cat(list(pieces), -1).index_select(-1, self.order)

    def to(self, device: torch.device | str) -> "Partition":
        """The same partition with its tensors on `device`."""
        moved = copy(self)  # a copy needs no new check
        object.__setattr__(moved, "parts", tuple(part.to(device) for part in self.parts))
        object.__setattr__(moved, "order", self.order.to(device))
        return moved


def consecutive(part: Int[Tensor, "k"]) -> slice | None:
    """The numbers a, a + 1, ..., b - 1 as `slice(a, b)`; None if they are not consecutive."""
    first = int(part[0]) if len(part) else 0
    last = first + len(part)
    return slice(first, last) if torch.equal(part, torch.arange(first, last)) else None


def contiguous(size: Count, clients: Count) -> tuple[Int[Tensor, "_"], ...]:
    """Divide 0 .. size - 1 into consecutive blocks; the first ones may be longer by one.

    >>> [len(block) for block in contiguous(10, 4)]
    [3, 3, 2, 2]

    Raises ValueError if there are more clients than numbers.
    """
    checks.arguments(contiguous, locals())
    checks.count("contiguous", "clients", clients, 1, size, "the number of features")
    return torch.tensor_split(torch.arange(size), clients)


@dataclass(frozen=True, eq=False)
class Composite(checks.Checked):
    r"""The form of the losses, `outer(w_0, (inner(w_1, x_1), ..., inner(w_I, x_I)), labels)`.

    Parameters
    ----------
    features : the partition of the features among the clients, I parts.
    parameters : the partition of the parameters, 1 + I parts: w_0, then w_1, ..., w_I.
    inner : `(w_i [d_i], x_i [B, K_i]) -> h_i [B, J]`, what a client sends to the others.
    outer : `(w_0 [d_0], (h_1, ..., h_I), labels) -> [B, K]`, the losses of every sample.
    outer_pullback : `(w_0, (h_1, ...), labels, weights [K]) -> ([d_0], (e_1, ..., e_I))`, the
        derivatives of `weights @ losses`, summed over samples, by w_0 and by each h_i in closed
        form; without it autograd is used.
    inner_pullback : `(w_i, x_i, e_i [B, J]) -> [d_i]`, the derivative of `(e_i * h_i).sum()` by w_i
        in closed form; it requires `outer_pullback`.

    All clients hold the labels, because each of them computes the derivative of the loss. Raises
    ValueError if parameters and features are not divided among the same clients.
    """

    features: Partition
    parameters: Partition
    inner: Inner
    outer: Outer
    outer_pullback: OuterPullback | None = None
    inner_pullback: InnerPullback | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        parts, rule = len(self.parameters.parts), f"be in {1 + self.clients} parts, one a client"
        checks.require(parts == 1 + self.clients, "Composite", "parameters", rule, parts)

    @property
    def clients(self) -> int:
        """The number of clients, I."""
        return len(self.features.parts)

    @property
    def numbers(self) -> range:
        """The clients' numbers, 1 .. I."""
        return range(1, self.clients + 1)

    def losses(
        self, w: Float[Tensor, "d"], x: Shaped[Tensor, "B f"], labels: Pieces
    ) -> Float[Tensor, "B K"]:
        """The losses of every sample `[B, K]`, from all features in one place."""
        w_0, *own = self.parameters.split(w)
        return self.outer(w_0, tuple(map(self.inner, own, self.features.split(x))), labels)


@dataclass(frozen=True)
class Party:
    """What one client can use in a round: its block of the batch, and the batch's labels."""

    number: int
    features: Shaped[Tensor, "B k"]
    labels: Pieces
    form: Composite

    def embedding(self, w_i: Own) -> Float[Tensor, "B J"]:
        """The client's message to the other clients: h_i of every sample."""
        return self.form.inner(w_i, self.features)

    def gradients(
        self, w_0: Float[Tensor, "d_0"], w_i: Own, heard: Pieces, weights: Float[Tensor, "k K"]
    ) -> Float[Tensor, "k e"]:
        """The derivatives of `weights @ losses` by the client's own w_i, summed over the batch.

        `heard` holds the embeddings of all clients, including its own.
        """
        form, own = self.form, self.number - 1
        if form.outer_pullback is None or form.inner_pullback is None:

            def combined(u: Tensor) -> Tensor:
                all_of_them = (*heard[:own], form.inner(u, self.features), *heard[own + 1 :])
                return weights @ self.values(w_0, all_of_them)

            derivative: Tensor = jacrev(combined)(w_i)
            return derivative
        rows = (weights[k] for k in range(len(weights)))  # shared work of clients is done once
        errors = [form.outer_pullback(w_0, heard, self.labels, row)[1][own] for row in rows]
        return torch.stack([form.inner_pullback(w_i, self.features, e) for e in errors])

    def head_gradients(
        self, w_0: Own, heard: Pieces, weights: Float[Tensor, "k K"]
    ) -> Float[Tensor, "k e"]:
        """The derivatives of `weights @ losses` by the common w_0, summed over the batch."""
        pullback = self.form.outer_pullback
        if pullback is None:
            derivative: Tensor = jacrev(lambda u: weights @ self.values(u, heard))(w_0)
            return derivative
        return torch.stack([pullback(w_0, heard, self.labels, row)[0] for row in weights])

    def values(self, w_0: Own, heard: Pieces) -> Float[Tensor, "K"]:
        """The losses, summed over the batch."""
        return self.form.outer(w_0, heard, self.labels).sum(0)


@dataclass(frozen=True)
class VerticalProblem(Problem):
    """What `vertical` returns: `data[0]` holds the features, the rest of `data` the labels.

    `rows [1, R]` is the one pool of samples, which all clients share. As an ordinary problem it is
    therefore centralized; `composite` defines the clients, who hold features.
    """

    composite: Composite = field(kw_only=True)

    def party(self, number: int, samples: Int[Tensor, "B"]) -> Party:
        """Client `number` with its features and the labels of some samples of the pool."""
        rows = self.rows[0][samples]
        features = self.composite.features.cut(self.data[0][rows], number - 1)
        return Party(number, features, tuple(x[rows] for x in self.data[1:]), self.composite)

    def to(self, device: torch.device | str) -> "VerticalProblem":
        """The same problem with all its tensors on `device`."""
        form = self.composite
        moved = replace(
            form, features=form.features.to(device), parameters=form.parameters.to(device)
        )
        return replace(self, **super().to(device).tensors(), composite=moved)


def vertical(problem: Problem, composite: Composite) -> VerticalProblem:
    """Pool a problem's samples and divide its features among clients.

    Parameters
    ----------
    problem : a problem with the features of all samples in `data[0]`, `[R, f]`. The result has the
        same losses, metrics and start; the former split of the samples is ignored.
    composite : the form of the losses.

    Raises ValueError if the composite does not fit the numbers of features and parameters, or if
    its losses differ from the problem's on the first samples.
    """
    checks.arguments(vertical, locals())
    sizes = {"features": problem.data[0].shape[1:], "parameters": problem.w0.shape}
    for name, size in sizes.items():
        got, rule = [getattr(composite, name).size], f"be divided as {problem.name} has them"
        checks.require([*size] == got, "vertical", name, f"{rule}, shape {[*size]}", got)
    x, *labels = (z[problem.own_rows(0)[:2]] for z in problem.data)
    batch = Batch((x, *labels), problem.w0.new_full((len(x),), 1 / len(x)))
    direct = problem.losses(problem.w0, batch)
    composed = composite.losses(problem.w0, x, tuple(labels)).mean(0)
    same = direct.shape == composed.shape and torch.allclose(direct, composed, rtol=1e-4)
    rule = f"give the losses of {problem.name}, {direct.tolist()} on its first samples"
    checks.require(same, "vertical", "composite", rule, composed.tolist())
    pool = torch.cat([problem.own_rows(j) for j in range(problem.num_clients)])
    blocks = [_span(block) for block in composite.features.parts]
    changed = {
        "rows": pool.unsqueeze(0),
        "sizes": (len(pool),),
        "lengths": (),
        "config": {**problem.config, "clients": composite.clients, "blocks": blocks},
    }
    fields_of = {f.name: getattr(problem, f.name) for f in fields(Problem)}
    return VerticalProblem(**{**fields_of, **changed}, composite=composite)


def _span(block: Int[Tensor, "k"]) -> list[int] | str:
    """A block as a text `"0-21"` if it is consecutive, else the list of its features."""
    numbers: list[int] = block.tolist()
    return f"{numbers[0]}-{numbers[-1]}" if numbers and consecutive(block) else numbers


class Line:
    """The messages of one round between the server and the clients, and their bits.

    A number counts 32 bits. `fed`, the round's federation with a `VerticalProblem`, counts messages
    from and to the server; `bits_between` counts those from client to client. The federation's log
    receives every message.
    """

    def __init__(self, fed: Federation) -> None:
        self.fed, self.bits_between = fed, 0
        self.problem = check_vertical("Line", fed.problem)

    def to_client(self, client: int, what: str, *parts: Shaped[Tensor, "..."]) -> Pieces:
        """Send from the server to one client."""
        self.fed.bits_down += self._sent(SERVER, f"client {client}", what, parts)
        return parts

    def to_server(self, client: int, what: str, *parts: Shaped[Tensor, "..."]) -> Pieces:
        """Send from one client to the server."""
        self.fed.bits_up += self._sent(f"client {client}", SERVER, what, parts)
        return parts

    def to_others(self, client: int, what: str, *parts: Shaped[Tensor, "..."]) -> Pieces:
        """Send from one client to every other client."""
        for other in self.problem.composite.numbers:
            if other != client:
                self.bits_between += self._sent(f"client {client}", f"client {other}", what, parts)
        return parts

    def info(self, **metrics: Shaped[Tensor, "..."]) -> Info:
        """The round's report: `metrics`, and the bits that were sent in the round."""
        report = self.fed.info(**metrics)
        return {**report, "bits_between": torch.zeros_like(report["bits_up"]) + self.bits_between}

    def _sent(self, sender: str, receiver: str, what: str, parts: Pieces) -> int:
        floats, indices = count_numbers(parts)
        bits = FLOAT_BITS * floats + INDEX_BITS * indices
        if self.fed.log is not None:
            self.fed.log.append(Sent(sender, receiver, what, floats, indices, bits))
        return bits


def check_vertical(who: str, problem: Problem) -> VerticalProblem:
    """Return the problem; raise TypeError unless its features are divided among clients."""
    checks.value(who, "problem", problem, VerticalProblem)
    return cast("VerticalProblem", problem)
