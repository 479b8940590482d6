"""Study of FedFW's Table 3: FedFW-sto against FedDR, 100 clients, minibatches."""

from __future__ import annotations

from functools import partial
from typing import Any

from fedlib.algorithms.feddr import FedDR
from fedlib.algorithms.fedfw import FedFWSto
from fedlib.store import Spec
from fedlib.studies import fw_stochastic_claims as claims
from fedlib.studies import fw_stochastic_figures as figures
from fedlib.studies.base import Params, Study
from fedlib.studies.fw_cells import COLUMNS, make_problem
from fedlib.studies.fw_stochastic_numbers import COLUMNS_3, TRACED_3, derive

__all__ = ["STUDY", "specs"]

KEEP = ("loss", "accuracy", "gap", "size")
ETA = 10.0
CODE_FEDDR = {"lr": 0.05, "eta": 100.0, "relaxation": 0.01, "local_steps": 1}

PARAMETERS = {
    "pictures": "mnist, or digits: the 8 x 8 pictures of scikit-learn",
    "seeds": "seeds; each fixes rows, split, test rows and batches",
    "rounds": "rounds T",
    "evaluate_every": "rounds between two evaluations",
    "clients": "clients",
    "batch": "rows of a client's minibatch",
    "rows": "training pictures of all clients, grey ones",
    "tested": "most test pictures",
    "cifar_rows": "training pictures of CIFAR-10; 0: without CIFAR-10",
    "most": "most generated rows of a client, a quarter of them for testing; 0: without",
    "lambdas": "grid of lambda_0",
    "rates": "grid of FedDR's step sizes on pictures",
    "cifar_lambdas": "grid of lambda_0 on CIFAR-10",
    "cifar_rates": "grid of FedDR's step sizes on CIFAR-10",
    "synthetic_rates": "grid of FedDR's step sizes on generated data",
    "code_seeds": "seeds of the protocol behind the printed values",
}
FULL: Params = {
    "pictures": "mnist",
    "seeds": (0, 1, 2),
    "rounds": 300,
    "evaluate_every": 10,
    "clients": 100,
    "batch": 64,
    "rows": 20_000,
    "tested": 2000,
    "cifar_rows": 10_000,
    "most": 600,
    "lambdas": (1e-4, 1e-3, 1e-2),
    "rates": (0.01, 0.05, 0.2),
    "cifar_lambdas": (1e-4, 1e-3),
    "cifar_rates": (0.01, 0.05),
    "synthetic_rates": (0.05, 0.2, 1.0),
    "code_seeds": (0,),
}
QUICK: Params = {
    **FULL,
    "seeds": (0, 1),
    "pictures": "digits",
    "rounds": 40,
    "evaluate_every": 4,
    "clients": 10,
    "batch": 16,
    "rows": 1400,
    "tested": 360,
    "cifar_rows": 0,
    "most": 0,
    "lambdas": (1e-3, 1e-2),
    "rates": (0.05, 0.2),
}


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
        if name in TRACED_3:
            for seed in p["code_seeds"]:
                for run, algorithm in as_printed(name, p).items():
                    more = {**task, "code": True, "tensors": run == "code_sto"}
                    found[f"{name}_{run}_seed{seed}"] = one(algorithm, more, int(seed), p)
    return found


def one(algorithm: Any, task: dict[str, Any], seed: int, p: Params) -> Spec:
    """One seed of one method."""
    made: Any = partial(make_problem, **task)
    return Spec(algorithm, made, p["rounds"], (seed,), p["evaluate_every"], KEEP)


def methods(source: str, p: Params) -> dict[str, Any]:
    """FedFW-sto over lambda_0, FedDR over its step size, both with one minibatch a round."""
    rates = p[{"synthetic": "synthetic_rates", "cifar10": "cifar_rates"}.get(source, "rates")]
    lambdas = p["cifar_lambdas" if source == "cifar10" else "lambdas"]
    batch = p["batch"]
    found: dict[str, Any] = {f"sto_{x:g}": FedFWSto(float(x), batch) for x in lambdas}
    return found | {f"feddr_{x:g}": FedDR(float(x), 1, eta=ETA, batch_size=batch) for x in rates}


def as_printed(name: str, p: Params) -> dict[str, Any]:
    """The settings that the authors' files trace a column to."""
    baseline: Any = FedDR(**CODE_FEDDR, batch_size=p["batch"])  # type: ignore[arg-type]
    return {"code_sto": FedFWSto(TRACED_3[name], p["batch"]), "code_feddr": baseline}


STUDY = Study(
    name="fw_stochastic",
    title="FedFW's Table 3",
    paper="D",
    profiles={"quick": QUICK, "full": FULL},
    parameters=PARAMETERS,
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    paper_values=claims.PAPER_VALUES,
    figures=figures.FIGURES,
)
