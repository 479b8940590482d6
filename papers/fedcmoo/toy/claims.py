"""The paper's claims that quadratics can test, and the rules that judge them."""

from __future__ import annotations

from papers.fedcmoo.common import cmoo
from papers.fedcmoo.toy.runs import DEFAULTS
from papers.kit.claims import PaperValue
from papers.kit.health import Needs
from papers.kit.quantities import Query, names_of
from papers.kit.rules import Control, Rule, of, value

RATE = -0.5  # log-log slope in T
HORIZONS = (50, 100, 200, 400, 800, 1600)
OBJECTIVES = (2, 5)
METHODS = {
    "exact": "uncompressed",
    "randk": "Rand-K with half of the entries",
    "plain": "fixed equal weights",
}


def slope(method: str) -> Query:
    """The log-log slope in T."""
    return Query.of("slope", part="rate", method=method)


def of_step(objectives: int) -> Query:
    """Whether the imbalance falls in one step with so many objectives."""
    return Query.of("falls", part="probe", M=objectives)


C15 = Rule(
    {
        f"the log-log slope in the number of rounds T is at most {RATE:g}": {
            METHODS[method]: of(slope(method)) <= RATE for method in ("exact", "randk")
        }
    },
    note="The corollary is an upper bound, so a steeper fall does not contradict it.",
    control=Control(
        "fixed equal weights, which use no Gram matrix",
        {slope(method): slope("plain") for method in ("exact", "randk")},
    ),
)
C16 = Rule(
    {
        "the imbalance mu falls at every point": {
            f"M = {M}": value(of_step(M)) >= 1 for M in OBJECTIVES
        }
    },
    note="The step has the size 1e-4.",
    control=Control(
        "a step in the opposite direction", dict.fromkeys(map(of_step, OBJECTIVES), 0.0)
    ),
)

CLAIMS = (
    cmoo(
        id="fedcmoo/C15",
        place="Corollary 1.1",
        wording="The mean of the squared norm of the weighted gradient falls like one over the "
        "square root of the number of rounds, also with unbiased compression.",
        rule=C15,
        runs=names_of(DEFAULTS, part="rate", method=[*METHODS], T=HORIZONS),
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
        runs=names_of(DEFAULTS, part="probe", M=OBJECTIVES),
        kind="proved",
    ),
)

PAPER_VALUES = tuple(
    PaperValue(f"log-log slope in T, {label}", slope(method), -0.5, "-1/2", "Corollary 1.1")
    for method, label in (("exact", "uncompressed"), ("randk", "Rand-K"))
)
