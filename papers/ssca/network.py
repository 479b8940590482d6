r"""Training a three-layer network without biases: the example of the SSCA paper.

Ye, Cui (arXiv 2104.06011), section V: K inputs, J hidden cells with $S(z) = z / (1 + e^{-z})$,
L outputs and their cross-entropy, equations (25) and (26). `swish_network` divides the samples
among clients, `vertical_network` the inputs: client i has the columns of $\omega_1$ that multiply
its inputs, and sends the others its partial pre-activations
$\sum_{k \in \mathcal K_i} \omega_{1,j,k} x_{n,k}$; $\omega_2$ is common.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import silu

from fedlib import checks
from fedlib.core.problem import Batch, Problem
from fedlib.core.sampling import seeded
from fedlib.data.loaders import Table
from fedlib.problems.classification import row_losses
from fedlib.shapes import Vector
from fedlib.vertical import Composite, Partition, VerticalProblem, contiguous, vertical

CHUNK = 2000  # rows at a time in the metrics


def swish_network(
    train: Table,
    test: Table,
    *,
    clients: int = 10,
    hidden: int = 128,
    seed: int = 0,
    evaluate: int = 10_000,
    scale: float = 255.0,
    dtype: torch.dtype = torch.float32,
    config: Mapping[str, Any] | None = None,
) -> Problem:
    r"""One objective, the mean cross-entropy $F(w)$ of (25); clients of equal size, IID.

    $Q(x) = \mathrm{softmax}(\omega_2 S(\omega_1 x))$ with $\omega_1$ `[J, K]`, $\omega_2$ `[L, J]`,
    $w = (\omega_1, \omega_2)$ row by row, d = JK + LJ. The rows go to the clients after a random
    permutation (MNIST's come from two groups of writers in turn); a rest that cannot be shared
    evenly is left out. Pictures stay what they are, bytes for instance, and are divided by `scale`
    where they are used.

    `metrics`: `cost`, F on some training rows; `accuracy` on the test rows; `norm`, |w|^2.

    Parameters
    ----------
    train, test : `data.mnist("train")` and `data.mnist("test")`, for instance.
    clients : N.
    hidden : J.
    seed : fixes the start, the split and the rows of `cost`.
    evaluate : how many training rows `cost` is computed on, at random; all if there are fewer.
    scale : the pictures' largest value.
    dtype : of the model.
    config : entries to add to the stored configuration, such as the data set's name.

    Reference: (25), (26); the gradient is (33), (34). The paper names neither the start nor the
    split: the start is uniform, $\pm 1/\sqrt K$ and $\pm 1/\sqrt J$.
    """
    X = train.X.flatten(1)
    test_inputs = test.X.flatten(1)
    checks.count(
        "swish_network",
        "clients",
        clients,
        1,
        len(X),
        "the training rows",
    )
    K = X.shape[1]
    L = len(train.classes)
    rng = seeded(seed, "split")
    per_client = len(X) // clients
    rows = torch.randperm(len(X), generator=rng)[: per_client * clients]
    judged = rows[torch.randperm(len(rows), generator=rng)[:evaluate]]
    first_layer = uniform((hidden, K), K, rng)
    second_layer = uniform((L, hidden), hidden, rng)
    start = torch.cat([first_layer, second_layer])
    module = _Network(K, hidden, L, scale)
    full_config = {
        "name": "swish_network",
        "clients": clients,
        "hidden": hidden,
        "evaluate": len(judged),
        "rows": len(rows),
        "split_by": "seed",
        **(config or {}),
    }
    return Problem(
        name="swish_network",
        data=(X, train.y),
        rows=rows.view(clients, per_client),
        sizes=(per_client,) * clients,
        losses=module.losses,
        gradient=module.gradient,
        num_objectives=1,
        num_constraints=0,
        w0=start.to(dtype),
        metrics=module.metrics,
        heldout=(judged, test_inputs, test.y),
        config=full_config,
    )


@dataclass(frozen=True)
class _Network:
    """The functions of a `swish_network` with K inputs, J hidden cells and L outputs."""

    K: int
    J: int
    L: int
    scale: float

    def forward(self, w: Vector, inputs: Tensor) -> tuple[Tensor, ...]:
        """The second layer's matrix, the inputs, the hidden layer z, its sigmoid, the outputs."""
        J = self.J
        K = self.K
        first_layer = w[: J * K].view(J, K)
        second_layer = w[J * K :].view(self.L, J)
        x = inputs.to(w.dtype)
        z = x @ first_layer.T / self.scale  # [B, J], which is smaller than x
        s = torch.sigmoid(z)
        outputs = (z * s) @ second_layer.T  # [B, L]
        return second_layer, x, z, s, outputs

    def losses(self, w: Vector, batch: Batch) -> Float[Tensor, "1"]:
        inputs, target = batch.data
        outputs = self.forward(w, inputs)[-1]
        return (batch.weight @ row_losses(outputs, target)).unsqueeze(0)

    def gradient(self, w: Tensor, batch: Batch, weights: Tensor) -> Tensor:
        inputs, target = batch.data
        second, x, z, s, outputs = self.forward(w, inputs)
        error = output_error(outputs, target)
        error = error * (batch.weight * weights[0]).unsqueeze(-1)  # [B, L]
        slope = s * (1 + z * (1 - s))
        back = (error @ second) * (slope / self.scale)  # [B, J]
        first_layer = back.T @ x
        second_layer = error.T @ (z * s)
        return torch.cat([first_layer.flatten(), second_layer.flatten()])

    def metrics(self, w: Vector, problem: Problem) -> dict[str, Tensor]:
        evaluated, pictures, labels = problem.heldout
        X, y = problem.data
        cost = w.new_zeros(())
        for chunk in torch.split(evaluated, CHUNK):
            outputs = self.forward(w, X[chunk])[-1]
            cost = cost + row_losses(outputs, y[chunk]).sum()
        right = w.new_zeros(())
        chunks = zip(torch.split(pictures, CHUNK), torch.split(labels, CHUNK), strict=True)
        for inputs, target in chunks:
            outputs = self.forward(w, inputs)[-1]
            hits = outputs.argmax(-1) == target
            right = right + hits.to(w.dtype).sum()
        return {"cost": cost / len(evaluated), "accuracy": right / len(labels), "norm": w @ w}


def output_error(outputs: Float[Tensor, "B L"], target: Tensor) -> Float[Tensor, "B L"]:
    """The derivative of the cross-entropy of every row by its outputs."""
    hit = target.unsqueeze(-1) == torch.arange(outputs.shape[-1], device=outputs.device)
    return torch.softmax(outputs, -1) - hit.to(outputs.dtype)


def uniform(shape: tuple[int, int], fan_in: int, rng: torch.Generator) -> Float[Tensor, "n"]:
    r"""Entries of a layer, flat, uniform within $\pm 1/\sqrt{\text{fan-in}}$."""
    unit = torch.rand(shape, generator=rng, dtype=torch.float64)
    layer: Tensor = (2 * unit - 1) / fan_in**0.5
    return layer.flatten()


def vertical_network(
    network: Problem,
    *,
    clients: int = 10,
    scale: float = 255.0,
) -> VerticalProblem:
    """A `swish_network` with features split over clients: the same start, losses and metrics.

    Parameters
    ----------
    network : made by `swish_network`; how it split the samples does not matter, nor do its clients.
    clients : I, with blocks of neighbouring inputs: 784 in 10 give 4 of 79 and 6 of 78.
    scale : as in `swish_network`.
    """
    K = network.data[0].shape[1]
    J = int(network.config["hidden"])
    L = network.dim // J - K
    blocks = contiguous(K, clients)
    first_of_rows = K * torch.arange(J).unsqueeze(1)
    columns = [(first_of_rows + block).flatten() for block in blocks]
    second_layer = torch.arange(J * K, network.dim)
    features = Partition("features", blocks, K)
    parameters = Partition("parameters", (second_layer, *columns), network.dim)
    halves = _Halves(J, L, scale)
    form = Composite(
        features,
        parameters,
        halves.inner,
        halves.outer,
        halves.outer_pullback,
        halves.inner_pullback,
    )
    return vertical(network, form)


@dataclass(frozen=True)
class _Halves:
    """What a client sends and what is made of it, in a network of J hidden cells and L outputs."""

    J: int
    L: int
    scale: float

    def inner(self, w: Tensor, x: Tensor) -> Tensor:
        columns = w.view(self.J, -1) / self.scale
        return x.to(w.dtype) @ columns.T  # [B, J]

    def outer(
        self,
        w: Tensor,
        h: tuple[Tensor, ...],
        labels: tuple[Tensor, ...],
    ) -> Tensor:
        outputs = silu(total(h)) @ w.view(self.L, self.J).T  # [B, L]
        return row_losses(outputs, labels[0]).unsqueeze(1)

    def outer_pullback(
        self,
        w: Tensor,
        h: tuple[Tensor, ...],
        labels: tuple[Tensor, ...],
        weights: Tensor,
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        W = w.view(self.L, self.J)
        z = total(h)
        cells = silu(z)
        s = torch.sigmoid(z)
        error = output_error(cells @ W.T, labels[0]) * weights[0]  # [B, L]
        slope = s * (1 + z * (1 - s))
        back = (error @ W) * slope
        return (error.T @ cells).flatten(), (back,) * len(h)

    def inner_pullback(self, w: Tensor, x: Tensor, error: Tensor) -> Tensor:
        return ((error / self.scale).T @ x.to(w.dtype)).flatten()


def total(h: tuple[Float[Tensor, "*b"], ...]) -> Float[Tensor, "*b"]:
    """The sum of what all clients sent."""
    return sum(h[1:], h[0])
