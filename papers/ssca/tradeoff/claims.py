"""What SSCA's Figure 4 and Theorem 5 say, and what judges it."""

from functools import partial

from papers.kit.claims import Claim
from papers.kit.health import Needs
from papers.kit.quantities import Query, names_of
from papers.kit.rules import Condition, Control, Rule, all_of, between, of
from papers.ssca.common import NUMBERS, SPLITS
from papers.ssca.tradeoff.runs import DEFAULTS

RIDGES = (1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2)
LEVELS = (0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
THEOREM = (0.3, 0.6)
FALLING = -0.9  # rank correlation of six points: one pair of neighbours may be swapped
NEAR = 10.0  # %: how far the final cost may be from U
SMALL = 0.1  # of |grad F|
LIMITED = {f"Algorithm {NUMBERS[split][1]}": split for split in SPLITS}

names = partial(names_of, DEFAULTS)


def near(split: str) -> Condition:
    """Whether the final cost is near every U."""
    excess = partial(Query.of, "excess", split=split, method="limit")
    return all_of(*(between(excess(U=level), -NEAR, NEAR) for level in LEVELS))


def gradient(level: float) -> Query:
    """The gradient of (27) at the end of a run of Theorem 5, divided by that of F."""
    return Query.of("gradient", method="theorem", U=level)


def turned() -> dict[Query, Query]:
    """The rank correlations, and those of a sweep whose values belong to other runs of it."""
    permuted = {}
    for split in SPLITS:
        for measure, method in (("order", "ssca"), ("order", "limit"), ("accuracy_order", "limit")):
            query = Query.of(measure, split=split, method=method)
            permuted[query] = Query.of(
                measure,
                split=split,
                method=method,
                order="permuted",
            )
    return permuted


C6 = Rule(
    {
        f"the rank correlation of the squared norm and the cost is at most {FALLING:g}": {
            f"Algorithm {NUMBERS[split][i]}": of("order", split=split, method=method) <= FALLING
            for i, method in enumerate(("ssca", "limit"))
            for split in SPLITS
        },
        f"the final cost is within {NEAR:g} % of U for every U": {
            text: near(split) for text, split in LIMITED.items()
        },
        f"the rank correlation of U and the accuracy is at most {FALLING:g}": {
            text: of("accuracy_order", split=split, method="limit") <= FALLING
            for text, split in LIMITED.items()
        },
    },
    note="A rank correlation of -0.9 allows one pair of neighbours to be swapped.",
    control=Control("the rank correlations with the runs of each seed in another order", turned()),
)
C9 = Rule(
    {
        "the gradient of (27) is at most a tenth of that of F": {
            f"U = {level:g}": of(gradient(level)) <= SMALL for level in THEOREM
        }
    },
    note="The theorem is about exact solutions, and the runs are approximate.",
    control=Control(
        "a point where the gradient of (27) is as large as that of F",
        {gradient(level): 1.0 for level in THEOREM},
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
        runs=names(split=SPLITS, method="ssca", ridge=RIDGES)
        + names(split=SPLITS, method="limit", U=LEVELS),
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
        runs=names(method="theorem", U=THEOREM),
        figure="theorem_5",
        kind="proved",
    ),
)
