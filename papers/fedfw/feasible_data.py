"""The data of the Federated Frank-Wolfe experiments, split over clients: pictures and generated.

Each function makes the problem of one seed; `problem.within(set)` adds the feasible set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from fedlib import checks
from fedlib.checks import Count, FloatType, Seed
from fedlib.core import Problem
from fedlib.core.sampling import seeded
from fedlib.data import Table
from fedlib.data.split import holdout, label_windows, padded, random_equal
from fedlib.problems import classifier
from fedlib.problems.classification import (
    MODELS,
    Model,
    Samples,
    cnn_model,
    linear_model,
    mlp_model,
)
from papers.fedfw.gaussian_labels import gaussian_labels

#: How bytes become inputs, (top, mean, deviation), in the authors' code; of the 8 x 8 digits our
#: own.
SCALES = {
    "digits": (16.0, 0.5, 0.5),
    "mnist": (255.0, 0.5, 0.5),
    "fashion_mnist": (255.0, 0.5, 0.5),
    "cifar10": (255.0, 0.5, 0.5),
}
PRINTED_CLASSES = 3  # of the generator, where the authors' code is told 3 labels a client


def constrained_pictures(
    train: Table,
    test: Table | None,
    *,
    data: str,
    model: str = "linear",
    hidden: Count = 20,
    labels: Count | None = None,
    clients: Count = 10,
    seed: Seed = 0,
    train_rows: Count | None = None,
    test_rows: Count | None = None,
    local_test: float | None = None,
    measured: Count | None = None,
    dtype: FloatType = torch.float32,
    config: Mapping[str, Any] | None = None,
) -> Problem:
    """Pictures over clients, for a linear model, a network or a CNN.

    Parameters
    ----------
    train, test : of `fedlib.data`; `test` may be None where `local_test` is given.
    data : its name, a key of `SCALES`.
    model : `"linear"`, `"mlp"` (one hidden layer of `hidden`), `"cnn"`.
    labels : labels a client, u, u + 1, ... of client u; None: rows at random, the IID split.
    clients : N.
    seed : fixes the rows, the split and a network's start.
    train_rows : only so many of the training rows, at random; None: all.
    test_rows : only the first so many test rows.
    local_test : this share of every client's rows is for testing, all together, as in the authors'
        code (0.25); the test rows then have the clients' mixture of labels.
    measured, dtype, config : as in `classifier`.

    Raises
    ------
    ValueError
        for a model or data set without a name here, no test rows, and counts out of range.
    """
    checks.arguments(constrained_pictures, locals())
    _check_pictures(test, data, model, local_test)
    rng = seeded(seed, "split")
    dealt = split_rows(train.y, train_rows, labels, clients, rng)
    whole, tested = _as_inputs(train, test, model)
    rows, sizes, held = _held_out(whole, tested, dealt, local_test, test_rows, rng)
    fitted, width = _network(model, whole.X, hidden, len(train.classes), rng)
    used, back = torch.unique(rows, return_inverse=True)  # rows of nobody take no memory
    choices = {"data": data, "model": model, "labels": labels, "local_test": local_test}
    return classifier(
        Samples(whole.X[used], whole.y[used]),
        held,
        back.view(rows.shape),
        fitted,
        sizes=sizes,
        scale=SCALES[data],
        measured=measured,
        dtype=dtype,
        name="constrained_pictures",
        config={**choices, **width, "split_by": "seed", **(config or {})},
    )


def constrained_synthetic(
    *,
    model: str = "linear",
    hidden: Count = 20,
    labels: Count | None = None,
    paper_code: bool = False,
    clients: Count = 10,
    seed: Seed = 0,
    data_seed: Seed = 0,
    samples: Count | None = None,
    most: Count | None = None,
    measured: Count | None = None,
    dtype: FloatType = torch.float32,
    config: Mapping[str, Any] | None = None,
) -> Problem:
    """Generated rows of 60 numbers, 10 classes; a quarter of every client's rows is for testing.

    Parameters
    ----------
    model : `"linear"` or `"mlp"`, 60-`hidden`-10.
    labels : None: every client keeps the rows that were generated for it. Else so many labels a
        client, u, u + 1, ... of client u, from all rows together: the paper's words.
    paper_code : with `labels`, what the authors' code does with that number instead: a generator
        of 3 classes, the same map for all clients, nothing else.
    clients : N.
    seed : fixes the split, the test rows and a network's start.
    data_seed : fixes the generated rows; the authors use one for all runs.
    samples, most : rows of a client, as in `gaussian_labels`.
    measured, dtype, config : as in `classifier`.

    Raises
    ------
    ValueError
        for another model, and for counts out of range.
    """
    checks.arguments(constrained_synthetic, locals())
    checks.one_of("constrained_synthetic", "model", model, MODELS[:2])
    classes = PRINTED_CLASSES if paper_code and labels is not None else 10
    source = seeded(data_seed, "split")
    X, y, counts = gaussian_labels(clients, source, classes=classes, samples=samples, most=most)
    rng = seeded(seed, "split")
    if labels is None or paper_code:
        rows, sizes = padded(torch.split(torch.arange(len(y)), list(counts)))
    else:
        rows, sizes = label_windows(y, clients, labels, rng)
    rows, sizes, own = holdout(rows, sizes, 0.25, rng)
    fitted, width = _network(model, X, hidden, classes, rng)
    choices = {"model": model, "labels": labels, "paper_code": paper_code, "samples": samples}
    choices |= {**width, "most": most, "data_seed": data_seed}
    return classifier(
        Samples(X, y),
        Samples(X[own], y[own]),
        rows,
        fitted,
        sizes=sizes,
        measured=measured,
        dtype=dtype,
        name="constrained_synthetic",
        config={**choices, "split_by": "seed", **(config or {})},
    )


def _check_pictures(test: Table | None, data: str, model: str, local_test: float | None) -> None:
    checks.one_of("constrained_pictures", "model", model, MODELS)
    checks.one_of("constrained_pictures", "data", data, tuple(SCALES))
    if test is None and local_test is None:
        rule = "be a Table, unless local_test is given"
        raise ValueError(checks.sentence("constrained_pictures", "test", rule, None))


def _as_inputs(train: Table, test: Table | None, model: str) -> tuple[Samples, Samples | None]:
    """Pictures in the shape that a model takes."""
    shaped = channels_first if model == "cnn" else flat
    tested = None if test is None else Samples(shaped(test.X), test.y)
    return Samples(shaped(train.X), train.y), tested


def _held_out(
    train: Samples,
    test: Samples | None,
    dealt: tuple[Int[Tensor, "N m"], tuple[int, ...]],
    share: float | None,
    count: int | None,
    rng: torch.Generator,
) -> tuple[Int[Tensor, "N r"], tuple[int, ...], Samples]:
    """Every client's rows, their numbers, and for testing `test`, or a `share` of these rows."""
    rows, sizes = dealt
    if share is not None:
        checks.in_range(
            "constrained_pictures", "local_test", share, 0, 1, open_low=True, open_high=True
        )
        rows, sizes, own = holdout(rows, sizes, share, rng)
        test = Samples(train.X[own], train.y[own])
    assert test is not None
    if count is not None:
        checks.count("constrained_pictures", "test_rows", count, 1, len(test.y))
        test = Samples(test.X[:count], test.y[:count])
    return rows, sizes, test


def _network(
    model: str, X: Shaped[Tensor, "R *shape"], hidden: int, classes: int, rng: torch.Generator
) -> tuple[Model, dict[str, int]]:
    """The model of a name for rows like X, and what is recorded of its width."""
    if model == "cnn":
        return cnn_model(X.shape[1], X.shape[-1], classes, rng), {}
    if model == "mlp":
        return mlp_model(X.shape[1], hidden, classes, rng), {"hidden": hidden}
    return linear_model(X.shape[1], classes), {}


def subset(count: int, wanted: int | None, rng: torch.Generator) -> Int[Tensor, " r"]:
    """`wanted` of the rows 0 .. count - 1 at random, or all of them."""
    if wanted is None:
        return torch.arange(count)
    checks.count("constrained_pictures", "train_rows", wanted, 1, count, "the training rows")
    return torch.randperm(count, generator=rng)[:wanted]


def split_rows(
    y: Int[Tensor, " R"],
    wanted: int | None,
    labels: int | None,
    clients: int,
    rng: torch.Generator,
) -> tuple[Int[Tensor, "N m"], tuple[int, ...]]:
    """Every client's rows and their numbers, of `wanted` rows of all."""
    chosen = subset(len(y), wanted, rng)
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
