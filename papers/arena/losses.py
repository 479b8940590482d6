"""The losses of the arena's problems with their gradients: `[f, g]` of a linear model."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from fedlib.core.problem import Batch
from fedlib.problems.neyman_pearson import logistic_gradient, logistic_losses

RIDGE = 0.03  # f of the two logistic models has RIDGE / 2 |w|^2 in it, for a finite solution
RADIUS = 10.0  # sparse: the l1 norm of the truth, whose entries are +1, -1 and 0


def class_losses(w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "2"]:
    """np: mean logistic loss of class 0 with the ridge, and of class 1."""
    return with_ridge(logistic_losses(w, batch), w)


def class_gradient(w: Tensor, batch: Batch, weights: Float[Tensor, "2"]) -> Float[Tensor, "d"]:
    """Gradient of `weights @ class_losses`."""
    return logistic_gradient(w, batch, weights) + RIDGE * weights[0] * w


def label_losses(w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "2"]:
    """pair: mean logistic losses of the same outputs for two labels, the first with the ridge."""
    X, Y = batch.data
    z = X @ w
    return with_ridge(batch.weight @ (softplus(z).unsqueeze(-1) - z.unsqueeze(-1) * Y), w)


def label_gradient(w: Tensor, batch: Batch, weights: Float[Tensor, "2"]) -> Float[Tensor, "d"]:
    """Gradient of `weights @ label_losses`."""
    X, Y = batch.data
    error = weights.sum() * torch.sigmoid(X @ w) - Y @ weights
    return (batch.weight * error) @ X + RIDGE * weights[0] * w


def square_losses(w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "2"]:
    """sparse: mean of half the squared error, and the l1 norm over the radius."""
    return torch.cat([square_loss(w, batch), w.abs().sum().unsqueeze(0) / RADIUS])


def square_gradient(w: Tensor, batch: Batch, weights: Float[Tensor, "2"]) -> Float[Tensor, "d"]:
    """Gradient of `weights @ square_losses`, a subgradient where an entry is 0."""
    return square_loss_gradient(w, batch, weights) + weights[1] * w.sign() / RADIUS


def square_loss(w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "1"]:
    """sparse: the objective alone, for methods that have the norm as a set."""
    X, y = batch.data
    return (batch.weight @ (0.5 * (X @ w - y).square())).unsqueeze(0)


def square_loss_gradient(w: Tensor, batch: Batch, weights: Tensor) -> Float[Tensor, "d"]:
    """Gradient of `weights[0]` times the objective."""
    X, y = batch.data
    return (batch.weight * weights[0] * (X @ w - y)) @ X


def with_ridge(losses: Float[Tensor, "2"], w: Float[Tensor, "d"]) -> Float[Tensor, "2"]:
    """The losses, the ridge added to the first."""
    return torch.stack([losses[0] + 0.5 * RIDGE * (w @ w), losses[1]])
