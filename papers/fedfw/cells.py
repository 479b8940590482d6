"""The cells of FedFW's three tables: what is printed, what the authors' files trace it to, data.

`printed.csv` has all printed values.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from math import hypot
from pathlib import Path
from typing import Any, NamedTuple

import torch.nn.functional as F

from fedlib import checks, data
from fedlib.core import Problem
from fedlib.core.problem import ConvexSet
from fedlib.sets import Ball, Blocks, L1Ball
from papers.fedfw.feasible_data import constrained_pictures, constrained_synthetic
from papers.kit.quantities import Defaults, Label

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
DIVERGED = ("cnn_pictures_iid_l2_feddr_lr0.2_eta10",)
#: The labels of runs in the order of names. `protocol` is `text` or, of the authors' files, `code`;
#: `only_seed` is the seed of a run that has a single one.
DEFAULTS: Defaults = {
    "net": None,
    "data": None,
    "split": None,
    "norm": None,
    "protocol": "text",
    "method": None,
    "lam": None,
    "radius": None,
    "lr": None,
    "eta": None,
    "only_seed": None,
}
Labels = dict[str, Label]
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
            checks.count(
                study,
                name,
                p[name],
                low=10 * p["clients"],
                note="ten a client",
            )
    if p["most"]:
        checks.count(
            study,
            "most",
            p["most"],
            low=4,
            note="a quarter of them is for testing",
        )


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

    @property
    def points(self) -> float:
        """The spread in points, as the accuracies are in %."""
        return 100 * self.spread

    @property
    def text(self) -> str:
        """The value with its spread."""
        return f"{self.value:.2f} ± {self.points:.2g}"


def _read() -> Iterator[Printed]:
    with Path(__file__).with_name("printed.csv").open(encoding="utf-8", newline="") as file:
        for table, column, norm, method, *numbers in list(csv.reader(file))[1:]:
            value, spread, *optional = (float(x) if x else None for x in numbers)
            assert value is not None
            assert spread is not None
            yield Printed(
                int(table),
                column,
                norm,
                method,
                value,
                spread,
                *optional,
            )


#: Every value of Tables 1 to 3.
PRINTED = tuple(_read())


def as_coded(column: str) -> str:
    """The column by the authors' reading: non-IID generated data have three classes."""
    return column.replace("synthetic_labels", "synthetic_classes")


def _by_cell() -> dict[tuple[str, str, str], Printed]:
    """Column, norm and method -> what is printed; a column with two readings has two names.

    In Table 3, which has no norm, MNIST stands in for EMNIST-10.
    """
    values = {}
    for printed in PRINTED:
        column = printed.column.replace("emnist_10", "mclr_pictures")
        for name in (column, as_coded(column)):
            values[name, printed.norm, printed.method] = printed
    return values


PRINTED_AT = _by_cell()
COLUMNS_3 = tuple(column for column in COLUMNS if (column, "", "sto") in PRINTED_AT)
USUAL = 1e-3  # lambda_0 where no file tells it


class PrintedGap(NamedTuple):
    """The difference of two printed values, and its spread, in points."""

    value: float
    spread: float


def printed_gap(column: str, norm: str, method: str) -> PrintedGap:
    """What a table prints for a method minus what it prints for FedDR."""
    ours = PRINTED_AT[column, norm, method]
    theirs = PRINTED_AT[column, norm, "feddr"]
    return PrintedGap(round(ours.value - theirs.value, 2), hypot(ours.points, theirs.points))


DATA = {"digits": "digits", "mnist": "MNIST", "synthetic": "synthetic", "cifar10": "CIFAR-10"}
SPLITS = {"iid": "IID", "labels": "3 labels a client", "classes": "3 classes"}
NETS = {"mclr": "", "cnn": "CNN, ", "dnn": "60-20-10, "}


def traced(column: str, norm: str, method: str) -> tuple[float, float]:
    """lambda_0 and radius that the authors' files trace a cell to; in Table 3 there is no norm."""
    printed = PRINTED_AT[column, norm, method]
    return printed.lam or USUAL, printed.radius or RADIUS


def labels_of_cell(column: str, norm: str = "") -> Labels:
    """The labels that all runs of a cell have; in Table 3 there is no norm."""
    net, source, split, _ = COLUMNS[column]
    cell: Labels = {"net": net, "data": source, "split": split}
    return {**cell, "norm": norm} if norm else cell


def run_as_traced(column: str, norm: str, method: str) -> Labels:
    """The labels of the run that follows the authors' files for a printed value.

    Published code runs FedFW under the name of FedFW+ as well: their runs are `fw`.
    """
    cell = {**labels_of_cell(column, norm), "protocol": "code"}
    if method == "feddr":
        return {**cell, "method": method}
    lam, radius = traced(column, norm, method)
    if method == "sto":
        return {**cell, "method": method, "lam": lam}
    return {**cell, "method": "fw", "lam": lam, "radius": radius}


def guessing(usual: float, uncut: float) -> Callable[[Mapping[str, Any]], float]:
    """Chance on generated data: the share of the most frequent label.

    It is larger where no client's rows are cut, as in the paper's setting: the clients with most
    rows have that label.
    """
    return lambda config: uncut if config["problem"]["most"] >= WHOLE else usual


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
