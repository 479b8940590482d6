"""What the papers say of the rate of soft switching, which the notes prove."""

from papers.fedsgm.bounds.runs import DEFAULTS
from papers.fedsgm.common import Run
from papers.kit.claims import Claim
from papers.kit.quantities import Query, names_of
from papers.kit.rules import Condition, Control, Rule, most, of

HORIZONS = (30, 100, 300, 1000, 3000, 10000)

#: Soft switching -> hard switching in the same setting.
TWINS = {
    "no compression": ("soft", "hard"),
    "Top-K both ways": ("soft_feedback", "feedback"),
}


def printed(method: str, rounds: int) -> Run:
    """The labels of a theorem's run as it is printed: soft switching has beta = 2/epsilon."""
    return {"method": method, "version": "printed", "T": rounds}


def within_bound(soft: str, hard: str, rounds: int) -> Condition:
    """Whether soft switching is, on every instance, within the bound of hard switching."""
    return most("worst", **printed(soft, rounds)) <= of("bound", **printed(hard, rounds))


RATE = Rule(
    {
        "the accuracy of soft switching at beta = 2/epsilon is within the bound of hard "
        "switching": {
            f"{setting}, T = {rounds}": within_bound(*twins, rounds)
            for setting, twins in TWINS.items()
            for rounds in HORIZONS
        }
    },
    note="The accuracy is the larger of f gap and g at the averaged iterate. The bound falls like "
    "the square root of 1/T. The note on soft switching proves it: without compression for beta of "
    "2/(3 epsilon) or more, with error feedback up to a factor of 1.5 at most.",
    control=Control(
        "the accuracy after 30 rounds instead of T",
        {
            Query.of("worst", **printed(soft, rounds)): Query.of("worst", **printed(soft, 30))
            for soft, _ in TWINS.values()
            for rounds in HORIZONS
        },
    ),
)
BEHIND = [
    name
    for twins in TWINS.values()
    for method in twins
    for name in names_of(DEFAULTS, method=method, version="printed", T=HORIZONS)
]
CLAIMS = (
    Claim(
        id="fedsgm/C34",
        paper="W",
        place="Sections 1 and 5",
        wording="Soft switching recovers the hard regime once beta is at least 2/epsilon, without "
        "impacting the convergence rate.",
        rule=RATE,
        runs=tuple(BEHIND),
        figure="rounds",
        kind="proved",
    ),
)
