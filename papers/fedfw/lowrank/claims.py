"""What the paper says of the messages of Frank-Wolfe methods, and what judges it."""

from __future__ import annotations

from papers.fedfw.lowrank.runs import DEFAULTS
from papers.kit.claims import Claim
from papers.kit.health import Needs
from papers.kit.quantities import names_of
from papers.kit.rules import Condition, Control, Rule, Term, all_of, least, most

EXACT = 1e-5  # of the radius, in float32; and of singular values
SHORT = ("l1", "simplex", "nuclear", "box")


def worst(measure: str, convex_set: str) -> Term:
    """The largest value of any seed, of the messages for a set."""
    return most(measure, kind="messages", set=convex_set)


def one_entry(convex_set: str) -> Condition:
    """Whether every message for a set has exactly one nonzero entry."""
    fewest = least("fewest", kind="messages", set=convex_set)
    return all_of(worst("most", convex_set) <= 1, fewest >= 1)


C11 = Rule(
    {
        "every message has exactly one nonzero entry": {
            name: one_entry(name) for name in ("l1", "simplex")
        },
        "every message for the nuclear ball has rank one, up to 1e-5": worst("second", "nuclear")
        <= EXACT,
        "every message for the box consists of signs, up to 1e-5": worst("off", "box") <= EXACT,
    },
    note="The tolerance is for the rounding of 32 bits.",
    control=Control("the messages of the l2 ball instead of each", labels={"set": "l2"}),
)

CLAIMS = (
    Claim(
        id="fedfw/C11",
        paper="D",
        place="Linear minimization oracles",
        wording="A client's message is sparse or of low rank. It is one entry for the l1 ball and "
        "the simplex, has rank one for the nuclear ball, and consists of signs for a box.",
        rule=C11,
        runs=names_of(DEFAULTS, kind="messages", set=(*SHORT, "l2")),
        figure="clock",
        needs=Needs(exact=True, dead=("messages_*",)),
        kind="counted",
    ),
)
