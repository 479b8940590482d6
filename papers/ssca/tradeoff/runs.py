"""The runs of the study of norm against cost, with the labels by which everything finds them."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from papers.kit.quantities import Defaults, by_name
from papers.kit.store import Spec
from papers.kit.study import Params
from papers.ssca import common
from papers.ssca.common import SPLITS, constrained, ssca
from papers.ssca.long.problem import one_constraint
from papers.ssca.tradeoff.theorem import STEPS, theorem_problem

METRICS = ("cost", "norm", "accuracy")  # of the runs of Figure 4
PATH = ("cost", "norm", "slope", "along", "across")  # of the runs of Theorem 5
EVERY = 20  # rounds between two evaluations of the runs of Theorem 5

#: The labels of runs. `method` is `ssca` (27), `limit` (37), or `theorem`, a run of Theorem 5.
DEFAULTS: Defaults = {"split": None, "method": None, "ridge": None, "U": None}


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give."""
    return by_name([*swept(p), *theorem(p)], DEFAULTS)


def swept(p: Params) -> Iterator[Spec]:
    """Both forms over samples and over features, evaluated at the start and at the end alone."""
    for split in SPLITS:
        arguments = {"split": split, "batch": p["batch"], "clients": p["clients"]}
        run: Any = partial(
            Spec,
            problem=common.problem_of(p, split),
            rounds=p["rounds"],
            seeds=p["seeds"],
            evaluate_every=p["rounds"],
            keep=METRICS,
        )
        for ridge in p["ridges"]:
            method = ssca(**arguments, ridge=ridge)
            yield run(method, labels={"split": split, "method": "ssca", "ridge": ridge})
        for level in p["levels"]:
            limited = constrained(**arguments, level=level)
            yield run(limited, labels={"split": split, "method": "limit", "U": level})


def theorem(p: Params) -> Iterator[Spec]:
    """The runs of Theorem 5."""
    problem = partial(
        theorem_problem,
        pictures=p["theorem_pictures"],
        clients=p["theorem_clients"],
        hidden=p["theorem_hidden"],
    )
    for level in p["theorem_levels"]:
        yield Spec(
            one_constraint(p["batch"], level, **STEPS),
            problem,
            p["theorem_rounds"],
            p["theorem_seeds"],
            EVERY,
            (*PATH, "nu"),
            labels={"method": "theorem", "U": level},
        )
