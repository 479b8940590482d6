"""Study of FedFW's Tables 1 and 2: test accuracy of FedDR, FedFW and FedFW+ in 20 cells each."""

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
    DIVERGED,
    ETA,
    KEEP,
    NORMS,
    RADIUS,
    RATES,
    Column,
    check_rows,
    guessing,
    make_problem,
    traced,
)
from papers.fedfw.tables import claims
from papers.fedfw.tables.numbers import derive
from papers.kit.health import learning
from papers.kit.parameters import parameters
from papers.kit.store import Spec
from papers.kit.study import Params, Study, Tolerance

CODE_EVERY = 100  # evaluations of a run of the authors' protocol

PARAMETERS = parameters(
    pictures=("mnist, or digits: the 8 x 8 pictures of scikit-learn", "mnist", "digits"),
    splits=(
        "splits: IID, three labels a client, three classes of the generator",
        ("iid", "labels", "classes"),
        ("labels",),
    ),
    seeds=("seeds; each fixes rows, split, test rows and batches", (0, 1, 2), (0, 1)),
    rounds=("rounds T of the protocol as written", 100, 20),
    evaluate_every=("rounds between two evaluations of the protocol as written", 5),
    clients=("clients", 10),
    rows=("training pictures of all clients, grey ones", 6000, 400),
    tested=("most test pictures", 5000, 360),
    cifar_rows=("training pictures of CIFAR-10; 0: without CIFAR-10", 2000, 0),
    most=("most generated rows of a client, a quarter of them for testing; 0: without", 1000, 0),
    cnn_rows=("training pictures of the CNN; 0: without the CNN", 400, 0),
    cnn_tested=("most test pictures of the CNN", 1000),
    cnn_seeds=("seeds of the CNN", (0,)),
    lambdas=("grid of lambda_0", claims.LAMBDAS, (1e-3, 1e-1)),
    short_lambdas=("grid of lambda_0 for CIFAR-10 and the CNN", claims.SHORT),
    etas=("grid of FedDR's eta; for CIFAR-10 and the CNN it is 10", claims.ETAS, (10.0,)),
    code_seeds=("seeds of the protocol behind the printed values", claims.CODE_SEEDS),
    code_rounds=("rounds of the protocol behind the printed values; the best one counts", 1000, 40),
    code_steps=("minibatches of a client per round in the protocol behind the printed values", 3),
    batch=("rows of a minibatch in the protocol behind the printed values", 64, 16),
)


class Grid(NamedTuple):
    """What is tried in a column, and on how much data."""

    lambdas: tuple[float, ...]
    rates: tuple[float, ...]
    etas: tuple[float, ...]
    seeds: tuple[int, ...]
    every: int
    sizes: dict[str, int]
    measured: int | None


def columns(p: Params) -> dict[str, Column]:
    kinds = {"cifar10": "cifar_rows", "synthetic": "most"}
    left_out = {source for source, key in kinds.items() if not p[key]}
    return {
        name: c
        for name, c in COLUMNS.items()
        if c.data not in left_out and c.split in p["splits"] and (c.net != "cnn" or p["cnn_rows"])
    }


def grid(column: Column, p: Params) -> Grid:
    """What is tried in a column: less where a round takes long."""
    cnn = column.net == "cnn"
    few = column.net == "cnn" or column.data == "cifar10"
    kind = "cnn" if cnn else column.data
    names = {"cnn": "cnn_rows", "cifar10": "cifar_rows", "pictures": "rows", "synthetic": "most"}
    rows = p[names[kind]]
    share = {"cnn": 2, "cifar10": 2, "pictures": 3}.get(kind)
    tested = p["cnn_tested"] if cnn else min(p["tested"], rows) if few else p["tested"]
    lambdas = tuple(map(float, p["short_lambdas" if few else "lambdas"]))
    return Grid(
        lambdas=lambdas[:2] if cnn else lambdas,  # the traced cells have the smallest
        rates=CNN_RATES if cnn else RATES[column.data],
        etas=(ETA,) if few else tuple(map(float, p["etas"])),
        seeds=tuple(p["cnn_seeds" if cnn else "seeds"]),
        every=p["evaluate_every"] * (2 if cnn else 1),
        sizes={"rows": rows, "tested": tested, "clients": p["clients"]},
        measured=max(1, rows // p["clients"] // share) if share else None,
    )


def specs(p: Params) -> dict[str, Spec]:
    check_rows("fw_tables", p)
    found: dict[str, Spec] = {}
    for name, column in columns(p).items():
        for norm in NORMS:
            cell = f"{name}_{norm}"
            g = grid(column, p)
            data = {"column": column, "norm": norm, "pictures": p["pictures"], **g.sizes}
            task = partial(make_problem, **data, measured=g.measured)
            for run, algorithm in as_written(g):
                if f"{cell}_{run}" not in DIVERGED:
                    made = Spec(algorithm, task, p["rounds"], g.seeds, g.every, KEEP)
                    found[f"{cell}_{run}"] = made
            if column.net != "cnn":  # a thousand rounds of it take hours
                found |= {f"{cell}_{k}": v for k, v in as_printed(name, norm, data, p).items()}
    return found


def as_written(g: Grid) -> Iterator[tuple[str, Any]]:
    """Names and algorithms of the paper's protocol: one step a round on all rows of a client."""
    for x in g.lambdas:
        yield f"fedfw_{x:g}", FedFW(x)
    for x in g.lambdas:
        yield f"plus_{x:g}", FedFWPlus(x)
    for lr in g.rates:
        for eta in g.etas:
            yield f"feddr_{lr:g}_{eta:g}", FedDR(lr, 1, eta=eta)


def as_printed(name: str, norm: str, data: Params, p: Params) -> dict[str, Spec]:
    """What the printed values were read off, as far as the authors' files tell.

    FedFW's clients start from the global model in every round, and each tensor has a ball of its
    own; FedDR makes one minibatch step a round, in one ball. Published code runs FedFW under the
    name of FedFW+ as well, so that equal settings are one run.
    """
    column = COLUMNS[name]
    if column.split == "labels" and column.data == "synthetic":
        return {}  # there the authors' code has three classes
    rounds = p["code_rounds"]
    seeds = tuple(p["code_seeds"])
    batch = p["batch"]
    every = max(1, rounds // CODE_EVERY)
    made: dict[str, Spec] = {}
    for lam, radius in dict.fromkeys(traced(name, norm, m) for m in ("fedfw", "plus")):
        problem = partial(make_problem, **data, code=True, radius=radius, tensors=True)
        algorithm = FedFWReset(lam, batch_size=batch, local_steps=p["code_steps"])
        made[f"code_fw_{lam:g}_r{radius:g}"] = Spec(algorithm, problem, rounds, seeds, every, CODE)
    baseline: Any = FedDR(**CODE_FEDDR, batch_size=batch)  # type: ignore[arg-type]
    problem = partial(make_problem, **data, code=True, radius=RADIUS)
    made["code_feddr"] = Spec(baseline, problem, rounds, seeds, every, CODE)
    return made


CODE = ("loss", "accuracy")


STUDY = Study(
    name="fw_tables",
    title="FedFW's Tables 1 and 2",
    paper="D",
    data=("mnist", "cifar10"),
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    paper_values=claims.PAPER_VALUES,
    watch={
        "*_synthetic_classes_*": learning(guessing(0.46, 0.58)),
        "*_synthetic_*": learning(guessing(0.33, 0.41)),
        "*": learning(0.1),
    },
    tolerances={"cnn_*": Tolerance(rounds=12)},
    # 94 minibatches are an epoch of MNIST at a client; smaller lambda_0 did better; of the authors'
    # runs one is printed, a claim takes three seeds to be judged.
    at_paper={
        "lambdas": (1e-5, *claims.LAMBDAS),
        "rows": 60_000,
        "tested": 10_000,
        "cifar_rows": 50_000,
        "most": 100_000,
        "cnn_rows": 60_000,
        "cnn_tested": 10_000,
        "cnn_seeds": (0, 1, 2),
        "code_steps": 94,
        "code_seeds": (0, 1, 2),
    },
    **PARAMETERS,
)
