"""The runs of the study of FedFW's Tables 1 and 2, with their labels."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from fedlib.algorithms.feddr import FedDR
from fedlib.algorithms.fedfw import FedFW, FedFWPlus
from fedlib.algorithms.fedfw_reset import FedFWReset
from papers.fedfw.cells import (
    CNN_RATES,
    CODE_FEDDR,
    COLUMNS,
    DEFAULTS,
    DIVERGED,
    ETA,
    KEEP,
    NORMS,
    RADIUS,
    RATES,
    Column,
    Labels,
    as_coded,
    check_rows,
    labels_of_cell,
    make_problem,
    run_as_traced,
)
from papers.kit.quantities import by_name, name_of
from papers.kit.store import Spec
from papers.kit.study import Params

# Grids of the full profile.
LAMBDAS = (1e-4, 1e-3, 1e-2, 1e-1)
SHORT = (1e-3, 1e-2, 1e-1)
ETAS = (1.0, 10.0, 100.0)
CODE_SEEDS = (0,)

CODE_EVERY = 100  # evaluations of a run of the authors' protocol
CODE_KEEP = ("loss", "accuracy")
#: The parameter with the number of rows, by data; the CNN has its own.
ROWS = {"pictures": "rows", "synthetic": "most", "cifar10": "cifar_rows"}
#: One of how many training rows is measured; of generated data all are.
MEASURED = {"pictures": 3, "cifar10": 2}


class Grid(NamedTuple):
    """What is tried in a column, and on how much data."""

    lambdas: tuple[float, ...]
    rates: tuple[float, ...]
    etas: tuple[float, ...]
    seeds: tuple[int, ...]
    every: int
    sizes: dict[str, int]
    measured: int | None


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give."""
    check_rows("fw_tables", p)
    return by_name([*runs(p)], DEFAULTS)


def runs(p: Params) -> Iterator[Spec]:
    """The runs of every cell, by the protocol of the text and by that of the printed values."""
    for name, column in columns(p).items():
        for norm in NORMS:
            yield from as_written(name, norm, p)
            if column.net != "cnn":  # a thousand rounds of it take hours
                yield from as_printed(name, norm, p)


def columns(p: Params) -> dict[str, Column]:
    """The columns whose data and splits the parameters ask for."""
    present = {}
    for name, column in COLUMNS.items():
        rows = p["cnn_rows"] if column.net == "cnn" else 1
        with_data = column.data == "pictures" or p[ROWS[column.data]]
        if rows and with_data and column.split in p["splits"]:
            present[name] = column
    return present


def grid(column: Column, p: Params) -> Grid:
    """What is tried in a column: less where a round takes long."""
    if column.net == "cnn":
        return grid_of_cnn(p)
    rows = p[ROWS[column.data]]
    short = column.data == "cifar10"
    lambdas = p["short_lambdas" if short else "lambdas"]
    tested = min(p["tested"], rows) if short else p["tested"]
    one_of = MEASURED.get(column.data)
    return Grid(
        lambdas=tuple(map(float, lambdas)),
        rates=RATES[column.data],
        etas=(ETA,) if short else tuple(map(float, p["etas"])),
        seeds=tuple(p["seeds"]),
        every=p["evaluate_every"],
        sizes={"rows": rows, "tested": tested, "clients": p["clients"]},
        measured=max(1, rows // p["clients"] // one_of) if one_of else None,
    )


def grid_of_cnn(p: Params) -> Grid:
    """The same for the CNN."""
    rows = p["cnn_rows"]
    clients = p["clients"]
    lambdas = tuple(map(float, p["short_lambdas"]))
    return Grid(
        lambdas=lambdas[:2],  # the traced cells have the smallest
        rates=CNN_RATES,
        etas=(ETA,),
        seeds=tuple(p["cnn_seeds"]),
        every=2 * p["evaluate_every"],
        sizes={"rows": rows, "tested": p["cnn_tested"], "clients": clients},
        measured=max(1, rows // clients // 2),
    )


def problem_of(name: str, norm: str, p: Params, **options: Any) -> Any:
    """What makes the problem of a cell."""
    column = COLUMNS[name]
    sizes = grid(column, p).sizes
    data = {"column": column, "norm": norm, "pictures": p["pictures"], **sizes}
    return partial(make_problem, **data, **options)


def as_written(name: str, norm: str, p: Params) -> Iterator[Spec]:
    """The paper's protocol: one step a round on all rows of a client."""
    tried = grid(COLUMNS[name], p)
    problem = problem_of(name, norm, p, measured=tried.measured)
    for setting, algorithm in methods(tried):
        labels: Labels = {**labels_of_cell(name, norm), "protocol": "text", **setting}
        if name_of(labels, DEFAULTS) in DIVERGED:
            continue
        yield Spec(
            algorithm,
            problem,
            p["rounds"],
            tried.seeds,
            tried.every,
            KEEP,
            labels=labels,
        )


def methods(tried: Grid) -> Iterator[tuple[Labels, Any]]:
    """Labels and algorithms of the points of a grid."""
    for lam in tried.lambdas:
        yield {"method": "fedfw", "lam": lam}, FedFW(lam)
    for lam in tried.lambdas:
        yield {"method": "plus", "lam": lam}, FedFWPlus(lam)
    for lr in tried.rates:
        for eta in tried.etas:
            yield {"method": "feddr", "lr": lr, "eta": eta}, FedDR(lr, 1, eta=eta)


def as_printed(name: str, norm: str, p: Params) -> Iterator[Spec]:
    """What the printed values were read off, as far as the authors' files tell.

    FedFW's clients start from the global model in every round, and each tensor has a ball of its
    own; FedDR makes one minibatch step a round, in one ball. Published code runs FedFW under the
    name of FedFW+ as well, so that equal settings are one run.
    """
    if name != as_coded(name):
        return  # there the authors' code has three classes
    rounds = p["code_rounds"]
    every = max(1, rounds // CODE_EVERY)
    run = partial(Spec, rounds=rounds, seeds=tuple(p["code_seeds"]), evaluate_every=every)
    for method in ("fedfw", "plus"):
        labels = run_as_traced(name, norm, method)
        fw = FedFWReset(labels["lam"], batch_size=p["batch"], local_steps=p["code_steps"])  # type: ignore[arg-type]
        problem = problem_of(
            name,
            norm,
            p,
            code=True,
            radius=labels["radius"],
            tensors=True,
        )
        yield run(fw, problem, keep=CODE_KEEP, labels=labels)
    feddr: Any = FedDR(**CODE_FEDDR, batch_size=p["batch"])  # type: ignore[arg-type]
    problem = problem_of(
        name,
        norm,
        p,
        code=True,
        radius=RADIUS,
    )
    yield run(feddr, problem, keep=CODE_KEEP, labels=run_as_traced(name, norm, "feddr"))
