"""Study of SSCA's Figure 4, |w|^2 against the training cost, and of its Theorem 5."""

from __future__ import annotations

from functools import partial
from typing import Any

from papers.kit.store import Spec
from papers.kit.study import Params, Study, parameters
from papers.ssca import common
from papers.ssca.common import SPLITS, constrained, digits_problem, ssca, vertical_problem
from papers.ssca.long.problem import one_constraint
from papers.ssca.tradeoff import claims, figures
from papers.ssca.tradeoff.numbers import METRICS, PATH, derive
from papers.ssca.tradeoff.theorem import STEPS, theorem_problem

__all__ = ["STUDY", "specs"]

EVERY = 20  # rounds between two evaluations of the runs of Theorem 5

PARAMETERS = parameters(
    seeds=("seeds; each fixes start, split and batches", tuple(range(10)), (0, 1)),
    rounds=("communication rounds T", 100, 40),
    batch=("rows of a client's batch; over features one batch of so many for each client", 100),
    ridges=("weights lambda of the ridge in (27)", claims.RIDGES, (1e-4, 1e-2, 3e-2)),
    levels=("levels U of the cost in (37)", claims.LEVELS, (0.4, 0.6, 1.0)),
    theorem_seeds=(
        "seeds of the runs of Theorem 5, on scikit-learn's digits",
        (0, 1, 2, 3, 4),
        (0, 1),
    ),
    theorem_pictures=("training pictures there", 300, 100),
    theorem_clients=("clients there", 10, 2),
    theorem_hidden=("hidden cells there", 16, 8),
    theorem_levels=("levels U there", claims.THEOREM, (0.6,)),
    theorem_rounds=("rounds of the constrained method there, with full batches", 3000, 200),
    **common.TASK | {"evaluate": (common.TASK["evaluate"][0], 60_000, 2_000)},
)


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
            found[name] = Spec(algorithm, problem, T, p["seeds"], T, METRICS)
    task = partial(
        theorem_problem,
        pictures=p["theorem_pictures"],
        clients=p["theorem_clients"],
        hidden=p["theorem_hidden"],
    )
    for level in p["theorem_levels"]:
        method = one_constraint(p["batch"], float(level), **STEPS)
        seeds, keep, T = p["theorem_seeds"], (*PATH, "nu"), p["theorem_rounds"]
        found[f"theorem_U{level:g}"] = Spec(method, task, T, seeds, EVERY, keep)
    return found


STUDY = Study(
    name="ssca_tradeoff",
    title="Norm against cost, SSCA",
    paper="Y",
    data=("mnist",),
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    figures=figures.FIGURES,
    at_paper={"seeds": tuple(range(100))},
    **PARAMETERS,
)
