"""Study of SSCA's Figure 4, |w|^2 against the training cost, and of its Theorem 5."""

from __future__ import annotations

from functools import partial
from typing import Any

from papers.kit.claims import Claim
from papers.kit.health import Needs
from papers.kit.parameters import parameters
from papers.kit.rules import (
    EXCHANGED,
    Condition,
    Control,
    Rule,
    all_of,
    between,
    of,
    stat,
    stat_value,
)
from papers.kit.store import Spec
from papers.kit.study import Params, Study
from papers.ssca import common
from papers.ssca.common import NUMBERS, SPLITS, constrained, digits_problem, ssca, vertical_problem
from papers.ssca.long.problem import one_constraint
from papers.ssca.tradeoff.numbers import FIGURES, METRICS, PATH, derive
from papers.ssca.tradeoff.theorem import STEPS, theorem_problem

RIDGES = (1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2)
LEVELS = (0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
THEOREM = (0.3, 0.6)
FALLING = -0.9  # rank correlation of six points: one pair of neighbours may be swapped
NEAR = 10.0  # %: how far the final cost may be from U
SMALL = 0.1  # of |grad F|
CURVES = {  # the number of the algorithm that makes a curve
    (split, kind): NUMBERS[split][i] for i, kind in enumerate(("ssca", "limit")) for split in SPLITS
}


def excess(split: str) -> dict[float, str]:
    """How far the final cost is above each U."""
    return {u: f"{split}_limit_U{u:g}.excess" for u in LEVELS}


def near(split: str) -> Condition:
    return all_of(*(between(key, -NEAR, NEAR) for key in excess(split).values()))


def by_level(split: str) -> str:
    """The costs and the accuracy by U, in the text of what was measured."""
    each = ", ".join(f"{stat_value(key, '+.3g')} % ({u:g})" for u, key in excess(split).items())
    accuracy = stat(f"{split}_limit.accuracy_order")
    return f"cost above U with {split} split (U): {each}; correlation of U and accuracy: {accuracy}"


C6 = Rule(
    {
        f"the rank correlation of the squared norm and the cost is at most {FALLING:g}": {
            f"Algorithm {number}": of(f"{split}_{kind}.order") <= FALLING
            for (split, kind), number in CURVES.items()
        },
        f"the final cost is within {NEAR:g} % of U for every U": {
            f"Algorithm {NUMBERS[split][1]}": near(split) for split in SPLITS
        },
        f"the rank correlation of U and the accuracy is at most {FALLING:g}": {
            f"Algorithm {NUMBERS[split][1]}": of(f"{split}_limit.accuracy_order") <= FALLING
            for split in SPLITS
        },
    },
    "rank correlation of squared norm and cost, Algorithms 1 / 3 / 2 / 4: "
    + " / ".join(stat_value(f"{split}_{kind}.order") for split, kind in CURVES)
    + "; "
    + "; ".join(by_level(split) for split in SPLITS),
    note="A rank correlation of -0.9 allows one pair of neighbours to be swapped.",
    control=EXCHANGED,
)
C9 = Rule(
    {
        "the gradient of (27) is at most a tenth of that of F": {
            f"U = {u:g}": of(f"theorem_U{u:g}.gradient") <= SMALL for u in THEOREM
        }
    },
    "; ".join(
        f"U = {u:g}: gradient of (27) divided by that of F: "
        f"{stat(f'theorem_U{u:g}.gradient')} at the end, "
        f"{stat_value(f'theorem_U{u:g}.half_gradient')} half way"
        for u in THEOREM
    ),
    note="The theorem is about exact solutions, and the runs are approximate.",
    control=Control(
        "a point where the gradient of (27) is as large as that of F",
        {f"theorem_U{u:g}.gradient": 1.0 for u in THEOREM},
    ),
)

CLAIMS = (
    Claim(
        id="ssca/C6",
        paper="Y",
        place="Figure 4",
        wording="For every algorithm the squared norm of the model falls as the training cost "
        "rises. In the constrained form the level U sets the cost directly, and with it the "
        "accuracy.",
        rule=C6,
        runs=tuple(
            name
            for split in SPLITS
            for name in (
                *(f"{split}_ssca_ridge{x:g}" for x in RIDGES),
                *(f"{split}_limit_U{u:g}" for u in LEVELS),
            )
        ),
        figure="figure_4",
        needs=Needs(parameters=("ridges", "levels")),
    ),
    Claim(
        id="ssca/C9",
        paper="Y",
        place="Theorem 5",
        wording="A solution of the constrained problem (37) with multiplier nu is a stationary "
        "point of the regularized problem (27) with lambda = 1 / nu.",
        rule=C9,
        runs=tuple(f"theorem_U{u:g}" for u in THEOREM),
        figure="theorem_5",
        kind="proved",
    ),
)


EVERY = 20  # rounds between two evaluations of the runs of Theorem 5

PARAMETERS = parameters(
    seeds=("seeds; each fixes start, split and batches", tuple(range(10)), (0, 1)),
    rounds=("communication rounds T", 100, 40),
    batch=("rows of a client's batch; with features split, of the common batch per client", 100),
    ridges=("weights lambda of the ridge in (27)", RIDGES, (1e-4, 1e-2, 3e-2)),
    levels=("levels U of the cost in (37)", LEVELS, (0.4, 0.6, 1.0)),
    theorem_seeds=(
        "seeds of the runs of Theorem 5, on scikit-learn's digits",
        (0, 1, 2, 3, 4),
        (0, 1),
    ),
    theorem_pictures=("training pictures of the runs of Theorem 5", 300, 100),
    theorem_clients=("clients of the runs of Theorem 5", 10, 2),
    theorem_hidden=("hidden cells of the runs of Theorem 5", 16, 8),
    theorem_levels=("levels U of the runs of Theorem 5", THEOREM, (0.6,)),
    theorem_rounds=("rounds of the runs of Theorem 5, with full batches", 3000, 200),
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
    claims=CLAIMS,
    figures=FIGURES,
    at_paper={"seeds": tuple(range(100))},
    **PARAMETERS,
)
