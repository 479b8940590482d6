"""The runs of the QM9 study: three methods on molecules, and for one round on quadratics."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

import torch

from fedlib.algorithms.fedcmoo import FedCMOO, FedCMOOPref
from fedlib.algorithms.fsmgda import FSMGDA
from fedlib.core import Problem
from fedlib.core.describe import renamed_from
from fedlib.core.sampling import seeded
from fedlib.problems import pareto
from fedlib.steps import Adam
from papers.fedcmoo import networks
from papers.fedcmoo.data.molecules import sets
from papers.fedcmoo.problems.qm9 import RULE, generated, qm9
from papers.fedcmoo.standin import stands_in
from papers.kit.quantities import Defaults, by_name
from papers.kit.store import Spec
from papers.kit.study import Params

#: Runs on quadratics have their number of objectives as a label; those on QM9 have none.
DEFAULTS: Defaults = {"method": None, "objectives": None}
GENERATED = "generated graphs whose targets follow a known rule"
TASKS = tuple(range(1, 12))
LOSSES = ("loss", *(f"loss_{task}" for task in TASKS))


@lru_cache(maxsize=1)
def sizes() -> tuple[int, int]:
    """The parameters of the network, and of them those of the encoder."""
    module = networks.molecule_network(torch.Generator())
    dim = sum(parameter.numel() for parameter in module.parameters())
    return dim, networks.encoder_size(module)


@renamed_from("papers.fedcmoo.qm9.molecule_problem")
@lru_cache(maxsize=2)
def molecule_problem(
    seed: int,
    *,
    clients: int,
    molecules: int,
    test_molecules: int,
    stand_in: bool = False,
) -> Problem:
    """The eleven targets of molecules or, as a stand-in, of generated graphs."""
    dim, _ = sizes()
    config: dict[str, Any] = {"dim": dim}
    if stand_in:
        train, test = generated(molecules, test_molecules)
        config |= {"tasks": list(RULE), "stand_in": GENERATED}
    else:
        train, test = sets(molecules, test_molecules)
    return qm9(
        train,
        test,
        clients=clients,
        seed=seed,
        config=config,
    )


@renamed_from("papers.fedcmoo.qm9.counted_problem")
@lru_cache(maxsize=8)
def counted_problem(seed: int, *, objectives: int, dim: int) -> Problem:
    """Quadratics with random centres, four clients with a row each: for counting what is sent."""
    centres = torch.randn(
        4,
        1,
        objectives,
        dim,
        generator=seeded(seed, "split"),
    )
    return pareto(centres)


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give."""
    return by_name([*on_molecules(p), *counted(p)], DEFAULTS)


def on_molecules(p: Params) -> Iterator[Spec]:
    """The three methods on QM9."""
    work: dict[str, Any] = {
        "lr": float(p["lr"]),
        "local_steps": p["local_steps"],
        "participants": p["participants"],
        "batch_size": p["batch"],
        "shared": sizes()[1],
        "local": Adam(),
    }
    task: dict[str, Any] = {name: p[name] for name in ("clients", "molecules", "test_molecules")}
    if stands_in("cmoo_qm9", p):
        task["stand_in"] = True
    methods: dict[str, Any] = {
        "fedcmoo": FedCMOO(**work),
        "pref": FedCMOOPref(**work, value_batch_size=p["loss_rows"]),
        "fsmgda": FSMGDA(**work),
    }
    for name, algorithm in methods.items():
        yield Spec(
            algorithm,
            partial(molecule_problem, **task),
            p["fsmgda_rounds"] if name == "fsmgda" else p["rounds"],
            tuple(p["seeds"]),
            p["evaluate_every"],
            keep=(*LOSSES, "direction", *(f"weight_{task}" for task in TASKS)),
            optional=("mu", "fallback"),
            labels={"method": name},
        )


def counted(p: Params) -> Iterator[Spec]:
    """One round of the three methods on quadratics, for each number of objectives."""
    work: dict[str, Any] = {"lr": 0.1, "local_steps": 1, "participants": 2}
    methods: dict[str, Any] = {
        "fsmgda": FSMGDA(**work),
        "fedcmoo": FedCMOO(**work),
        "pref": FedCMOOPref(**work),
    }
    for objectives in p["objectives"]:
        problem = partial(counted_problem, objectives=objectives, dim=p["count_dim"])
        for name, algorithm in methods.items():
            labels = {"method": name, "objectives": objectives}
            yield Spec(
                algorithm,
                problem,
                1,
                (0,),
                keep=("f",),
                labels=labels,
            )
