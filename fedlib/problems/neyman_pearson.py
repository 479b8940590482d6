"""Neyman-Pearson classification: minimize the loss of one class under a bound on the other's."""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Integer, Real
from torch import Tensor
from torch.nn.functional import softplus

from fedlib import checks
from fedlib.checks import Count, FloatType, Positive, Seed, Share
from fedlib.core.problem import Batch, Problem
from fedlib.core.sampling import seeded
from fedlib.data import split


def neyman_pearson(
    X: Real[Tensor, "R p"],
    y: Integer[Tensor, "R"] | Bool[Tensor, "R"],
    *,
    clients: Count,
    seed: Seed = 0,
    train_fraction: Share = 1.0,
    alpha: Positive | None = None,
    standardize: bool = True,
    bias: bool = False,
    dtype: FloatType = torch.float32,
    config: dict[str, Any] | None = None,
) -> Problem:
    r"""The federated Neyman-Pearson problem with the logistic loss.

    $\phi(w; x, y) = -y\,w^\top x + \log(1 + e^{w^\top x})$; client j's objective is the mean of phi
    over its rows with y = 0, and its constraint the mean over its rows with y = 1 (both FedSGM
    papers, experiments). A minibatch estimates both without bias: a row counts
    m / (rows of its class) times. A batch may therefore lack one of the classes.

    Parameters
    ----------
    X : features `[R, p]`.
    y : labels `[R]` in {0, 1}; class 0 yields the objective, class 1 the constraint.
    clients, config : as in `fairness`.
    seed : determines the test split and the partition.
    train_fraction : the share of the rows used for training; the rest (stratified) is held out.
    alpha : the concentration of a Dirichlet split; None for the IID split with equal class ratio.
    standardize : whether to z-score the features with the statistics of the training rows.
    bias : whether to add a constant feature, which the papers do not have.
    dtype : of the data and the model.

    Raises ValueError for NaN or infinite features, labels outside {0, 1}, a split that leaves a
    client without one of the classes, and parameters out of range.
    """
    checks.arguments(neyman_pearson, locals())
    checks.labelled("neyman_pearson", X, y)
    checks.labels01("neyman_pearson", "y", y, "recode them, class 0 is the objective")
    rng = seeded(seed, "split")
    train, test = torch.arange(len(y)), torch.arange(0)
    if train_fraction < 1:
        train, test = split.train_test(y, 1 - train_fraction, rng)
    labels, X = y[train], X.to(torch.float64)
    if alpha is None:
        rows = split.stratified_iid(labels, clients, rng)
    else:
        rows = split.dirichlet(labels, clients, alpha, rng)
    if standardize:
        mean, std = X[train].mean(0), X[train].std(0, correction=0)
        X = (X - mean) / torch.where(std > 0, std, 1.0)
    if bias:
        X = torch.cat([X, torch.ones_like(X[:, :1])], 1)
    shares = class_shares("neyman_pearson", labels, rows)
    settings = {"clients": clients, "train_fraction": train_fraction, "alpha": alpha}
    choices = {"standardize": standardize, "bias": bias, "split_by": "seed"}
    return Problem(
        name="neyman_pearson",
        data=(X[train].to(dtype), labels.to(dtype), shares.to(dtype)),
        rows=rows,
        sizes=(rows.shape[1],) * clients,
        losses=logistic_losses,
        gradient=logistic_gradient,
        num_objectives=1,
        num_constraints=1,
        w0=torch.zeros(X.shape[1], dtype=dtype),
        metrics=exact_metrics,
        heldout=(X[test].to(dtype), y[test].to(dtype)),
        config={"name": "neyman_pearson", **settings, **choices, **(config or {})},
    )


def class_shares(
    who: str, labels: Int[Tensor, "R"], rows: Int[Tensor, "N m"]
) -> Float[Tensor, "R 2"]:
    """The weight of every row in the class means of its client: m / m_class, in two columns.

    Rows that belong to no client have weight 0. Raises ValueError if a client has no row of one of
    the classes.
    """
    shares = torch.zeros(len(labels), 2, dtype=torch.float64)
    for j, own in enumerate(rows):
        for c in (0, 1):
            mine = own[labels[own] == c]
            remedy = "use fewer clients, a larger alpha or the IID split"
            checks.require(len(mine), who, f"client {j}", f"have rows of class {c}", 0, remedy)
            shares[mine, c] = len(own) / len(mine)
    return shares


def logistic_losses(w: Float[Tensor, "p"], batch: Batch) -> Float[Tensor, "2"]:
    """Mean phi over class 0 (objective) and class 1 (constraint)."""
    X, y, shares = batch.data
    z = X @ w
    phi = softplus(z, threshold=40) - y * z  # with the default, 20, the error would be 2e-9
    return (batch.weight * phi) @ shares


def logistic_gradient(
    w: Float[Tensor, "p"], batch: Batch, weights: Float[Tensor, "2"]
) -> Float[Tensor, "p"]:
    """The gradient of `weights @ logistic_losses` in closed form."""
    X, y, shares = batch.data
    return (batch.weight * (shares @ weights) * (torch.sigmoid(X @ w) - y)) @ X


def exact_metrics(w: Float[Tensor, "p"], problem: Problem) -> dict[str, Float[Tensor, ""]]:
    """Exact f and g over all clients' training rows, the largest g_j, and held-out error rates.

    `false_alarm` is the share of held-out class-0 rows that are flagged; `miss` is the share of
    class-1 rows that are not flagged. Without held-out rows, both are left out.
    """
    each = torch.func.vmap(problem.losses, in_dims=(None, 0))(w, problem.all_clients())
    values = {"f": each[:, 0].mean(), "g": each[:, 1].mean(), "g_max": each[:, 1].max()}
    X, y = problem.heldout
    if len(y):
        flagged = (X @ w > 0).to(y.dtype)
        values["false_alarm"] = (flagged * (1 - y)).sum() / (1 - y).sum()
        values["miss"] = ((1 - flagged) * y).sum() / y.sum()
    return values
