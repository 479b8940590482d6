"""The data of the Federated Frank-Wolfe experiments, split over clients: pictures and generated.

Each function makes the problem of one seed; `problem.within(set)` adds the feasible set. The
generator is the one that Dadras et al. (FedFW, ECML PKDD 2024) take from earlier work (pFedMe;
first in Li et al., *Federated Optimization in Heterogeneous Networks*), with their settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from fedlib.core import Problem
from fedlib.core.sampling import seeded
from fedlib.data import Table
from fedlib.data.split import holdout, label_windows, padded, random_equal
from fedlib.problems import classifier
from fedlib.problems.classification import (
    Model,
    Samples,
    cnn_model,
    linear_model,
    mlp_model,
)

#: How bytes become inputs, (top, mean, deviation), in the authors' code; of the 8 x 8 digits our
#: own.
SCALES = {
    "digits": (16.0, 0.5, 0.5),
    "mnist": (255.0, 0.5, 0.5),
    "cifar10": (255.0, 0.5, 0.5),
}
HIDDEN = 20  # cells of the network
TEST_SHARE = 0.25  # of a client's generated rows
PRINTED_CLASSES = 3  # of the generator, where the authors' code is told 3 labels a client
FEATURES = 60  # of the generator
SPREAD = 0.5  # alpha = beta in the source: the standard deviation of the clients' centres
# a client has TIMES * (LEAST + floor(log-normal)) rows
LEAST = 50
TIMES = 5
LOG_MEAN = 4.0
LOG_DEVIATION = 2.0
DECAY = 1.2  # input j has variance j^-DECAY


class Generated(NamedTuple):
    """Rows of all clients one after another, and how many each has."""

    X: Float[Tensor, "R p"]
    y: Int[Tensor, " R"]
    sizes: tuple[int, ...]


def gaussian_labels(
    clients: int,
    rng: torch.Generator,
    *,
    classes: int = 10,
    most: int | None = None,
) -> Generated:
    """Inputs x ~ N(v_u, diag(j^-1.2)) of client u, labels arg max(W'x + b).

    W and b are standard normal and shared, v_u = B_u (1, ..., 1) with B_u ~ N(0, 0.5^2). A client
    has 5 (50 + floor(log-normal(4, 2))) rows, and no more than `most`: very unequal numbers.
    """
    normal = torch.randn(clients, generator=rng, dtype=torch.float64)
    log = LOG_MEAN + LOG_DEVIATION * normal
    drawn = [TIMES * (LEAST + int(z)) for z in log.exp()]
    sizes = drawn if most is None else [min(n, most) for n in drawn]
    centre = SPREAD * torch.randn(clients, generator=rng)
    deviation = torch.arange(1, FEATURES + 1, dtype=torch.float32) ** (-DECAY / 2)
    W = torch.randn(FEATURES, classes, generator=rng)
    b = torch.randn(classes, generator=rng)
    X = []
    y = []
    for v, size in zip(centre, sizes, strict=True):
        rows = v + deviation * torch.randn(size, FEATURES, generator=rng)
        outputs = rows @ W + b
        X.append(rows)
        y.append(outputs.argmax(1))
    return Generated(torch.cat(X), torch.cat(y), tuple(sizes))


def constrained_synthetic(
    *,
    model: str = "linear",
    labels: int | None = None,
    paper_code: bool = False,
    clients: int = 10,
    seed: int = 0,
    most: int | None = None,
    measured: int | None = None,
) -> Problem:
    """Generated rows of 60 numbers, 10 classes; a quarter of every client's rows is for testing.

    Parameters
    ----------
    model : `"linear"` or `"mlp"`, 60-20-10.
    labels : None: every client keeps the rows that were generated for it. Else so many labels a
        client, u, u + 1, ... of client u, from all rows together: the paper's words.
    paper_code : with `labels`, what the authors' code does with that number instead: a generator
        of 3 classes, the same map for all clients, nothing else.
    clients : N.
    seed : fixes the split, the test rows and a network's start; the rows are the same for all.
    most : rows of a client, as in `gaussian_labels`.
    measured : as in `classifier`.
    """
    classes = PRINTED_CLASSES if paper_code and labels is not None else 10
    X, y, counts = gaussian_labels(clients, seeded(0, "split"), classes=classes, most=most)
    rng = seeded(seed, "split")
    if labels is None or paper_code:
        rows, sizes = padded(torch.split(torch.arange(len(y)), list(counts)))
    else:
        rows, sizes = label_windows(y, clients, labels, rng)
    rows, sizes, test_rows_of_clients = holdout(rows, sizes, TEST_SHARE, rng)
    choices = {"model": model, "labels": labels, "paper_code": paper_code, "most": most}
    return classifier(
        Samples(X, y),
        Samples(X[test_rows_of_clients], y[test_rows_of_clients]),
        rows,
        _network(model, X, classes, rng),
        sizes=sizes,
        measured=measured,
        name="constrained_synthetic",
        config={**choices, "split_by": "seed"},
    )


def constrained_pictures(
    train: Table,
    test: Table | None,
    *,
    data: str,
    model: str = "linear",
    labels: int | None = None,
    clients: int = 10,
    seed: int = 0,
    train_rows: int | None = None,
    test_rows: int | None = None,
    local_test: float | None = None,
    measured: int | None = None,
    dtype: torch.dtype = torch.float32,
    config: Mapping[str, Any] | None = None,
) -> Problem:
    """Pictures over clients, for a linear model, a network or a CNN.

    Parameters
    ----------
    train, test : of `fedlib.data`; `test` may be None where `local_test` is given.
    data : its name, a key of `SCALES`.
    model : `"linear"`, `"mlp"` (one hidden layer), `"cnn"`.
    labels : labels a client, u, u + 1, ... of client u; None: rows at random, the IID split.
    clients : N.
    seed : fixes the rows, the split and a network's start.
    train_rows : only so many of the training rows, at random; None: all.
    test_rows : only the first so many test rows.
    local_test : this share of every client's rows is for testing, all together, as in the authors'
        code (0.25); the test rows then have the clients' mixture of labels.
    measured, dtype, config : as in `classifier`.
    """
    rng = seeded(seed, "split")
    rows, sizes = split_rows(
        train.y,
        train_rows,
        labels,
        clients,
        rng,
    )
    shaped = channels_first if model == "cnn" else flat
    samples = Samples(shaped(train.X), train.y)
    if local_test is not None:
        rows, sizes, local_rows = holdout(rows, sizes, local_test, rng)
        test_samples = Samples(samples.X[local_rows], samples.y[local_rows])
    else:
        assert test is not None
        test_samples = Samples(shaped(test.X), test.y)
    if test_rows is not None:
        test_samples = Samples(test_samples.X[:test_rows], test_samples.y[:test_rows])
    fitted = _network(model, samples.X, len(train.classes), rng)
    used, back = torch.unique(rows, return_inverse=True)  # rows of nobody take no memory
    choices = {"data": data, "model": model, "labels": labels, "local_test": local_test}
    return classifier(
        Samples(samples.X[used], samples.y[used]),
        test_samples,
        back.view(rows.shape),
        fitted,
        sizes=sizes,
        scale=SCALES[data],
        measured=measured,
        dtype=dtype,
        name="constrained_pictures",
        config={**choices, "split_by": "seed", **(config or {})},
    )


def _network(
    model: str,
    X: Shaped[Tensor, "R *shape"],
    classes: int,
    rng: torch.Generator,
) -> Model:
    """The model of a name for rows like X."""
    if model == "cnn":
        return cnn_model(X.shape[1], X.shape[-1], classes, rng)
    if model == "mlp":
        return mlp_model(X.shape[1], HIDDEN, classes, rng)
    return linear_model(X.shape[1], classes)


def split_rows(
    y: Int[Tensor, " R"],
    target: int | None,
    labels: int | None,
    clients: int,
    rng: torch.Generator,
) -> tuple[Int[Tensor, "N m"], tuple[int, ...]]:
    """Every client's rows and their numbers, of `target` rows of all."""
    chosen = torch.arange(len(y))
    if target is not None:
        chosen = torch.randperm(len(y), generator=rng)[:target]
    if labels is not None:
        rows, sizes = label_windows(y[chosen], clients, labels, rng)
    else:
        rows = random_equal(len(chosen), clients, rng)
        sizes = (rows.shape[1],) * clients
    return chosen[rows], sizes


def flat(X: Shaped[Tensor, "R *shape"]) -> Shaped[Tensor, "R p"]:
    return X.flatten(1)


def channels_first(X: Shaped[Tensor, "R h w *c"]) -> Shaped[Tensor, "R c h w"]:
    return X.unsqueeze(1) if X.dim() == 3 else X.movedim(-1, 1).contiguous()
