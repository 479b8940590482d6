"""The cells of FedFW's three tables: what is printed, what the authors' files trace it to, data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import torch.nn.functional as F

from fedlib import checks, data
from fedlib.checks import Count, Positive, Seed
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
#: FedDR's step sizes by data and model; the first is the one with five local steps.
RATES = {"pictures": (0.01, 0.05), "cifar10": (0.01, 0.05), "synthetic": (0.5, 0.05)}
CNN_RATES = (0.2, 0.1, 0.05)
KEEP = ("loss", "accuracy", "gap", "size")
ETA = 10.0  # FedDR's proximal parameter where no grid is asked for
#: FedDR's parameters in the authors' code.
CODE_FEDDR = {"lr": 0.05, "eta": 100.0, "relaxation": 0.01, "local_steps": 1}
#: A point of the grid that left the finite numbers in round 64; it cannot be chosen.
DIVERGED = ("cnn_pictures_iid_l2_feddr_0.2_10",)
METHODS = {"feddr": "FedDR", "fedfw": "FedFW", "plus": "FedFW+"}


class Column(NamedTuple):
    """A column of a table: model, data, split."""

    net: str  # "mclr", "cnn", "dnn"
    data: str  # "pictures" (MNIST, or scikit-learn's digits), "synthetic", "cifar10"
    split: str  # "iid", "labels" (three of a client), "classes" (three of the generator)
    table: int


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

#: Printed test accuracy in %: column, norm -> FedDR, FedFW, FedFW+.
TABLES = {
    ("mclr_pictures_iid", "l2"): (89.59, 86.96, 86.50),
    ("mclr_synthetic_iid", "l2"): (78.24, 80.20, 79.96),
    ("mclr_cifar10_iid", "l2"): (39.95, 36.30, 36.30),
    ("mclr_pictures_labels", "l2"): (83.72, 86.95, 86.98),
    ("mclr_synthetic_labels", "l2"): (92.97, 94.81, 94.56),
    ("mclr_cifar10_labels", "l2"): (37.79, 38.13, 37.20),
    ("mclr_pictures_iid", "l1"): (72.18, 78.07, 69.17),
    ("mclr_synthetic_iid", "l1"): (79.00, 81.63, 81.92),
    ("mclr_cifar10_iid", "l1"): (23.25, 21.86, 21.99),
    ("mclr_pictures_labels", "l1"): (74.29, 80.54, 71.32),
    ("mclr_synthetic_labels", "l1"): (93.81, 90.84, 91.20),
    ("mclr_cifar10_labels", "l1"): (24.77, 25.08, 25.16),
    ("cnn_pictures_iid", "l2"): (96.89, 95.87, 95.05),
    ("dnn_synthetic_iid", "l2"): (75.96, 81.70, 81.96),
    ("cnn_pictures_labels", "l2"): (88.93, 92.70, 91.79),
    ("dnn_synthetic_labels", "l2"): (93.85, 96.13, 96.08),
    ("cnn_pictures_iid", "l1"): (11.72, 23.88, 20.40),
    ("dnn_synthetic_iid", "l1"): (78.59, 75.52, 76.44),
    ("cnn_pictures_labels", "l1"): (16.75, 37.62, 36.27),
    ("dnn_synthetic_labels", "l1"): (93.51, 91.53, 91.96),
}
TABLES |= {  # one printed column, two readings of it
    (f"{net}_synthetic_classes", norm): TABLES[f"{net}_synthetic_labels", norm]
    for net in ("mclr", "dnn")
    for norm in NORMS
}

#: lambda_0 and radius that the authors' files trace a cell to, for FedFW and "FedFW+".
TRACED = {
    ("mclr_pictures_iid", "l2"): ((1e-3, 10.0), (1e-3, 10.0)),
    ("mclr_pictures_labels", "l2"): ((1e-1, 10.0), (1e-1, 10.0)),
    ("mclr_cifar10_iid", "l2"): ((1e-2, 10.0), (1e-2, 10.0)),
    ("mclr_cifar10_labels", "l2"): ((1e-2, 10.0), (1e-1, 10.0)),
    ("mclr_pictures_iid", "l1"): ((1e-2, 100.0), (1e-3, 10.0)),
    ("mclr_pictures_labels", "l1"): ((1e-4, 100.0), (1e-3, 10.0)),
    ("mclr_synthetic_iid", "l1"): ((1e-2, 10.0), (1e-3, 10.0)),
    ("mclr_synthetic_classes", "l1"): ((1e-2, 10.0), (1e-2, 10.0)),
    ("mclr_cifar10_iid", "l1"): ((1e-2, 10.0), (1e-2, 10.0)),
    ("mclr_cifar10_labels", "l1"): ((1e-2, 10.0), (1e-2, 10.0)),
}
CODED = ("synthetic", "labels")
UNTRACED = ((1e-3, RADIUS), (1e-3, RADIUS))  # and the value of all other traced cells

DATA = {"digits": "digits", "mnist": "MNIST", "synthetic": "synthetic", "cifar10": "CIFAR-10"}
SPLITS = {"iid": "IID", "labels": "3 labels a client", "classes": "3 classes"}
NETS = {"mclr": "", "cnn": "CNN, ", "dnn": "60-20-10, "}


def as_coded(column: str) -> str:
    """The column by the authors' reading: non-IID generated data have three classes."""
    _, source, split, _ = COLUMNS[column]
    return column.replace("labels", "classes") if (source, split) == CODED else column


def traced(column: str, norm: str) -> tuple[tuple[float, float], tuple[float, float]]:
    return TRACED.get((column, norm), UNTRACED)


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
    checks.one_of("fw_tables", "pictures", name, ("digits", "cifar10"))
    whole = data.digits() if name == "digits" else data.cifar10("train")
    held = DIGITS_HELD if name == "digits" else HELD
    X = F.pad(whole.X, (padding,) * 4) if padding else whole.X
    cut = len(X) - held
    return (
        replace(whole, X=X[:cut], y=whole.y[:cut], exact=None),
        replace(whole, X=X[cut:], y=whole.y[cut:], exact=None),
    )


@lru_cache(maxsize=3)
def make_problem(
    seed: Seed,
    *,
    column: Column,
    norm: str,
    pictures: str,
    rows: Count,
    tested: Count,
    clients: Count = 10,
    measured: Count | None = None,
    radius: Positive = RADIUS,
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
    checks.arguments(make_problem, locals())
    labels = None if column.split == "iid" else LABELS
    model = {"mclr": "linear", "cnn": "cnn", "dnn": "mlp"}[column.net]
    common: dict[str, Any] = {"model": model, "labels": labels, "clients": clients}
    common |= {"seed": seed, "measured": measured}
    if column.data == "synthetic":
        made = constrained_synthetic(paper_code=column.split == "classes", most=rows, **common)
    else:
        name = pictures if column.data == "pictures" else "cifar10"
        small = name == "digits" and column.net == "cnn"
        train, test = tables(name, PADDING if small else 0)
        made = constrained_pictures(
            train,
            test,
            data=name,
            train_rows=min(rows, len(train.y)),
            test_rows=None if code else min(tested, len(test.y)),
            local_test=SHARE if code else None,
            config={"held": len(test.y)},
            **common,
        )
    checks.one_of("fw_tables", "norm", norm, tuple(NORMS))
    ball: ConvexSet = Ball(radius) if norm == "l2" else L1Ball(radius)
    return made.within(Blocks.of_shapes(made.config["shapes"], ball) if tensors else ball)
