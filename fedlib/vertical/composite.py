"""The form of losses whose features are divided among clients, and what one client computes."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.func import jacrev

from fedlib import checks
from fedlib.shapes import PerLoss, Vector
from fedlib.vertical.partition import Partition

Pieces = tuple[Tensor, ...]
#: The parameters of one client, and the common ones.
Block = Float[Tensor, "e"]
Common = Float[Tensor, "d_0"]
Inner = Callable[[Block, Shaped[Tensor, "B k"]], Float[Tensor, "B J"]]
Outer = Callable[[Common, Pieces, Pieces], Float[Tensor, "B K"]]
OuterPullback = Callable[[Common, Pieces, Pieces, PerLoss], tuple[Common, Pieces]]
InnerPullback = Callable[[Block, Shaped[Tensor, "B k"], Float[Tensor, "B J"]], Block]


@dataclass(frozen=True, eq=False)
class Composite(checks.Checked):
    r"""The form of the losses, `outer(w_0, (inner(w_1, x_1), ..., inner(w_I, x_I)), labels)`.

    Parameters
    ----------
    features : Partition
        The partition of the features among the clients, I parts.
    parameters : Partition
        The partition of the parameters, 1 + I parts: w_0, then w_1, ..., w_I.
    inner : Callable
        `(w_i [d_i], x_i [B, K_i]) -> h_i [B, J]`, what a client sends to the others.
    outer : Callable
        `(w_0 [d_0], (h_1, ..., h_I), labels) -> [B, K]`, the losses of every sample.
    outer_pullback : Callable or None
        `(w_0, (h_1, ...), labels, weights [K]) -> ([d_0], (e_1, ..., e_I))`, the derivatives of
        `weights @ losses`, summed over samples, by w_0 and by each h_i in closed form; without it
        autograd is used.
    inner_pullback : Callable or None
        `(w_i, x_i, e_i [B, J]) -> [d_i]`, the derivative of `(e_i * h_i).sum()` by w_i in closed
        form; it requires `outer_pullback`.

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
        count = len(self.parameters.parts)
        required = 1 + self.clients
        rule = f"be in {required} parts, one a client"
        checks.require(count == required, "Composite", "parameters", rule, count)

    @property
    def clients(self) -> int:
        """The number of clients, I."""
        return len(self.features.parts)

    @property
    def numbers(self) -> range:
        """The clients' numbers, 1 .. I."""
        return range(1, self.clients + 1)

    def losses(
        self,
        w: Vector,
        x: Shaped[Tensor, "B f"],
        labels: Pieces,
    ) -> Float[Tensor, "B K"]:
        """The losses of every sample `[B, K]`, from all features in one place."""
        w_0, *blocks = self.parameters.split(w)
        embeddings = []
        for w_i, x_i in zip(blocks, self.features.split(x), strict=True):
            embedding = self.inner(w_i, x_i)
            embeddings.append(embedding)
        return self.outer(w_0, tuple(embeddings), labels)


@dataclass(frozen=True)
class Party:
    """What one client can use in a round: its block of the batch, and the batch's labels."""

    number: int
    features: Shaped[Tensor, "B k"]
    labels: Pieces
    form: Composite

    @property
    def place(self) -> int:
        """The client's place among the embeddings, from 0."""
        return self.number - 1

    def embedding(self, w_i: Block) -> Float[Tensor, "B J"]:
        """The client's message to the other clients: h_i of every sample."""
        return self.form.inner(w_i, self.features)

    def gradients(
        self,
        w_0: Common,
        w_i: Block,
        embeddings: Pieces,
        weights: Float[Tensor, "k K"],
    ) -> Float[Tensor, "k e"]:
        """The derivatives of `weights @ losses` by the client's own w_i, summed over the batch.

        `embeddings` are those of all clients, including its own.
        """
        outer_pullback = self.form.outer_pullback
        inner_pullback = self.form.inner_pullback

        def weighted_losses(u: Block) -> Float[Tensor, "k"]:
            replaced = list(embeddings)
            replaced[self.place] = self.embedding(u)
            return weights @ self.values(w_0, tuple(replaced))

        if outer_pullback is None or inner_pullback is None:
            derivative: Tensor = jacrev(weighted_losses)(w_i)
            return derivative
        gradients = []
        for k in range(len(weights)):
            _, errors = outer_pullback(w_0, embeddings, self.labels, weights[k])
            gradients.append(inner_pullback(w_i, self.features, errors[self.place]))
        return torch.stack(gradients)

    def head_gradients(
        self,
        w_0: Common,
        embeddings: Pieces,
        weights: Float[Tensor, "k K"],
    ) -> Float[Tensor, "k d_0"]:
        """The derivatives of `weights @ losses` by the common w_0, summed over the batch."""
        pullback = self.form.outer_pullback
        if pullback is None:
            derivative: Tensor = jacrev(lambda u: weights @ self.values(u, embeddings))(w_0)
            return derivative
        gradients = []
        for row in weights:
            gradient, _ = pullback(w_0, embeddings, self.labels, row)
            gradients.append(gradient)
        return torch.stack(gradients)

    def values(self, w_0: Common, embeddings: Pieces) -> PerLoss:
        """The losses, summed over the batch."""
        return self.form.outer(w_0, embeddings, self.labels).sum(0)
