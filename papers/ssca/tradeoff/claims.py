"""The claims about SSCA's norm against cost and about Theorem 5, and what judges them."""

from __future__ import annotations

from papers.kit.claims import Claim, PaperValue
from papers.kit.needs import Needs
from papers.kit.rules import Condition, Rule, all_of, between, of, told, told_value
from papers.ssca.common import SPLITS

RIDGES = (1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2)
LEVELS = (0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
THEOREM = (0.3, 0.6)
FALLING = -0.9  # rank correlation of six points: one pair of neighbours may be swapped
NEAR = 10.0  # %: how far the final cost may be from U
SMALL = 0.1  # of |grad F|, and of |w|
FORMS = {"ssca": "lambda", "limit": "U"}
ORDERS = [(split, kind, text) for split in SPLITS for kind, text in FORMS.items()]


def excess(split: str) -> dict[float, str]:
    """How far the final cost is above each U."""
    return {u: f"{split}_limit_U{u:g}.excess" for u in LEVELS}


def near(split: str) -> Condition:
    return all_of(*(between(key, -NEAR, NEAR) for key in excess(split).values()))


def by_level(split: str) -> str:
    """The costs and the accuracy by U, in the text of what was measured."""
    each = ", ".join(f"{told_value(key, '+.3g')} % ({u:g})" for u, key in excess(split).items())
    accuracy = told(f"{split}_limit.accuracy_order")
    return f"cost above U (at U), {split}: {each}; accuracy by U: {accuracy}"


C6 = Rule(
    {
        f"|w|^2 falling along {text}, {split}": of(f"{split}_{kind}.order") <= FALLING
        for split, kind, text in ORDERS
    }
    | {
        part: condition
        for split in SPLITS
        for part, condition in (
            (f"the cost within {NEAR:g} % of every U, {split}", near(split)),
            (
                f"the accuracy falling with U, {split}",
                of(f"{split}_limit.accuracy_order") <= FALLING,
            ),
        )
    },
    "rank correlation of |w|^2 and cost, "
    + "; ".join(
        [f"{split}, {text}: {told(f'{split}_{kind}.order')}" for split, kind, text in ORDERS]
        + [by_level(split) for split in SPLITS]
    ),
)
C9 = Rule(
    {
        f"{text}, U = {u:g}": of(f"theorem_U{u:g}.{key}") <= SMALL
        for u in THEOREM
        for key, text in {"gradient": "the gradient of (27) small", "moved": "w staying"}.items()
    },
    "; ".join(
        f"U = {u:g}: gradient {told(f'theorem_U{u:g}.gradient')} of |grad F|, "
        f"moved {told(f'theorem_U{u:g}.moved')} of |w|"
        for u in THEOREM
    ),
)

CLAIMS = (
    Claim(
        id="ssca/C6",
        paper="Y",
        place="Figure 4",
        wording="For every algorithm the squared norm of the model falls as the training cost "
        "rises; the constrained form sets the cost, and with it the accuracy, directly through U.",
        measure="Cost on all training pictures, squared norm and test accuracy after 100 rounds, "
        "batch 100 (over features 1000), for six lambda and six U: per seed the rank correlation "
        "of cost and squared norm along the curve of lambda (ssca.order) and of U (limit.order), "
        "and of U and accuracy (accuracy_order); the cost above U in % of it (excess).",
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
        wording="A solution of the constrained example (37) with multiplier nu is a stationary "
        "point of the regularized one (27) with lambda = 1 / nu.",
        measure="300 digits of 8 x 8 pixels, 16 hidden cells, five seeds: Algorithm 2 with full "
        "batches, 3000 rounds, then 400 rounds of gradient descent on (27) from there. The "
        "gradient of (27) at the handover as a share of that of F (gradient), and the way of w "
        "afterwards as a share of its length (moved).",
        rule=C9,
        runs=tuple(f"theorem_U{u:g}" for u in THEOREM),
        figure="theorem_5",
    ),
)

PAPER_VALUES = tuple(
    PaperValue(
        f"cost at U = {u:g}, {split}", f"{split}_limit_U{u:g}.cost", None, "curve only", "Figure 4"
    )
    for split in SPLITS
    for u in LEVELS
)
