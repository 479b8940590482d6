"""The runs of the study of many objectives: two methods on 2, 5 and 40 tasks of one picture."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

import torch

from fedlib.algorithms.fedcmoo import FedCMOO
from fedlib.algorithms.fsmgda import FSMGDA
from fedlib.core import Problem
from fedlib.core.describe import renamed_from
from papers.fedcmoo.common import CLIPPED, ENCODERS, task, work
from papers.fedcmoo.data import pairs
from papers.fedcmoo.problems.attributes import GROUPS, NAMES, Labelled, attributes, labelled
from papers.fedcmoo.standin import DIGITS, standin_pairs, stands_in
from papers.kit.quantities import Defaults, by_name
from papers.kit.store import Spec
from papers.kit.study import Params

#: Sets of tasks -> M: two halves and five groups of the attributes, and each by itself.
SETS = {"halves": 2, "groups": 5, "attributes": 40}
DEFAULTS: Defaults = {"tasks": None, "method": None}
STAND_IN = "stand-in"  # in place of the name of a set of pictures

#: Server and client step size, the same for both methods: CelebA-5's of the paper, and CelebA's.
RATES = {"halves": (1.6, 0.3), "groups": (1.6, 0.3), "attributes": (1.0, 0.2)}

HALF = len(NAMES) // 2
#: The attributes of every task, by their numbers; None: each is a task.
MEMBERS = {
    "halves": (tuple(range(HALF)), tuple(range(HALF, len(NAMES)))),
    "groups": GROUPS,
    "attributes": None,
}


@renamed_from("papers.fedcmoo.many.many_problem")
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
    """A set of tasks on pictures of a source, split by the seed."""
    test = own_pictures(source, "test", test_pictures)
    share = test.a.float().mean(0)
    majority = round(float(torch.maximum(share, 1 - share).mean()), 6)
    config: dict[str, Any] = {"data": source, "tasks": tasks, "majority": majority}
    if source == STAND_IN:
        config["stand_in"] = DIGITS
    return attributes(
        own_pictures(source, "train", pictures),
        test,
        groups=MEMBERS[tasks],
        clients=clients,
        seed=seed,
        alpha=alpha,
        config=config,
    )


@lru_cache(maxsize=4)
def own_pictures(source: str, split: str, limit: int) -> Labelled:
    """The first pictures of a source with their attributes, all if the limit is 0."""
    if source == STAND_IN:
        return labelled(standin_pairs("mnist_fashion", split, limit))
    return labelled(pairs.load(source, split, limit))


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give."""
    return by_name([*runs(p)], DEFAULTS)


def runs(p: Params) -> Iterator[Spec]:
    """Both methods on every set of tasks."""
    source = STAND_IN if stands_in("cmoo_many", p) else "mnist_fashion"
    for tasks, count in SETS.items():
        numbers = range(1, count + 1)
        curves = [f"{curve}_{number}" for number in numbers for curve in ("loss", "accuracy")]
        common = {**work(p, RATES[tasks]), "shared": ENCODERS["mnist_fashion"]}
        methods: dict[str, Any] = {
            "fedcmoo": FedCMOO(**common),
            "fsmgda": FSMGDA(**common, least=CLIPPED if tasks == "halves" else None),
        }
        for name, algorithm in methods.items():
            yield Spec(
                algorithm,
                partial(many_problem, source=source, tasks=tasks, **task(p)),
                p["rounds"],
                tuple(p["seeds"]),
                keep=("loss", "accuracy", *curves, "direction"),
                labels={"tasks": tasks, "method": name},
            )
