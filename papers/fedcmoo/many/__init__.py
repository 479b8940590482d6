"""Study of FedCMOO's Figures 1, 8, 9 with many objectives: 2, 5 and 40 tasks of one picture.

The paper's forty attributes are those of CelebA's faces, which may not be passed on. Here stand
forty attributes of a digit and an item (`papers.fedcmoo.data.attributes`), in the quick profile
the same attributes of scikit-learn's digits, which need no download.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import torch

from fedlib.algorithms.fedcmoo import FSMGDA, FedCMOO
from fedlib.core import Problem
from papers.fedcmoo.common import CLIPPED, ENCODERS, task, work
from papers.fedcmoo.data import pairs
from papers.fedcmoo.data.attributes import GROUPS, NAMES, Labelled, labelled
from papers.fedcmoo.many import claims, figures
from papers.fedcmoo.many.numbers import SETS, derive
from papers.fedcmoo.problems.attributes import attributes
from papers.fedcmoo.standin import DIGITS, noted, standin_pairs, stands_in
from papers.kit.health import HealthCheck, HealthChecks
from papers.kit.store import Spec
from papers.kit.study import Params, Study, parameters
from papers.kit.tolerance import Tolerance

__all__ = ["STUDY", "many_problem", "own_pictures", "specs"]

STAND_IN = "stand-in"  # in place of the name of a set of pictures

#: Server and client step size, the same for both methods: CelebA-5's of the paper, and CelebA's.
RATES = {"halves": (1.6, 0.3), "groups": (1.6, 0.3), "attributes": (1.0, 0.2)}

#: The attributes of every task, by their numbers; None: each is a task.
MEMBERS = {
    "halves": (tuple(range(len(NAMES) // 2)), tuple(range(len(NAMES) // 2, len(NAMES)))),
    "groups": GROUPS,
    "attributes": None,
}

PARAMETERS = parameters(
    seeds=("seeds; each fixes start, split, participants and batches", (0,)),
    rounds=("communication rounds T", 25, 2),
    source=("0: a digit and an item, 2: pairs of scikit-learn's digits", 0, 2),
    clients=("clients N", 100, 6),
    participants=("clients a round", 5, 1),
    local_steps=("local steps E, a minibatch each", 10, 2),
    batch=("rows of a client's minibatch", 128, 8),
    alpha=("concentration of the Dirichlet split", 0.3),
    pictures=("0: all training pictures; else the first so many", 0, 600),
    test_pictures=("0: all test pictures; else the first so many", 5000, 100),
)


@lru_cache(maxsize=3)
def many_problem(
    seed: int,
    *,
    source: str,
    tasks: str,
    clients: int,
    alpha: float,
    pictures: int,
    test_pictures: int,
) -> Problem:
    test = own_pictures(source, "test", test_pictures)
    share = test.a.float().mean(0)
    majority = round(float(torch.maximum(share, 1 - share).mean()), 6)
    told = {"data": source, "tasks": tasks, "majority": majority}
    return attributes(
        own_pictures(source, "train", pictures),
        test,
        groups=MEMBERS[tasks],
        clients=clients,
        seed=seed,
        alpha=alpha,
        config=told | ({"stand_in": DIGITS} if source == STAND_IN else {}),
    )


@lru_cache(maxsize=4)
def own_pictures(source: str, split: str, limit: int) -> Labelled:
    if source == STAND_IN:
        return labelled(standin_pairs("mnist_fashion", split, limit))
    return labelled(pairs.load(source, split, limit or None))


def specs(p: Params) -> dict[str, Spec]:
    found: dict[str, Spec] = {}
    source = STAND_IN if stands_in("cmoo_many", p) else "mnist_fashion"
    for tasks, count in SETS.items():
        each = [f"{what}_{k}" for k in range(1, count + 1) for what in ("loss", "accuracy")]
        keep = ("loss", "accuracy", *each, "direction")
        problem = partial(many_problem, source=source, tasks=tasks, **task(p))
        common = {**work(p, RATES[tasks]), "shared": ENCODERS["mnist_fashion"]}
        least = CLIPPED if tasks == "halves" else None
        both: dict[str, Any] = {
            "fedcmoo": FedCMOO(**common),
            "fsmgda": FSMGDA(**common, least=least),
        }
        for name, made in both.items():
            found[f"{tasks}_{name}"] = Spec(
                made, problem, p["rounds"], tuple(p["seeds"]), keep=keep
            )
    return found


WATCH: HealthChecks = {
    "*": (
        HealthCheck("loss"),
        HealthCheck("loss_*"),
        HealthCheck("accuracy", chance=lambda c: c["problem"]["majority"]),
    ),
}


STUDY = Study(
    name="cmoo_many",
    title="Many objectives",
    paper="C",
    data=("mnist", "fashion_mnist"),
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    figures=noted(figures.FIGURES),
    watch=WATCH,
    tolerances={"*": Tolerance(rounds=1)},
    at_paper={"rounds": 200, "participants": 10, "seeds": (0, 1, 2)},
    **PARAMETERS,
)
