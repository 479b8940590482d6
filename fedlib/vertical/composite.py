r"""Losses of composite form, whose features and parameters are divided among clients.

$f(w; x) = g(w_0, (h_i(w_i, x_i))_i)$, equation (2) of Ye and Cui (arXiv 2104.06011): client i has
the block $x_i$ of every sample and the parameters $w_i$ that belong to it, and $w_0$ is common.
`Composite` states that form, `Partition` who has what, `Party` is what one client can reach in a
round. `fedlib.vertical.line` gives the form to a problem and carries the messages.

Clients are numbered 1 .. I, as in the paper's tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.func import jacrev

from fedlib import checks
from fedlib.checks import Count, Whole

Pieces = tuple[Tensor, ...]
Inner = Callable[[Float[Tensor, "e"], Shaped[Tensor, "B k"]], Float[Tensor, "B J"]]
Outer = Callable[[Float[Tensor, "e"], Pieces, Pieces], Float[Tensor, "B K"]]
OuterPullback = Callable[
    [Float[Tensor, "e"], Pieces, Pieces, Float[Tensor, "K"]], tuple[Float[Tensor, "e"], Pieces]
]
InnerPullback = Callable[
    [Float[Tensor, "e"], Shaped[Tensor, "B k"], Float[Tensor, "B J"]], Float[Tensor, "e"]
]


@dataclass(frozen=True, eq=False)
class Partition:
    """The numbers 0 .. size - 1 in disjoint parts that leave none out.

    >>> halves = Partition("features", (torch.tensor([0, 2]), torch.tensor([1, 3])), 4)
    >>> halves.split(torch.tensor([5, 6, 7, 8]))
    (tensor([5, 7]), tensor([6, 8]))

    Raises
    ------
    ValueError
        for a number that is in no part, in two of them, or outside 0 .. size - 1.
    """

    name: str  # of what is divided, for errors
    parts: tuple[Int[Tensor, "_"], ...]
    size: Whole
    order: Int[Tensor, "size"] = field(init=False, repr=False)  # where each number lies in the cat
    ranges: tuple[slice | None, ...] = field(init=False, repr=False)  # of consecutive numbers

    def __post_init__(self) -> None:
        checks.fields(self)
        numbers = torch.cat(self.parts) if self.parts else torch.zeros(0, dtype=torch.int64)
        times = Counter(numbers.tolist())
        wrong = {
            i: times[i] for i in {*times, *range(self.size)} if times[i] != (0 <= i < self.size)
        }
        rule = f"have each of 0..{self.size - 1} in one block"
        checks.require(not wrong, "vertical", self.name, rule, wrong, "of these so many")
        object.__setattr__(self, "order", numbers.argsort())
        object.__setattr__(self, "ranges", tuple(map(consecutive, self.parts)))

    def cut(self, x: Shaped[Tensor, "*b size"], part: int) -> Shaped[Tensor, "*b k"]:
        """The entries of one part."""
        return x[..., self.ranges[part] or self.parts[part]]

    def split(self, x: Shaped[Tensor, "*b size"]) -> Pieces:
        """All parts."""
        return tuple(self.cut(x, part) for part in range(len(self.parts)))

    def join(self, pieces: Sequence[Shaped[Tensor, "*b _"]]) -> Shaped[Tensor, "*b size"]:
        """The vector from its parts."""
        return torch.cat(list(pieces), -1).index_select(-1, self.order)

    def to(self, device: torch.device | str) -> Partition:
        """The same partition with its tensors on `device`."""
        moved = copy(self)  # checked already
        object.__setattr__(moved, "parts", tuple(part.to(device) for part in self.parts))
        object.__setattr__(moved, "order", self.order.to(device))
        return moved


def consecutive(part: Int[Tensor, "k"]) -> slice | None:
    """The numbers a, a + 1, ..., b - 1 as `slice(a, b)`, others as None."""
    first = int(part[0]) if len(part) else 0
    last = first + len(part)
    return slice(first, last) if torch.equal(part, torch.arange(first, last)) else None


def contiguous(size: Count, clients: Count) -> tuple[Int[Tensor, "_"], ...]:
    """The numbers 0 .. size - 1 in consecutive blocks, the first ones longer by one if need be.

    >>> [len(block) for block in contiguous(10, 4)]
    [3, 3, 2, 2]

    Raises
    ------
    ValueError
        if there are more clients than numbers.
    """
    checks.arguments(contiguous, locals())
    checks.count("contiguous", "clients", clients, 1, size, "the number of features")
    return torch.tensor_split(torch.arange(size), clients)


@dataclass(frozen=True, eq=False)
class Composite:
    r"""The form of the losses: `outer(w_0, (inner(w_1, x_1), ..., inner(w_I, x_I)), labels)`.

    Parameters
    ----------
    features : which features each client has, I parts.
    parameters : which parameters belong to whom, 1 + I parts: w_0, then w_1, ..., w_I.
    inner : `(w_i [d_i], x_i [B, K_i]) -> h_i [B, J]`, what a client sends to the others.
    outer : `(w_0 [d_0], (h_1, ..., h_I), labels) -> [B, K]`, every sample's losses.
    outer_pullback : `(w_0, (h_1, ...), labels, weights [K]) -> ([d_0], (e_1, ..., e_I))`, the
        derivatives by w_0 and by each h_i of the samples' sum of `weights @ losses`, in closed
        form; without it autograd is used.
    inner_pullback : `(w_i, x_i, e_i [B, J]) -> [d_i]`, the derivative by w_i of `(e_i * h_i).sum()`
        in closed form, if there is `outer_pullback`.

    All clients hold the labels: each of them forms the derivative of the loss.

    Raises
    ------
    ValueError
        if parameters and features are not divided among the same clients.
    """

    features: Partition
    parameters: Partition
    inner: Inner
    outer: Outer
    outer_pullback: OuterPullback | None = None
    inner_pullback: InnerPullback | None = None

    def __post_init__(self) -> None:
        checks.fields(self)
        parts, wanted = len(self.parameters.parts), 1 + self.clients
        rule = f"be in {wanted} parts, the common one and one a client"
        checks.require(parts == wanted, "Composite", "parameters", rule, parts)

    @property
    def clients(self) -> int:
        """I."""
        return len(self.features.parts)

    @property
    def numbers(self) -> range:
        """The clients' numbers, 1 .. I."""
        return range(1, self.clients + 1)

    def losses(
        self, w: Float[Tensor, "d"], x: Shaped[Tensor, "B f"], labels: Pieces
    ) -> Float[Tensor, "B K"]:
        """Every sample's losses `[B, K]`, with all features in one place."""
        w_0, *own = self.parameters.split(w)
        return self.outer(w_0, tuple(map(self.inner, own, self.features.split(x))), labels)


@dataclass(frozen=True)
class Party:
    """All that one client can reach in a round: its block of the batch, and the batch's labels."""

    number: int
    features: Shaped[Tensor, "B k"]
    labels: Pieces
    form: Composite

    def embedding(self, w_i: Float[Tensor, "e"]) -> Float[Tensor, "B J"]:
        """What it sends to the other clients: h_i of every sample."""
        return self.form.inner(w_i, self.features)

    def gradients(
        self,
        w_0: Float[Tensor, "d_0"],
        w_i: Float[Tensor, "e"],
        heard: Pieces,
        weights: Float[Tensor, "k K"],
    ) -> Float[Tensor, "k e"]:
        """The derivatives by its own w_i of `weights @ losses`, summed over the batch.

        `heard` are the embeddings of all clients, its own among them.
        """
        form, own = self.form, self.number - 1
        if form.outer_pullback is None or form.inner_pullback is None:

            def combined(u: Tensor) -> Tensor:
                all_of_them = (*heard[:own], form.inner(u, self.features), *heard[own + 1 :])
                return weights @ self.values(w_0, all_of_them)

            derivative: Tensor = jacrev(combined)(w_i)
            return derivative
        rows = (weights[k] for k in range(len(weights)))  # equal work of clients is done once
        errors = [form.outer_pullback(w_0, heard, self.labels, row)[1][own] for row in rows]
        return torch.stack([form.inner_pullback(w_i, self.features, e) for e in errors])

    def head_gradients(
        self, w_0: Float[Tensor, "e"], heard: Pieces, weights: Float[Tensor, "k K"]
    ) -> Float[Tensor, "k e"]:
        """The derivatives by the common w_0 of `weights @ losses`, summed over the batch."""
        pullback = self.form.outer_pullback
        if pullback is None:
            derivative: Tensor = jacrev(lambda u: weights @ self.values(u, heard))(w_0)
            return derivative
        return torch.stack([pullback(w_0, heard, self.labels, row)[0] for row in weights])

    def values(self, w_0: Float[Tensor, "e"], heard: Pieces) -> Float[Tensor, "K"]:
        """The losses, summed over the batch."""
        return self.form.outer(w_0, heard, self.labels).sum(0)
