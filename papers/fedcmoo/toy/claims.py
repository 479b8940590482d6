"""The paper's claims that quadratics can test, and the rules that judge them."""

from __future__ import annotations

from papers.fedcmoo.common import cmoo
from papers.kit.claims import PaperValue
from papers.kit.health import Needs
from papers.kit.rules import Control, Numbers, Rule, of, stat, value

RATE = -0.5  # log-log slope in T
HORIZONS = (50, 100, 200, 400, 800, 1600)
OBJECTIVES = (2, 5)
SLOPES = {"uncompressed": "rate_exact.slope", "Rand-K with half of the entries": "rate_randk.slope"}


def points(n: Numbers) -> str:
    """How far the formula is from the difference, and where mu falls."""
    return "; ".join(
        f"M = {M}: largest relative error {max(n[f'probe_M{M}.error'].per_seed):.1g}, mu falls at "
        f"{n[f'probe_M{M}.falls'].value:.1%} of {n[f'probe_M{M}.points'].value:.0f} points"
        for M in OBJECTIVES
    )


C15 = Rule(
    {
        f"the log-log slope in the number of rounds T is at most {RATE:g}": {
            text: of(k) <= RATE for text, k in SLOPES.items()
        }
    },
    "; ".join(f"{label}: slope {stat(key, '.3f')}" for label, key in SLOPES.items()),
    note="The corollary is an upper bound, so a steeper fall does not contradict it.",
    control=Control(
        "fixed equal weights, which use no Gram matrix",
        dict.fromkeys(SLOPES.values(), "rate_plain.slope"),
    ),
)
C16 = Rule(
    {
        "the imbalance mu falls at every point": {
            f"M = {M}": value(f"probe_M{M}.falls") >= 1 for M in OBJECTIVES
        }
    },
    points,
    note="The step has the size 1e-4.",
    control=Control("a step in the opposite direction", negated=True),
)

CLAIMS = (
    cmoo(
        id="fedcmoo/C15",
        place="Corollary 1.1",
        wording="The mean of the squared norm of the weighted gradient falls like one over the "
        "square root of the number of rounds, also with unbiased compression.",
        rule=C15,
        runs=tuple(f"rate_{k}_T{T}" for k in ("exact", "randk", "plain") for T in HORIZONS),
        figure="rate",
        needs=Needs(parameters=("horizons",)),
        kind="proved",
    ),
    cmoo(
        id="fedcmoo/C16",
        place="Appendix C.2",
        wording="A step along minus grad F a, the gradient with the weights a, does not raise the "
        "imbalance mu of the weighted losses.",
        rule=C16,
        runs=tuple(f"probe_M{M}" for M in OBJECTIVES),
        kind="proved",
    ),
)

PAPER_VALUES = tuple(
    PaperValue(f"log-log slope in T, {label}", f"rate_{key}.slope", -0.5, "-1/2", "Corollary 1.1")
    for key, label in (("exact", "uncompressed"), ("randk", "Rand-K"))
)
