"""Study of FedCMOO's Figure 3 (eleven properties of molecules) and of what is uploaded."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import torch

from fedlib.algorithms.fedcmoo import FedCMOO, FedCMOOPref
from fedlib.algorithms.fsmgda import FSMGDA
from fedlib.core import Problem
from fedlib.core.sampling import seeded
from fedlib.problems import pareto
from fedlib.steps import Adam
from papers.fedcmoo import networks
from papers.fedcmoo.data.molecules import sets
from papers.fedcmoo.problems.qm9 import RULE, generated, qm9
from papers.fedcmoo.qm9 import claims
from papers.fedcmoo.qm9.numbers import FIGURES, LOSSES, derive
from papers.fedcmoo.standin import noted, stands_in
from papers.kit.health import HealthCheck, nothing
from papers.kit.parameters import parameters
from papers.kit.store import Spec
from papers.kit.study import Params, Study, Tolerance

GENERATED = "generated graphs whose targets follow a known rule"

PARAMETERS = parameters(
    source=("0: QM9, 2: generated graphs with targets of a known rule, without a download", 0, 2),
    seeds=("seeds; each fixes start, split, participants and batches", (0,)),
    rounds=("communication rounds T of FedCMOO and FedCMOO-Pref", 22, 1),
    fsmgda_rounds=("rounds of FSMGDA, whose clients take six times as many steps", 8, 1),
    lr=("step size of the clients' Adam", 0.01),
    clients=("clients N", 20),
    participants=("clients a round", 4, 1),
    local_steps=("local steps E, a minibatch each", 14, 2),
    batch=("molecules of a client's minibatch", 8, 2),
    loss_rows=("molecules on which a client of FedCMOO-Pref estimates its losses", 32, 2),
    molecules=("training molecules of all clients together", 40_000, 200),
    test_molecules=("test molecules on which the losses of the figures are measured", 500, 20),
    evaluate_every=("rounds between two evaluations", 1),
    objectives=(
        "numbers of objectives M of the one-round runs whose uploads are counted",
        (2, 5, 11, 40),
        (2,),
    ),
    count_dim=("parameters d of the model in the one-round runs", 20_000, 2000),
)


@lru_cache(maxsize=1)
def sizes() -> tuple[int, int]:
    module = networks.molecule_network(torch.Generator())
    return sum(p.numel() for p in module.parameters()), networks.encoder_size(module)


@lru_cache(maxsize=2)
def molecule_problem(
    seed: int, *, clients: int, molecules: int, test_molecules: int, stand_in: bool = False
) -> Problem:
    """The eleven targets of molecules or, as a stand-in, of generated graphs."""
    train, test = (generated if stand_in else sets)(molecules, test_molecules)
    made = {"tasks": list(RULE), "stand_in": GENERATED} if stand_in else {}
    return qm9(train, test, clients=clients, seed=seed, config={"dim": sizes()[0], **made})


@lru_cache(maxsize=8)
def counted_problem(seed: int, *, objectives: int, dim: int) -> Problem:
    """Quadratics with random centres, four clients with a row each: for counting what is sent."""
    centres = torch.randn(4, 1, objectives, dim, generator=seeded(seed, "split"))
    return pareto(centres)


def specs(p: Params) -> dict[str, Spec]:
    common: dict[str, Any] = {
        "lr": float(p["lr"]),
        "local_steps": p["local_steps"],
        "participants": p["participants"],
        "batch_size": p["batch"],
        "shared": sizes()[1],
        "local": Adam(),
    }
    held: dict[str, Any] = {k: p[k] for k in ("clients", "molecules", "test_molecules")}
    if stands_in("cmoo_qm9", p):
        held["stand_in"] = True
    problem = partial(molecule_problem, **held)
    keep = (*LOSSES, "direction", *(f"weight_{k}" for k in range(1, 12)))
    seeds, every = tuple(p["seeds"]), p["evaluate_every"]
    main = Spec(FedCMOO(**common), problem, p["rounds"], seeds, every, keep, ("mu", "fallback"))
    preferred = FedCMOOPref(**common, value_batch_size=p["loss_rows"])
    found = {
        "qm9_fedcmoo": main,
        "qm9_pref": replace(main, algorithm=preferred),
        "qm9_fsmgda": replace(main, algorithm=FSMGDA(**common), rounds=p["fsmgda_rounds"]),
    }
    return found | _counted(p)


def _counted(p: Params) -> dict[str, Spec]:
    work: dict[str, Any] = {"lr": 0.1, "local_steps": 1, "participants": 2}
    methods: dict[str, Any] = {
        "fsmgda": FSMGDA(**work),
        "fedcmoo": FedCMOO(**work),
        "pref": FedCMOOPref(**work),
    }
    return {
        f"count_{name}_{tasks}": Spec(
            method,
            partial(counted_problem, objectives=tasks, dim=p["count_dim"]),
            rounds=1,
            seeds=(0,),
            keep=("f",),
        )
        for tasks in p["objectives"]
        for name, method in methods.items()
    }


STUDY = Study(
    name="cmoo_qm9",
    title="Properties of molecules, FedCMOO",
    paper="C",
    data=("qm9",),
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    paper_values=claims.PAPER_VALUES,
    figures=noted(FIGURES),
    watch={
        "count_*": nothing("one round, whose uploads are counted"),
        "*": (HealthCheck("loss"), HealthCheck("loss_*")),
    },
    tolerances={"*": Tolerance(rounds=1)},
    at_paper={"rounds": 200, "fsmgda_rounds": 200, "batch": 128, "seeds": (0, 1, 2)},
    **PARAMETERS,
)
