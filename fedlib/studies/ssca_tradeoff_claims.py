"""The claims about SSCA's norm against cost and about Theorem 5, and what judges them."""

from __future__ import annotations

from fedlib.claims import Claim, PaperValue
from fedlib.studies.ssca_common import SPLITS
from fedlib.studies.ssca_tradeoff_rules import LEVELS, RIDGES, THEOREM, c6, c9

__all__ = ["CLAIMS", "PAPER_VALUES"]

CLAIMS = (
    Claim(
        "ssca/C6",
        "Y",
        "Figure 4",
        "For every algorithm the squared norm of the model falls as the training cost rises; the "
        "constrained form sets the cost, and with it the accuracy, directly through U.",
        "Cost on all training pictures, squared norm and test accuracy after 100 rounds, batch 100 "
        "(over features 1000), for six lambda and six U; per seed the rank correlation along each "
        "curve.",
        "Over samples and over features: (1), (2) along the curve of lambda and along that of U "
        "the rank correlation of cost and squared norm is at most -0.9, by the upper end of its "
        "interval; (3) for every U the interval of the final cost lies within 10 % of U; (4) the "
        "rank correlation of U and test accuracy is at most -0.9, by its upper end.",
        tuple(
            name
            for split in SPLITS
            for name in (
                *(f"{split}_ssca_ridge{x:g}" for x in RIDGES),
                *(f"{split}_limit_U{u:g}" for u in LEVELS),
            )
        ),
        c6,
        figure="figure_4",
    ),
    Claim(
        "ssca/C9",
        "Y",
        "Theorem 5",
        "A solution of the constrained example (37) with multiplier nu is a stationary point of "
        "the regularized one (27) with lambda = 1 / nu.",
        "300 digits of 8 x 8 pixels, 16 hidden cells, five seeds: Algorithm 2 with full batches, "
        "3000 rounds, then 400 rounds of gradient descent on (27) from there. The gradient of (27) "
        "at the handover as a share of that of F, and the way of w afterwards as a share of its "
        "length.",
        "For U = 0.3 and U = 0.6: (1) the gradient of (27) at the handover is at most 0.1 of that "
        "of F, by the upper end of its interval; (2) w moves by at most 0.1 of its length "
        "afterwards, by the upper end of its interval.",
        tuple(f"theorem_U{u:g}" for u in THEOREM),
        c9,
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
