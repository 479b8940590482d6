"""What Table 1 of the full paper shows, judged at the damping that meets its uncompressed row.

The rules were fixed, and committed, before any of the seeds that judge them was drawn. There is no
proviso: the row without compression stands beside the printed one in every text.
"""

from __future__ import annotations

from functools import partial

from papers.fedsgm.cartpole.claims import LEARNED
from papers.fedsgm.cartpole.numbers import BUDGET
from papers.kit.claims import Claim, Reading
from papers.kit.health import Needs
from papers.kit.rules import Control, Rule, Size, alike, of, stat

FORMATS = ("float16", "float8", "float4")
#: How Top-K is simulated -> in words. The paper: "by zeroing out the gradient vector".
WAYS = {
    "gradient": "Top-K on the policy gradient, nothing else compressed",
    "update": "Top-K on the messages, without error feedback",
    "feedback": "Top-K on the messages, with error feedback",
}
NONE = (
    f"without compression, reward at round 100 {stat('none.reward100')} (printed 67.2), at round "
    f"500 {stat('none.reward500')} (printed 199.4)"
)
FROZEN = "Rule, damping and control were committed before the ten seeds were drawn."


def sparse(way: str) -> Rule:
    """Top-K slows learning, and with a quarter of the entries nothing is learned."""
    half, quarter = f"{way}0.5", f"{way}0.25"
    return Rule(
        {
            "the mean reward over the run is lower": {
                "with Top-K 0.5 than without compression": of(f"{half}.area") < of("none.area"),
                "with Top-K 0.25 than with Top-K 0.5": of(f"{quarter}.area") < of(f"{half}.area"),
            },
            f"with Top-K 0.25 the reward at round 500 is below {LEARNED:g}": of(
                f"{quarter}.reward500"
            )
            < LEARNED,
        },
        "reward at rounds 100 and 500: "
        + "; ".join(
            f"Top-K {x} {stat(f'{way}{x}.reward100')} and {stat(f'{way}{x}.reward500')}"
            for x in ("0.5", "0.25")
        )
        + f"; {NONE}",
        f"{WAYS[way]}. {FROZEN}",
        control=Control(
            "no compression and all ten clients instead of each Top-K row",
            {half: "none_all", quarter: "none_all"},
        ),
        sizes=(
            Size(f"{half}.reward500", 131.6, "Table 1, Top-K 0.5"),
            Size(f"{quarter}.reward500", 25.5, "Table 1, Top-K 0.25"),
        ),
    )


R19 = Rule(
    {
        "the reward at round 500 is at least 197": {
            x: of(f"{x}.reward500") >= 197 for x in FORMATS
        },
        "the cost at round 500 is at most 30": {x: of(f"{x}.cost500") <= BUDGET for x in FORMATS},
    },
    "; ".join(f"{x}: reward {stat(f'{x}.reward500')}, cost {stat(f'{x}.cost500')}" for x in FORMATS)
    + f"; {NONE}",
    FROZEN,
    control=Control(
        "Top-K 0.25 on the policy gradient instead of each format",
        dict.fromkeys(FORMATS, "gradient0.25"),
    ),
)
R21 = Rule(
    {
        f"the cost of the centralized run exceeds {BUDGET:g} at round 500": of("central.cost500")
        > BUDGET,
        f"the cost of the federated run is at most {BUDGET:g} at round 500": of("none.cost500")
        <= BUDGET,
    },
    f"cost at round 500: centralized {stat('central.cost500')}, federated {stat('none.cost500')}; "
    f"{NONE}",
    FROZEN,
    control=Control("the federated run instead of the centralized one", {"central": "none"}),
)
R28 = Rule(
    {
        "the rounds to the first success differ by at most a quarter from those without "
        "compression": {
            x: alike(of(f"{x}.first"), of("none.first"), of("none.first")) for x in FORMATS
        }
    },
    "rounds to the first evaluation with a reward of 190 or more within the budget: "
    + "; ".join(f"{x} {stat(f'{x}.first')}" for x in FORMATS)
    + f"; no compression {stat('none.first')}; {NONE}",
    FROZEN,
    control=Control(
        "Top-K 0.5 on the policy gradient instead of each format",
        dict.fromkeys(FORMATS, "gradient0.5"),
    ),
)


def rows(way: str) -> tuple[str, ...]:
    """The runs behind a reading of Top-K."""
    return (f"{way}0.5", f"{way}0.25", "none", "none_all")


DEAD = Needs(dead=("*0.25",))  # that nothing is learned is the claim
COMMIT = "de79d6f9"  # that fixed the rules
full = partial(Claim, paper="F", place="Table 1", rule_fixed=COMMIT)
CLAIMS = (
    full(
        id="fedsgm/R19",
        wording="With quantization to 16, 8 and 4 bits the reward reaches 197 or more by round 500 "
        "at a cost of at most 30.",
        rule=R19,
        runs=(*FORMATS, "none"),
    ),
    full(
        id="fedsgm/R20",
        wording="Top-K with half of the entries is slower (a reward of about 130 at round 500); "
        "with a quarter of the entries nothing is learned.",
        rule=sparse("gradient"),
        runs=rows("gradient"),
        needs=DEAD,
        reading=WAYS["gradient"],
        readings=tuple(
            Reading(WAYS[way], sparse(way), rows(way), DEAD, COMMIT)
            for way in ("update", "feedback")
        ),
    ),
    full(
        id="fedsgm/R21",
        wording="The centralized run violates the budget; the federated run without compression "
        "does not.",
        rule=R21,
        runs=("central", "none"),
    ),
    full(
        id="fedsgm/R28",
        wording="Quantization has minimal impact on the number of rounds that learning takes.",
        rule=R28,
        runs=(*FORMATS, "none"),
    ),
)
