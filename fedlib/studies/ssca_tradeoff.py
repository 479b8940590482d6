"""Study of SSCA's Figure 4, |w|^2 against the training cost, and of its Theorem 5."""

from __future__ import annotations

from functools import partial
from typing import Any

from fedlib.store import Spec
from fedlib.studies import ssca_common as common
from fedlib.studies import ssca_tradeoff_claims as claims
from fedlib.studies import ssca_tradeoff_figures as figures
from fedlib.studies.base import Params, Study
from fedlib.studies.ssca_common import SPLITS, constrained, digits_problem, ssca, vertical_problem
from fedlib.studies.ssca_tradeoff_numbers import METRICS, PATH, REPORTS, derive
from fedlib.studies.ssca_tradeoff_theorem import handover, theorem_problem

__all__ = ["STUDY", "specs"]

EVERY = 20  # rounds between two evaluations of the runs of Theorem 5

PARAMETERS = {
    "seeds": "seeds; each fixes start, split and batches",
    "rounds": "communication rounds T",
    "batch": "rows of a client's batch; over features one batch of so many for each client",
    "ridges": "weights lambda of the ridge in (27)",
    "levels": "levels U of the cost in (37)",
    "theorem_seeds": "seeds of the runs of Theorem 5, on scikit-learn's digits",
    "theorem_pictures": "training pictures there",
    "theorem_clients": "clients there",
    "theorem_hidden": "hidden cells there",
    "theorem_levels": "levels U there",
    "theorem_rounds": "rounds of the constrained method there, with full batches",
    "continued_rounds": "further rounds on the ridge with lambda = 1 / nu",
    **common.PARAMETERS,
}
FULL: Params = {
    "seeds": (0, 1, 2, 3, 4, 5, 6, 7, 8, 9),
    "rounds": 100,
    "batch": 100,
    "ridges": (1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2),
    "levels": (0.3, 0.4, 0.5, 0.6, 0.8, 1.0),
    "theorem_seeds": (0, 1, 2, 3, 4),
    "theorem_pictures": 300,
    "theorem_clients": 10,
    "theorem_hidden": 16,
    "theorem_levels": (0.3, 0.6),
    "theorem_rounds": 3000,
    "continued_rounds": 400,
    **common.FULL,
    "evaluate": 60_000,
}
QUICK: Params = {
    **FULL,
    "seeds": (0, 1),
    "rounds": 40,
    "ridges": (1e-4, 1e-2, 3e-2),
    "levels": (0.4, 0.6, 1.0),
    "theorem_seeds": (0, 1),
    "theorem_pictures": 100,
    "theorem_clients": 2,
    "theorem_hidden": 8,
    "theorem_levels": (0.6,),
    "theorem_rounds": 200,
    "continued_rounds": 60,
    **common.QUICK,
    "evaluate": 2_000,
}


def specs(p: Params) -> dict[str, Spec]:
    """Both forms over samples and over features, swept; then the runs of Theorem 5."""
    found: dict[str, Spec] = {}
    for split in SPLITS:
        swept: dict[str, Any] = {
            f"{split}_ssca_ridge{x:g}": ssca(
                split, p["batch"], clients=p["clients"], ridge=float(x)
            )
            for x in p["ridges"]
        }
        swept |= {
            f"{split}_limit_U{x:g}": constrained(split, p["batch"], float(x), clients=p["clients"])
            for x in p["levels"]
        }
        make = digits_problem if split == "samples" else vertical_problem
        problem, T = partial(make, **common.task(p)), p["rounds"]
        for name, algorithm in swept.items():  # evaluated at the start and at the end alone
            found[name] = Spec(algorithm, problem, T, tuple(p["seeds"]), T, METRICS)
    task = partial(
        theorem_problem,
        pictures=p["theorem_pictures"],
        clients=p["theorem_clients"],
        hidden=p["theorem_hidden"],
    )
    length = p["theorem_rounds"] + p["continued_rounds"]
    for level in p["theorem_levels"]:
        follow = handover(float(level), p["theorem_rounds"])
        seeds, keep = tuple(p["theorem_seeds"]), (*PATH, *REPORTS)
        found[f"theorem_U{level:g}"] = Spec(follow, task, length, seeds, EVERY, keep)
    return found


STUDY = Study(
    name="ssca_tradeoff",
    title="Norm against cost, SSCA",
    paper="Y",
    profiles={"quick": QUICK, "full": FULL},
    parameters=PARAMETERS,
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    paper_values=claims.PAPER_VALUES,
    figures=figures.FIGURES,
)
