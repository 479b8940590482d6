"""The cells of FedFW's three tables: what is printed, what the authors' files trace it to, data.

`printed.csv` has all printed values.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import torch.nn.functional as F

from fedlib import checks, data
from fedlib.core import Problem
from fedlib.core.problem import ConvexSet
from fedlib.sets import Ball, Blocks, L1Ball
from papers.fedfw.feasible_data import constrained_pictures, constrained_synthetic

LABELS = 3  # of a client in the non-IID columns
RADIUS = 10.0
HELD = 5000  # training pictures of CIFAR-10 that no client has, for testing
DIGITS_HELD = 360  # of scikit-learn's digits
SHARE = 0.25  # of a client's rows that the authors' code tests on
WHOLE = 100_000  # generated rows: no client has as many
PADDING = 4  # scikit-learn's digits around, for convolutions
NORMS = {"l2": "ℓ2", "l1": "ℓ1"}
#: FedDR's step sizes by data.
RATES = {"pictures": (0.01, 0.05), "cifar10": (0.01, 0.05), "synthetic": (0.5, 0.05)}
CNN_RATES = (0.2, 0.1, 0.05)
KEEP = ("loss", "accuracy", "gap", "size")
ETA = 10.0  # FedDR's proximal parameter where no grid is asked for
#: FedDR's parameters in the authors' code.
CODE_FEDDR = {"lr": 0.05, "eta": 100.0, "relaxation": 0.01, "local_steps": 1}
#: A point of the grid that left the finite numbers in round 64; it cannot be chosen.
DIVERGED = ("cnn_pictures_iid_l2_feddr_0.2_10",)
METHODS = {"feddr": "FedDR", "fedfw": "FedFW", "plus": "FedFW+"}
METHODS_3 = {"feddr": "FedDR", "sto": "FedFW-sto"}


class Column(NamedTuple):
    """A column of a table: model, data, split."""

    net: str  # "mclr", "cnn", "dnn"
    data: str  # "pictures" (MNIST, or scikit-learn's digits), "synthetic", "cifar10"
    split: str  # "iid", "labels" (three of a client), "classes" (three of the generator)
    table: int


def check_rows(study: str, p: Mapping[str, Any]) -> None:
    """Refuses too few rows to share among the clients; 0 leaves a set out."""
    for name in ("rows", "cifar_rows", "cnn_rows"):
        if p.get(name):
            checks.count(study, name, p[name], low=10 * p["clients"], note="ten a client")
    if p["most"]:
        checks.count(study, "most", p["most"], low=4, note="a quarter of them is for testing")


#: Columns of Tables 1 and 2. `classes` is the authors' reading of non-IID synthetic data.
COLUMNS = {
    f"{net}_{source}_{split}": Column(net, source, split, table)
    for table, net, source, splits in (
        (1, "mclr", "pictures", ("iid", "labels")),
        (1, "mclr", "synthetic", ("iid", "labels", "classes")),
        (1, "mclr", "cifar10", ("iid", "labels")),
        (2, "cnn", "pictures", ("iid", "labels")),
        (2, "dnn", "synthetic", ("iid", "labels", "classes")),
    )
    for split in splits
}

#: C7, l2: what the tables say of which columns without the CNN.
NON_IID = (
    "mclr_pictures_labels",
    "mclr_synthetic_labels",
    "mclr_cifar10_labels",
    "dnn_synthetic_labels",
)
SYNTHETIC = ("mclr_synthetic_iid", "dnn_synthetic_iid")
BEST_FEDDR = ("mclr_pictures_iid", "mclr_cifar10_iid")
#: Columns and norms in which FedFW trained with some lambda_0; one reading of each column.
CELLS = tuple(
    (name, norm)
    for norm in NORMS
    for name, column in COLUMNS.items()
    if (column.net == "mclr" or (column.net, norm) == ("dnn", "l2")) and column.split != "classes"
)


class Printed(NamedTuple):
    """A printed test accuracy in %, and what the authors' file says that it is the maximum of.

    The column, norm (none in Table 3) and method say which; `spread` stands behind a +- as a share,
    and the paper does not say what it is. `at_100` and `last` are the file's values after round 100
    and at the end, `lam` and `radius` its setting. None where no file tells.
    """

    table: int
    column: str
    norm: str
    method: str
    value: float
    spread: float
    at_100: float | None
    last: float | None
    lam: float | None
    radius: float | None


def _read() -> Iterator[Printed]:
    with Path(__file__).with_name("printed.csv").open(encoding="utf-8", newline="") as file:
        for table, column, norm, method, *numbers in list(csv.reader(file))[1:]:
            value, spread, *optional = (float(x) if x else None for x in numbers)
            assert value is not None
            assert spread is not None
            yield Printed(int(table), column, norm, method, value, spread, *optional)


#: Every value of Tables 1 to 3.
PRINTED = tuple(_read())


def spread_of(column: str, norm: str, first: str, second: str) -> float:
    """The spread of the difference of two methods' printed values, in points."""
    squares = [
        (100 * x.spread) ** 2
        for x in PRINTED
        if (as_coded(x.column), x.norm) == (as_coded(column), norm) and x.method in (first, second)
    ]
    return float(sum(squares) ** 0.5)


def as_coded(column: str) -> str:
    """The column by the authors' reading: non-IID generated data have three classes."""
    return column.replace("synthetic_labels", "synthetic_classes")


def _cells(*tables: int) -> dict[tuple[str, str], tuple[float, ...]]:
    """Column and norm -> printed values by method; one column has two readings."""
    printed_values: dict[tuple[str, str], tuple[float, ...]] = {}
    for x in PRINTED:
        if x.table in tables:
            cell = x.column, x.norm
            printed_values[cell] = (*printed_values.get(cell, ()), x.value)
    return printed_values | {
        (as_coded(c), norm): x for (c, norm), x in printed_values.items() if as_coded(c) != c
    }


#: Column, norm -> FedDR, FedFW, FedFW+.
TABLES = _cells(1, 2)
#: Column -> FedDR, FedFW-sto; EMNIST-10 beside MNIST, its stand-in here.
TABLE_3 = {c.replace("emnist_10", "mclr_pictures"): x for (c, _), x in _cells(3).items()}
COLUMNS_3 = tuple(c for c in COLUMNS if c in TABLE_3)
USUAL = 1e-3  # lambda_0 where no file tells it
SETTINGS = {
    (as_coded(x.column), x.norm, x.method): (x.lam or USUAL, x.radius or RADIUS) for x in PRINTED
}

DATA = {"digits": "digits", "mnist": "MNIST", "synthetic": "synthetic", "cifar10": "CIFAR-10"}
SPLITS = {"iid": "IID", "labels": "3 labels a client", "classes": "3 classes"}
NETS = {"mclr": "", "cnn": "CNN, ", "dnn": "60-20-10, "}


def traced(column: str, norm: str, method: str) -> tuple[float, float]:
    """lambda_0 and radius that the authors' files trace a cell to; in Table 3 there is no norm."""
    coded = column if norm else column.replace("mclr_pictures", "emnist_10")
    return SETTINGS[as_coded(coded), norm, method]


def guessing(usual: float, whole: float) -> Callable[[Mapping[str, Any]], float]:
    """Chance on generated data: the share of the most frequent label.

    It is larger where no client's rows are cut, as in the paper's setting: the clients with most
    rows have that label.
    """
    return lambda config: whole if config["problem"]["most"] >= WHOLE else usual


def column_text(column: str, pictures: str) -> str:
    """A column in words; `pictures` is `"mnist"` or `"digits"`."""
    net, source, split, _ = COLUMNS[column]
    return f"{NETS[net]}{DATA[pictures if source == 'pictures' else source]}, {SPLITS[split]}"


@lru_cache(maxsize=3)
def tables(name: str, padding: int = 0) -> tuple[data.Table, data.Table]:
    """Training and test pictures.

    Of CIFAR-10 the test pictures are the last 5000 of the training set, whose pixels are all
    canonical; of scikit-learn's digits the last 360.
    """
    if name == "mnist":
        return data.mnist("train"), data.mnist("test")
    table = data.digits() if name == "digits" else data.cifar10("train")
    held_out = DIGITS_HELD if name == "digits" else HELD
    X = F.pad(table.X, (padding,) * 4) if padding else table.X
    cut = len(X) - held_out
    return (
        replace(table, X=X[:cut], y=table.y[:cut], exact=None),
        replace(table, X=X[cut:], y=table.y[cut:], exact=None),
    )


@lru_cache(maxsize=3)
def make_problem(
    seed: int,
    *,
    column: Column,
    norm: str,
    pictures: str,
    rows: int,
    tested: int,
    clients: int = 10,
    measured: int | None = None,
    radius: float = RADIUS,
    code: bool = False,
    tensors: bool = False,
) -> Problem:
    """One column's data and model over a ball.

    Parameters
    ----------
    column, norm : which cell.
    pictures : `"mnist"` or `"digits"`, for columns of pictures.
    rows : training pictures of all clients together; of synthetic data most rows of a client.
    tested : at most so many test pictures, the first.
    clients, measured : as in `constrained_pictures`.
    radius : of the ball.
    code : test on a quarter of every client's own rows, as the authors' code does.
    tensors : a ball for every tensor in place of one for the whole vector.
    """
    labels = None if column.split == "iid" else LABELS
    model = {"mclr": "linear", "cnn": "cnn", "dnn": "mlp"}[column.net]
    common: dict[str, Any] = {"model": model, "labels": labels, "clients": clients}
    common |= {"seed": seed, "measured": measured}
    if column.data == "synthetic":
        problem = constrained_synthetic(paper_code=column.split == "classes", most=rows, **common)
    else:
        name = pictures if column.data == "pictures" else "cifar10"
        small = name == "digits" and column.net == "cnn"
        train, test = tables(name, PADDING if small else 0)
        problem = constrained_pictures(
            train,
            test,
            data=name,
            train_rows=min(rows, len(train.y)),
            test_rows=None if code else min(tested, len(test.y)),
            local_test=SHARE if code else None,
            config={"held": len(test.y)},
            **common,
        )
    ball: ConvexSet = Ball(radius) if norm == "l2" else L1Ball(radius)
    return problem.within(Blocks.of_shapes(problem.config["shapes"], ball) if tensors else ball)
