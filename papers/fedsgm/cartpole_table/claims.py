"""What Table 1 of the full paper shows, judged at the damping that meets its uncompressed row.

The rules were fixed, and committed, before any of the seeds that judge them was drawn. There is no
proviso: the row without compression stands beside the printed one in every text.
"""

from dataclasses import replace
from functools import partial

from papers.fedsgm.cartpole import claims as cartpole
from papers.fedsgm.cartpole.claims import CALIBRATED, CENTRAL, FORMATS, HALF, LEARNED, QUARTER, SOFT
from papers.fedsgm.cartpole.quantities import BUDGET
from papers.fedsgm.cartpole.runs import PAPER as AS_IN_CARTPOLE
from papers.fedsgm.common import Run, instead
from papers.kit.claims import Claim, Reading
from papers.kit.health import Needs
from papers.kit.quantities import Defaults, Query, names_of
from papers.kit.rules import Control, Rule, Size, of

#: The labels of runs at the study's setting.
PAPER: Defaults = {**AS_IN_CARTPOLE, "damping": CALIBRATED, "topk": None}
names = partial(names_of, PAPER)

#: How Top-K is simulated -> in words. The paper: "by zeroing out the gradient vector".
WAYS = {
    "gradient": "Top-K on the policy gradient, nothing else compressed",
    "update": "Top-K on the messages, without error feedback",
    "feedback": "Top-K on the messages, with error feedback",
}
EVERYONE: Run = {**SOFT, "participants": 10}
FROZEN = "Rule, damping and control were committed before the ten seeds were drawn."
YOUNGER = (
    "Rule and damping were committed before the ten seeds were drawn. The control is younger: no "
    "run could have passed the first one."
)


def sparse(topk: str) -> Rule:
    """Top-K slows learning, and with a quarter of the entries nothing is learned."""
    half: Run = {**SOFT, **HALF, "topk": topk}
    quarter: Run = {**SOFT, **QUARTER, "topk": topk}
    return Rule(
        {
            "the mean reward over the run is lower": {
                "with Top-K 0.5 than without compression": of("area", **half) < of("area", **SOFT),
                "with Top-K 0.25 than with Top-K 0.5": of("area", **quarter) < of("area", **half),
            },
            f"with Top-K 0.25 the reward at round 500 is below {LEARNED:g}": of(
                "reward500", **quarter
            )
            < LEARNED,
        },
        note=f"{WAYS[topk]}. {YOUNGER}",
        control=Control(
            "no compression and all ten clients instead of Top-K 0.5, float16 instead of Top-K "
            "0.25",
            instead([half], EVERYONE, "area", "reward500")
            | instead([quarter], FORMATS["float16"], "area", "reward500"),
        ),
        sizes=(
            Size(Query.of("reward500", **half), 131.6, "Table 1, Top-K 0.5"),
            Size(Query.of("reward500", **quarter), 25.5, "Table 1, Top-K 0.25"),
        ),
    )


def on_gradient(fraction: float, *measures: str) -> dict[Query, Query]:
    """Top-K on the policy gradient in the place of each format."""
    labels: Run = {**SOFT, "fraction": fraction, "topk": "gradient"}
    return instead(FORMATS.values(), labels, *measures)


R19 = Rule(
    cartpole.C19.primary,
    note=FROZEN,
    control=Control(
        "Top-K 0.25 on the policy gradient instead of each format",
        on_gradient(0.25, "reward500", "cost500"),
    ),
)
CENTRALIZED: Run = {**SOFT, **CENTRAL}
R21 = Rule(
    {
        f"the cost of the centralized run exceeds {BUDGET:g} at round 500": of(
            "cost500", **CENTRALIZED
        )
        > BUDGET,
        f"the cost of the federated run is at most {BUDGET:g} at round 500": of("cost500", **SOFT)
        <= BUDGET,
    },
    note=YOUNGER,
    control=Control(
        "the federated run with all ten clients instead of the centralized one",
        instead([CENTRALIZED], EVERYONE, "cost500"),
    ),
)
R28 = Rule(
    cartpole.C28.primary,
    note=FROZEN,
    control=Control(
        "Top-K 0.5 on the policy gradient instead of each format", on_gradient(0.5, "first")
    ),
)


def rows(topk: str) -> tuple[str, ...]:
    """The runs behind a reading of Top-K."""
    return (*names(**SOFT, fraction=(0.5, 0.25), topk=topk), "soft", *names(**EVERYONE))


DEAD = Needs(dead=("*_fraction0.25_*",))  # that nothing is learned is the claim
COMMIT = "de79d6f9"  # that fixed the rules
full = partial(Claim, paper="F", place="Table 1", rule_fixed=COMMIT)
CLAIMS = (
    full(
        id="fedsgm/R19",
        wording="With quantization to 16, 8 and 4 bits the reward reaches 197 or more by round 500 "
        "at a cost of at most 30.",
        rule=R19,
        runs=cartpole.WITH_FORMATS,
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
            Reading(WAYS[topk], sparse(topk), rows(topk), DEAD, COMMIT)
            for topk in ("update", "feedback")
        ),
    ),
    full(
        id="fedsgm/R21",
        wording="The centralized run violates the budget; the federated run without compression "
        "does not.",
        rule=R21,
        runs=(*names(**SOFT, **CENTRAL), "soft"),
    ),
    full(
        id="fedsgm/R28",
        wording="Quantization has minimal impact on the number of rounds that learning takes.",
        rule=R28,
        runs=cartpole.WITH_FORMATS,
    ),
)


def in_this_study(run: Run) -> Run:
    """The labels of a row of Table 1 here, Top-K on the gradient."""
    return {**run, "topk": "gradient"} if "fraction" in run else run


PAPER_VALUES = tuple(
    replace(value, key=Query.of(value.key.measure, **in_this_study(dict(value.key.labels))))
    for value in cartpole.PAPER_VALUES
    if isinstance(value.key, Query)
)
