r"""The network of `swish_network` with its inputs divided among clients (Ye, Cui, section V).

Client i has the columns of $\omega_1$ that multiply its inputs, and tells the others its partial
pre-activations $\sum_{k \in \mathcal K_i} \omega_{1,j,k} x_{n,k}$; $\omega_2$ is common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, Positive
from fedlib.core.problem import Problem
from fedlib.problems.classification import ACTIVATIONS, row_losses
from fedlib.vertical.composite import Composite, Partition, contiguous
from fedlib.vertical.line import VerticalProblem, vertical


def vertical_network(
    network: Problem,
    *,
    clients: Count = 10,
    scale: Positive = 255.0,
    blocks: Sequence[Int[Tensor, "_"]] | None = None,
) -> VerticalProblem:
    """A `swish_network` with features split over clients: the same start, losses and metrics.

    Parameters
    ----------
    network : made by `swish_network`; how it split the samples does not matter, nor do its clients.
    clients : I, with blocks of neighbouring inputs: 784 in 10 give 4 of 79 and 6 of 78.
    scale : as in `swish_network`.
    blocks : each client's inputs, in place of those; the same for all seeds of a run.

    Raises
    ------
    ValueError, TypeError
        for blocks that overlap or leave an input out, another problem than a `swish_network`, or
        another scale than its own.
    """
    checks.arguments(vertical_network, locals())
    if network.name != "swish_network":
        wanted = "be made by swish_network"
        raise TypeError(checks.sentence("vertical_network", "network", wanted, network.name))
    K, J = network.data[0].shape[1], int(network.config["hidden"])
    parts = contiguous(K, clients) if blocks is None else tuple(blocks)
    features = Partition("features", parts, K)
    columns = [(K * torch.arange(J).unsqueeze(1) + block).flatten() for block in parts]
    second = torch.arange(J * K, network.dim)
    halves = _Halves(J, network.dim // J - K, scale)
    form = Composite(
        features,
        Partition("parameters", (second, *columns), network.dim),
        halves.inner,
        halves.outer,
        halves.outer_pullback,
        halves.inner_pullback,
    )
    return vertical(network, form)


@dataclass(frozen=True)
class _Halves:
    """What a client tells and what is made of it, in a network of J hidden cells and L outputs."""

    J: int
    L: int
    scale: float

    def inner(self, w: Tensor, x: Tensor) -> Tensor:
        return x.to(w.dtype) @ (w.view(self.J, -1) / self.scale).T  # [B, J]

    def outer(self, w: Tensor, h: tuple[Tensor, ...], labels: tuple[Tensor, ...]) -> Tensor:
        out = torch.nn.functional.silu(total(h)) @ w.view(self.L, self.J).T  # [B, L]
        return row_losses(out, labels[0]).unsqueeze(1)

    def outer_pullback(
        self, w: Tensor, h: tuple[Tensor, ...], labels: tuple[Tensor, ...], weights: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        act, slope = ACTIVATIONS["swish"]
        W, z = w.view(self.L, self.J), total(h)
        cells = act(z)
        hit = labels[0].unsqueeze(-1) == torch.arange(self.L, device=w.device)
        error = (torch.softmax(cells @ W.T, -1) - hit.to(w.dtype)) * weights[0]  # [B, L]
        return (error.T @ cells).flatten(), ((error @ W) * slope(z),) * len(h)

    def inner_pullback(self, w: Tensor, x: Tensor, error: Tensor) -> Tensor:
        return ((error / self.scale).T @ x.to(w.dtype)).flatten()


def total(h: tuple[Float[Tensor, "*b"], ...]) -> Float[Tensor, "*b"]:
    """The sum of what all clients told."""
    return sum(h[1:], h[0])
