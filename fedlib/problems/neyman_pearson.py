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
from fedlib.shapes import Scalar


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
    X : Tensor
        `[R, p]`, the features.
    y : Tensor
        `[R]`, labels in {0, 1}; class 0 yields the objective, class 1 the constraint.
    clients : int
        N, the number of clients; with 1 the problem is centralized.
    seed : int
        Determines the test split and the partition.
    train_fraction : float
        The share of the rows used for training; the rest (stratified) is held out.
    alpha : float or None
        The concentration of a Dirichlet split; None for the IID split with equal class ratio.
    standardize : bool
        Whether to z-score the features with the statistics of the training rows.
    bias : bool
        Whether to add a constant feature, which the papers do not have.
    dtype : torch.dtype
        The dtype of the data and the model.
    config : dict or None
        Entries to add to the stored configuration, such as the data set's name.

    Raises ValueError for NaN or infinite features, labels outside {0, 1}, a split that leaves a
    client without one of the classes, and parameters out of range.
    """
    checks.arguments(neyman_pearson, locals())
    checks.labelled("neyman_pearson", X, y)
    checks.labels01("neyman_pearson", "y", y, "recode them, class 0 is the objective")
    rng = seeded(seed, "split")
    if train_fraction < 1:
        train, test = split.train_test(y, 1 - train_fraction, rng)
    else:
        train = torch.arange(len(y))
        test = torch.arange(0)
    X = X.to(torch.float64)
    labels = y[train]
    if alpha is None:
        rows = split.stratified_iid(labels, clients, rng)
    else:
        rows = split.dirichlet(labels, clients, alpha, rng)
    if standardize:
        mean = X[train].mean(0)
        std = X[train].std(0, correction=0)
        scale = torch.where(std > 0, std, 1.0)
        X = (X - mean) / scale
    if bias:
        ones = torch.ones_like(X[:, :1])
        X = torch.cat([X, ones], 1)
    shares = class_shares("neyman_pearson", labels, rows)
    X = X.to(dtype)
    labels = labels.to(dtype)
    full_config = {
        "name": "neyman_pearson",
        "clients": clients,
        "train_fraction": train_fraction,
        "alpha": alpha,
        "standardize": standardize,
        "bias": bias,
        "split_by": "seed",
    }
    full_config.update(config or {})
    return Problem(
        name="neyman_pearson",
        data=(X[train], labels, shares.to(dtype)),
        rows=rows,
        sizes=(rows.shape[1],) * clients,
        losses=logistic_losses,
        gradient=logistic_gradient,
        num_objectives=1,
        num_constraints=1,
        w0=torch.zeros(X.shape[1], dtype=dtype),
        metrics=exact_metrics,
        heldout=(X[test], y[test].to(dtype)),
        config=full_config,
    )


def class_shares(
    caller: str, labels: Int[Tensor, "R"], rows: Int[Tensor, "N m"]
) -> Float[Tensor, "R 2"]:
    """The weight of every row in the class means of its client: m / m_class, in two columns.

    Rows that belong to no client have weight 0. Raises ValueError if a client has no row of one of
    the classes.
    """
    shares = torch.zeros(len(labels), 2, dtype=torch.float64)
    remedy = "use fewer clients, a larger alpha or the IID split"
    for client, client_rows in enumerate(rows):
        client_labels = labels[client_rows]
        for label in (0, 1):
            class_rows = client_rows[client_labels == label]
            rule = f"have rows of class {label}"
            checks.require(len(class_rows), caller, f"client {client}", rule, 0, remedy)
            shares[class_rows, label] = len(client_rows) / len(class_rows)
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
    row_weights = batch.weight * (shares @ weights)
    error = torch.sigmoid(X @ w) - y
    return (row_weights * error) @ X


def exact_metrics(w: Float[Tensor, "p"], problem: Problem) -> dict[str, Scalar]:
    """Exact f and g over all clients' training rows, the largest g_j, and held-out error rates.

    `false_alarm` is the share of held-out class-0 rows that are flagged; `miss` is the share of
    class-1 rows that are not flagged. Without held-out rows, both are left out.
    """
    losses = torch.func.vmap(problem.losses, in_dims=(None, 0))
    client_losses = losses(w, problem.all_clients())
    f = client_losses[:, 0]
    g = client_losses[:, 1]
    values = {
        "f": f.mean(),
        "g": g.mean(),
        "g_max": g.max(),
    }
    X, y = problem.heldout
    if len(y):
        flagged = (X @ w > 0).to(y.dtype)
        false_alarms = flagged * (1 - y)
        misses = (1 - flagged) * y
        values["false_alarm"] = false_alarms.sum() / (1 - y).sum()
        values["miss"] = misses.sum() / y.sum()
    return values
