"""The losses of the arena's problems with their gradients: `[f, g]` of a linear model."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from fedlib.core.problem import Batch
from fedlib.problems.neyman_pearson import logistic_gradient, logistic_losses

RIDGE = 0.03  # f of the three logistic models has RIDGE / 2 |w|^2 in it, for a finite solution
RADIUS = 10.0  # sparse: the l1 norm of the truth, whose entries are +1, -1 and 0
NUCLEAR = 150.0  # rank: the nuclear norm of the true matrix, whose entries are about 1 in size


def class_losses(w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "2"]:
    """np: mean logistic loss of class 0 with the ridge, and of class 1."""
    return with_ridge(logistic_losses(w, batch), w)


def class_gradient(w: Tensor, batch: Batch, weights: Float[Tensor, "2"]) -> Float[Tensor, "d"]:
    """Gradient of `weights @ class_losses`."""
    return logistic_gradient(w, batch, weights) + RIDGE * weights[0] * w


def gap_losses(w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "2"]:
    """fair: mean logistic loss with the ridge; mean output of group 1 minus that of group 0."""
    X, y, share = batch.data
    z = X @ w
    f, g = batch.weight @ (softplus(z) - y * z), (batch.weight * share) @ torch.sigmoid(z)
    return with_ridge(torch.stack([f, g]), w)


def gap_gradient(w: Tensor, batch: Batch, weights: Float[Tensor, "2"]) -> Float[Tensor, "d"]:
    """Gradient of `weights @ gap_losses`."""
    X, y, share = batch.data
    p = torch.sigmoid(X @ w)
    error = weights[0] * (p - y) + weights[1] * share * p * (1 - p)
    return (batch.weight * error) @ X + RIDGE * weights[0] * w


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


def entry_loss(w: Float[Tensor, "d"], batch: Batch) -> Float[Tensor, "1"]:
    """rank: mean of half the squared error on entries of the matrix that w is, row by row."""
    place, value = batch.data
    error = w.gather(0, place) - value
    return (batch.weight @ (0.5 * error.square())).unsqueeze(0)


def entry_gradient(w: Tensor, batch: Batch, weights: Tensor) -> Float[Tensor, "d"]:
    """Gradient of `weights[0]` times the objective."""
    place, value = batch.data
    error = (w.gather(0, place) - value) * batch.weight * weights[0]
    return torch.zeros_like(w).scatter_add(0, place, error)


def with_ridge(losses: Float[Tensor, "2"], w: Float[Tensor, "d"]) -> Float[Tensor, "2"]:
    """The losses, the ridge added to the first."""
    return torch.stack([losses[0] + 0.5 * RIDGE * (w @ w), losses[1]])
