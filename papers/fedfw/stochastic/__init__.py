"""Study of FedFW's Table 3: FedFW-sto against FedDR, 100 clients, minibatches."""

from __future__ import annotations

from functools import partial
from typing import Any

from fedlib.algorithms.feddr import FedDR
from fedlib.algorithms.fedfw import FedFWSto
from papers.fedfw.cells import (
    CODE_FEDDR,
    COLUMNS,
    COLUMNS_3,
    ETA,
    KEEP,
    guessing,
    make_problem,
    traced,
)
from papers.fedfw.stochastic import claims
from papers.fedfw.stochastic.numbers import derive
from papers.kit.health import HealthChecks, learning
from papers.kit.store import Spec
from papers.kit.study import Params, Study, parameters

__all__ = ["STUDY", "specs"]

PARAMETERS = parameters(
    pictures=("mnist, or digits: the 8 x 8 pictures of scikit-learn", "mnist", "digits"),
    seeds=("seeds; each fixes rows, split, test rows and batches", (0, 1, 2), (0, 1)),
    rounds=("rounds T", 300, 40),
    evaluate_every=("rounds between two evaluations", 10, 4),
    clients=("clients", 100, 10),
    batch=("rows of a client's minibatch", 64, 16),
    rows=("training pictures of all clients, grey ones", 20_000, 1400),
    tested=("most test pictures", 2000, 360),
    cifar_rows=("training pictures of CIFAR-10; 0: without CIFAR-10", 10_000, 0),
    most=("most generated rows of a client, a quarter of them for testing; 0: without", 600, 0),
    lambdas=("grid of lambda_0", claims.LAMBDAS, (0.001, 0.01)),
    rates=("grid of FedDR's step sizes on pictures", claims.RATES, (0.05, 0.2)),
    cifar_lambdas=("grid of lambda_0 on CIFAR-10", claims.CIFAR_LAMBDAS),
    cifar_rates=("grid of FedDR's step sizes on CIFAR-10", claims.CIFAR_RATES),
    synthetic_rates=("grid of FedDR's step sizes on generated data", claims.SYNTHETIC_RATES),
    code_seeds=("seeds of the protocol behind the printed values", claims.CODE_SEEDS, (0, 1)),
)


def specs(p: Params) -> dict[str, Spec]:
    """Table 3's protocol over its grids, then the one behind the printed values; a run a seed.

    Seeds run one by one, and CIFAR-10 has small grids: what runs together must fit into 3 GB.
    """
    found: dict[str, Spec] = {}
    sizes = {"pictures": p["rows"], "cifar10": p["cifar_rows"], "synthetic": p["most"]}
    for name in COLUMNS_3:
        column = COLUMNS[name]
        if not sizes[column.data]:
            continue
        task: dict[str, Any] = {"column": column, "norm": "l2", "pictures": p["pictures"]}
        task |= {"rows": sizes[column.data], "tested": p["tested"], "clients": p["clients"]}
        if column.data != "synthetic":
            task["measured"] = max(1, sizes[column.data] // p["clients"] // 4)
        if column.split != "classes":
            for seed in p["seeds"]:
                for run, algorithm in methods(column.data, p).items():
                    found[f"{name}_{run}_seed{seed}"] = one(algorithm, task, int(seed), p)
        if not name.endswith("synthetic_labels"):  # there the authors' code has three classes
            for seed in p["code_seeds"]:
                for run, algorithm in as_printed(name, p).items():
                    more = {**task, "tensors": True} if run == "code_sto" else {**task}
                    if column.data != "synthetic":  # whose test rows are the clients' own anyway
                        more["code"] = True
                    found[f"{name}_{run}_seed{seed}"] = one(algorithm, more, int(seed), p)
    return found


def one(algorithm: Any, task: dict[str, Any], seed: int, p: Params) -> Spec:
    made: Any = partial(make_problem, **task)
    return Spec(algorithm, made, p["rounds"], (seed,), p["evaluate_every"], KEEP)


def methods(source: str, p: Params) -> dict[str, Any]:
    rates = p[{"synthetic": "synthetic_rates", "cifar10": "cifar_rates"}.get(source, "rates")]
    lambdas = p["cifar_lambdas" if source == "cifar10" else "lambdas"]
    batch = p["batch"]
    found: dict[str, Any] = {f"sto_{x:g}": FedFWSto(float(x), batch) for x in lambdas}
    return found | {f"feddr_{x:g}": FedDR(float(x), 1, eta=ETA, batch_size=batch) for x in rates}


def as_printed(name: str, p: Params) -> dict[str, Any]:
    """The settings that the authors' files trace a column to."""
    baseline: Any = FedDR(**CODE_FEDDR, batch_size=p["batch"])  # type: ignore[arg-type]
    return {"code_sto": FedFWSto(traced(name, "", "sto")[0], p["batch"]), "code_feddr": baseline}


WATCH: HealthChecks = {"*_synthetic_*": learning(guessing(0.39, 0.41)), "*": learning(0.1)}


STUDY = Study(
    name="fw_stochastic",
    title="FedFW's Table 3",
    paper="D",
    data=("mnist", "cifar10"),
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    paper_values=claims.PAPER_VALUES,
    watch=WATCH,
    at_paper={"rows": 60_000, "tested": 10_000, "cifar_rows": 50_000, "most": 100_000},
    **PARAMETERS,
)
