"""The runs of the study of FedFW's Table 3, with their labels; each has a single seed.

Seeds run one by one, and CIFAR-10 has small grids: what runs together must fit into 3 GB.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from fedlib.algorithms.feddr import FedDR
from fedlib.algorithms.fedfw import FedFWSto
from papers.fedfw.cells import (
    CODE_FEDDR,
    COLUMNS,
    COLUMNS_3,
    DEFAULTS,
    ETA,
    KEEP,
    Labels,
    as_coded,
    check_rows,
    labels_of_cell,
    make_problem,
    run_as_traced,
)
from papers.kit.quantities import by_name
from papers.kit.store import Spec
from papers.kit.study import Params

# What the full profile tries.
SEEDS = (0, 1, 2)
LAMBDAS = (1e-4, 1e-3, 1e-2)
CIFAR_LAMBDAS = (1e-4, 1e-3)
RATES = (0.01, 0.05, 0.2)
CIFAR_RATES = (0.01, 0.05)
SYNTHETIC_RATES = (0.05, 0.2, 1.0)
#: The parameter with the number of rows, by data.
ROWS = {"pictures": "rows", "cifar10": "cifar_rows", "synthetic": "most"}


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give."""
    check_rows("fw_stochastic", p)
    return by_name([*runs(p)], DEFAULTS)


def runs(p: Params) -> Iterator[Spec]:
    """Table 3's protocol over its grids, then the one behind the printed values; a run a seed."""
    for column in COLUMNS_3:
        if not p[ROWS[COLUMNS[column].data]]:
            continue
        if COLUMNS[column].split != "classes":
            for seed in p["seeds"]:
                yield from as_written(column, seed, p)
        if column == as_coded(column):  # else the authors' code has three classes
            for seed in p["code_seeds"]:
                yield from as_printed(column, seed, p)


def run_of(
    algorithm: Any, column: str, seed: int, p: Params, labels: Labels, **options: Any
) -> Spec:
    """The run of an algorithm in a column with one seed."""
    source = COLUMNS[column].data
    rows = p[ROWS[source]]
    data: dict[str, Any] = {"column": COLUMNS[column], "norm": "l2", "pictures": p["pictures"]}
    sizes = {"rows": rows, "tested": p["tested"], "clients": p["clients"]}
    if source != "synthetic":
        sizes["measured"] = max(1, rows // p["clients"] // 4)
    problem = partial(make_problem, **data, **sizes, **options)
    complete: Labels = {**labels_of_cell(column), **labels, "only_seed": float(seed)}
    return Spec(
        algorithm,
        problem,
        p["rounds"],
        (int(seed),),
        p["evaluate_every"],
        KEEP,
        labels=complete,
    )


def as_written(column: str, seed: int, p: Params) -> Iterator[Spec]:
    """The grids of both methods by the protocol of the text."""
    source = COLUMNS[column].data
    lambdas = p["cifar_lambdas" if source == "cifar10" else "lambdas"]
    rates = p[{"synthetic": "synthetic_rates", "cifar10": "cifar_rates"}.get(source, "rates")]
    for lam in map(float, lambdas):
        labels: Labels = {"protocol": "text", "method": "sto", "lam": lam}
        yield run_of(
            FedFWSto(lam, p["batch"]),
            column,
            seed,
            p,
            labels,
        )
    for lr in map(float, rates):
        labels = {"protocol": "text", "method": "feddr", "lr": lr}
        feddr = FedDR(lr, 1, eta=ETA, batch_size=p["batch"])
        yield run_of(feddr, column, seed, p, labels)


def as_printed(column: str, seed: int, p: Params) -> Iterator[Spec]:
    """The settings that the authors' files trace a column to.

    Test rows of generated data are the clients' own by either protocol.
    """
    options = {} if COLUMNS[column].data == "synthetic" else {"code": True}
    labels = run_as_traced(column, "", "sto")
    sto = FedFWSto(float(labels["lam"]), p["batch"])
    yield run_of(
        sto,
        column,
        seed,
        p,
        labels,
        tensors=True,
        **options,
    )
    feddr: Any = FedDR(**CODE_FEDDR, batch_size=p["batch"])  # type: ignore[arg-type]
    yield run_of(
        feddr,
        column,
        seed,
        p,
        run_as_traced(column, "", "feddr"),
        **options,
    )
