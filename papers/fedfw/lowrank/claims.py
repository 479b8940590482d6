"""The claim about FedFW's messages, and the rule that judges it."""

from __future__ import annotations

from papers.kit.claims import Claim
from papers.kit.needs import Needs
from papers.kit.rules import Control, Rule, least, most, stat_value

EXACT = 1e-5  # of the radius, in float32; and of singular values
SETS = ("l1", "simplex", "nuclear", "box")
C11 = Rule(
    {
        "one entry": {
            s: (most(f"messages_{s}.most") <= 1) & (least(f"messages_{s}.fewest") >= 1)
            for s in ("l1", "simplex")
        },
        "rank one, nuclear ball": most("messages_nuclear.second") <= EXACT,
        "signs, box": most("messages_box.off") <= EXACT,
    },
    "bits of a message: "
    + ", ".join(f"{s} {stat_value(f'messages_{s}.bits', 'g')}" for s in SETS)
    + f"; without a short form {stat_value('messages_l2.bits', 'g')}",
    "Of any message; up to the rounding of 32 bits.",
    control=Control("the messages of the l2 ball", {f"messages_{s}": "messages_l2" for s in SETS}),
)


CLAIMS = (
    Claim(
        id="fedfw/C11",
        paper="D",
        place="Linear minimization oracles",
        wording="A client's message is sparse or of low rank: one entry for the l1 ball and the "
        "simplex, rank one for the nuclear ball, signs for a box.",
        measure="Every message of 100 rounds of FedFW, five seeds: ten clients with scikit-learn's "
        "digits and a linear model in the l1 ball, the simplex, a box; multi-task regression in "
        "the nuclear ball. The most and the fewest entries that are not 0 (most, fewest), the "
        "second singular value by the first (second), the distance of an entry from an end of the "
        "box (off), and what the wire format does not give back (wire).",
        rule=C11,
        runs=tuple(f"messages_{s}" for s in (*SETS, "l2")),
        figure="clock",
        needs=Needs(exact=True, dead=("messages_*",)),
        kind="counted",
    ),
)
