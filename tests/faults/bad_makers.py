"""Every argument of the makers of problems, the splits, the loaders and the metrics, bad."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import bad_values as bad
import torch
from bad_values import Calls, tensors, without
from judging import Case

from fedlib import data, metrics, problems
from fedlib.core.sampling import seeded
from fedlib.data import census, split
from fedlib.problems import classification as constrained

X = torch.linspace(-1, 1, 48, dtype=torch.float64).view(24, 2)
Y = torch.arange(24) % 2
ROWS = torch.arange(24).view(4, 6)
#: Functions whose good arguments need files, or more than a value.
FROM_FILES = (data.mnist, data.fashion_mnist, data.adult, data.cifar10, data.emnist, data.fetch)
FROM_FILES += (metrics.fw_gap,)
#: What a draw of plain bad values may hold for counts that are optional.
COUNT_OR_NONE = without(bad.COUNT, None)


def rng() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@cache
def people() -> census.Adult:
    return census.prepared(census.stand_in(400), census.stand_in(200, 1))


@cache
def quadratic() -> problems.ClientRows | Any:
    return problems.quadratics(torch.ones(4, 2), torch.zeros(4, 2), level=0.5)


def of(
    function: Callable[..., Any], good: dict[str, Any], also: Any = None, **values: Any
) -> Calls:
    """The calls of a function whose good arguments are plain values."""
    return Calls(function, lambda: good, values, also or {})


def library() -> Iterator[Calls]:
    """Makers of the library."""
    P = problems
    pair = {"a": torch.ones(4, 2), "b": torch.zeros(4, 2), "level": 0.5}
    matrix = tensors((4, 2))
    yield of(P.quadratics, pair, a=matrix, b=matrix, level=bad.POSITIVE, set=bad.RECORD[1:])
    centres = {"centres": torch.ones(3, 2, 2, 2)}
    wrong = (torch.zeros(2, 2), -torch.ones(2, 2), torch.ones(2, 3))
    start = (*without(tensors((2,)), None), torch.ones(3))
    curved = (*wrong, *without(tensors((2, 2)), None)[:-3])
    also = {"centres": ("data",), "curvature": ("data", "heldout")}
    yield of(P.pareto, centres, also, centres=tensors((3, 2, 2, 2)), curvature=curved, w0=start)
    np = {"X": X, "y": Y, "clients": 4}
    labels = (Y + 1, Y.double(), Y.tolist(), None, "y", Y.view(4, 6), Y[:5], -Y)
    shared = {"clients": (*bad.COUNT, 13, 25), "seed": bad.SEED}
    yield of(
        P.neyman_pearson,
        np,
        {"X": ("y",), "clients": ("labels",)},
        X=(X.tolist(), X.numpy(), None, X / 0, X[0], X.to(torch.complex64), X[:3], X.unsqueeze(0)),
        y=labels,
        **shared,
        train_fraction=bad.SHARE,
        alpha=without(bad.POSITIVE, None),
        standardize=bad.FLAG,
        bias=bad.FLAG,
        dtype=bad.DTYPE,
        config=bad.CONFIG,
    )
    train, test = people()[:2]
    fair = {"train": train, "test": test, "clients": 3, "hidden": (4,)}
    halves = [train._replace(X=train.X[:5]), train._replace(y=train.y + 1)]
    halves += [train._replace(group=train.group[:3]), train._replace(X=train.X.long())]
    halves += [train._replace(X=train.X / 0), train._replace(X=train.X[:, 0])]
    narrow = [*halves, test._replace(X=test.X[:, :4])]
    one = train._replace(group=torch.ones_like(train.group))
    yield of(
        P.fairness,
        fair,
        train=(*bad.RECORD, tuple(train[:2]), *halves, one),
        test=(*bad.RECORD, *narrow),
        **{**shared, "clients": bad.COUNT},
        alpha=bad.POSITIVE,
        hidden=(3, "4", (0,), (2.0,), (True,), None, ("4",)),
        sign=bad.TEXT,
        config=bad.CONFIG,
    )
    yield from classifiers()
    low = {"clients": 2, "rows": 3, "features": 3, "tasks": 2, "rank": 1}
    counts = dict.fromkeys(("clients", "rows", "features", "tasks"), bad.COUNT)
    rank = (*bad.COUNT, 9)
    noisy = {"noise": bad.NONNEGATIVE, "seed": bad.SEED, "dtype": bad.DTYPE, "rank": rank}
    yield of(P.multi_task_regression, low, **counts, spread=bad.NONNEGATIVE, **noisy)
    whole = {"clients": 2, "users": 4, "items": 4, "rank": 1}
    counts = dict.fromkeys(("users", "items"), bad.COUNT)
    clients = (*bad.COUNT, 3, 5)
    yield of(P.matrix_completion, whole, **counts, clients=clients, observed=bad.INSIDE, **noisy)


def classifiers() -> Iterator[Calls]:
    """Classification, with and without a feasible set."""
    P = problems
    model = {"X": X, "y": Y, "rows": ROWS, "classes": 2}
    rows = (*tensors((4, 6), "int"), ROWS + 1, ROWS - 1, ROWS[:, :0])
    labels = (Y + 1, Y - 1, Y.double(), Y.tolist(), None, Y[:5], Y.view(4, 6))
    shared = {"X": tensors((24, 2)), "y": labels, "rows": rows, "classes": (*bad.COUNT, 1)}
    also = {"classes": ("y",), "X": ("y",), "constrained": ("client",)}
    groups = (3, "0", (0.5,), (True,), (-1,), (0, 1), (7,))
    yield of(P.softmax_regression, model, also, **shared, constrained=groups)
    hidden = {**model, "hidden": 2}
    more = {"hidden": bad.COUNT, "activation": bad.TEXT, "rng": without(bad.RNG, None)}
    yield of(P.mlp_classification, hidden, also, **shared, **more, constrained=groups)
    fitted = constrained.linear_model(2, 2)
    train = constrained.Samples(X, Y)
    good = {"train": train, "test": train, "rows": ROWS, "model": fitted}
    samples = (*bad.RECORD, constrained.Samples(X / 0, Y), constrained.Samples(X, Y[:3]))
    sizes = (3, "6666", (6, 6), (6, 6, 6, 7), (6, 6, 6, 0), (6.0,) * 4)
    scales = (3, (1.0,), (0.0, 0.0, 1.0), ("1", 0.0, 1.0), (255.0, 0.0, 1.0))
    also = {"train": ("X",), "test": ("X",)}
    yield of(
        P.classifier,
        good,
        also,
        train=samples,
        test=samples,
        rows=rows,
        model=bad.RECORD,
        sizes=sizes,
        scale=scales,
        measured=(*COUNT_OR_NONE, 7),
        dtype=bad.DTYPE,
        name=bad.NAME,
        config=bad.CONFIG,
    )
    counts = dict.fromkeys(("features", "classes"), bad.COUNT)
    yield of(constrained.linear_model, {"features": 2, "classes": 2}, **counts)


def splits() -> Iterator[Calls]:
    """Splits and what is drawn."""
    labels = (Y.tolist(), Y.double(), None, "y", Y.view(4, 6), Y[:0])
    clients = (*bad.COUNT, 25)
    also = {"clients": ("labels",)}
    base = {"labels": Y, "clients": 4}
    first = {"labels": labels, "clients": clients, "rng": bad.RNG}

    def drawn(function: Callable[..., Any], good: dict[str, Any], **values: Any) -> Calls:
        return Calls(function, lambda: {**good, "rng": rng()}, values, also)

    yield drawn(split.stratified_iid, base, **first)
    yield drawn(split.dirichlet, {**base, "alpha": 1.0}, **first, alpha=bad.POSITIVE)
    cells = {"cells": Y, "clients": 2, "alpha": 5.0}
    also |= {"cells": ("labels",), "clients": ("labels", "client")}
    values = {"clients": bad.COUNT, "rng": bad.RNG, "alpha": bad.POSITIVE}
    yield drawn(split.dirichlet_cells, cells, cells=labels, **values)
    yield drawn(split.k_labels, {**base, "k": 1}, **first, k=(*bad.COUNT, 3))
    yield drawn(split.label_windows, {**base, "k": 1}, **first, k=(*bad.COUNT, 3))
    some = {"labels": Y, "fraction": 0.5}
    yield drawn(split.train_test, some, labels=labels, fraction=bad.INSIDE, rng=bad.RNG)
    equal = {"count": 24, "clients": 4}
    yield drawn(split.random_equal, equal, count=bad.COUNT, clients=clients, rng=bad.RNG)
    held = {"rows": ROWS, "sizes": (6,) * 4, "fraction": 0.5}
    sizes = (3, (6, 6), (1,) * 4, (7,) * 4, (2.0,) * 4, None)
    rows = (*tensors((4, 6), "int"),)
    yield drawn(split.holdout, held, rows=rows, sizes=sizes, fraction=bad.INSIDE)
    yield of(seeded, {"seed": 0, "stream": "split"}, seed=bad.SEED, stream=bad.TEXT)
    yield of(census.stand_in, {"rows": 41}, rows=(*bad.COUNT, 40), seed=bad.SEED)
    frames = {"train": census.stand_in(60), "test": census.stand_in(60)}
    broken = (frames["train"].drop(columns="age"), frames["train"][:0])
    yield of(census.prepared, frames, train=broken, test=broken)
    for loader in (data.mnist, data.fashion_mnist, data.adult, data.cifar10, data.emnist):
        yield of(loader, {"split": "test"}, split=bad.TEXT)
    yield of(data.cifar10, {"split": "test"}, exact_only=bad.FLAG)
    yield of(data.emnist, {"split": "test"}, subset=bad.TEXT)
    yield of(data.breast_cancer, {}, positive=bad.TEXT)
    yield of(data.available, {"name": "digits"}, name=(*bad.TEXT, "minst"))
    yield of(data.fetch, {}, name=(*bad.TEXT, "minst"))
    table = {"X": X, "y": Y, "classes": ("a", "b")}
    labels = (Y + 1, Y.double(), Y[:3], None)
    yield of(data.Table, table, X=(None, X.numpy(), 3), y=labels, classes=(("a",), "ab", 3))


def measures() -> Iterator[Calls]:
    """Metrics of a model."""
    vector = (*tensors((2,))[:-4], torch.ones(3))
    at = {"problem": quadratic(), "w": torch.zeros(2)}
    for function in (metrics.client_gradients, metrics.multiplier, metrics.mean_gradient):
        yield of(function, at, problem=bad.PROBLEM, w=vector)
    yield of(metrics.fw_gap, at, problem=(*bad.PROBLEM, quadratic()), w=vector)
    pair = {"a": X, "b": X}
    matrix = (X.tolist(), None, X[0], X[:0], X[:3], "x", X.long(), X.to(torch.complex64))
    yield of(metrics.skewness, pair, {"a": ("b",)}, a=matrix, b=matrix)
    yield of(metrics.skew_matrix, pair, {"a": ("b",)}, a=matrix, b=matrix)


def cases() -> Iterator[Case]:
    """All of them."""
    for group in (library, splits, measures):
        for calls in group():
            yield from calls.cases()


def good_calls() -> Iterator[Calls]:
    """What must pass: every function with its good arguments."""
    for group in (library, splits, measures):
        for calls in group():
            if calls.function not in FROM_FILES:
                yield calls
