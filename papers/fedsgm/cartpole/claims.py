"""Claims of the full paper about constrained cartpole."""

from collections.abc import Iterable
from functools import partial

from papers.fedsgm.cartpole.quantities import BUDGET, ROUNDS
from papers.fedsgm.cartpole.runs import MODES, PAPER, STATES
from papers.fedsgm.common import Run, instead
from papers.kit.claims import Claim, PaperValue, Reading
from papers.kit.health import Needs
from papers.kit.quantities import Query, names_of
from papers.kit.rules import Control, Rule, alike, of

names = partial(names_of, PAPER)

SOFT: Run = {"switch": "soft"}
HALF: Run = {"fraction": 0.5}
QUARTER: Run = {"fraction": 0.25}
#: With a Fisher matrix from as many states as the clients use together.
CENTRAL: Run = {"training": "central", "states": 10 * STATES}
KINDS = {"federated": HALF, "centralized": CENTRAL}
CENTRAL_HARD: Run = {"training": "central", "switch": "hard"}
FORMATS = {f"float{bits}": {**SOFT, "bits": bits} for bits in (16, 8, 4)}
#: Table 1: run, its name there, reward and cost at round 100, reward and cost at round 500.
TABLE_1: tuple[tuple[Run, str, float, float, float, float], ...] = (
    ({**SOFT, **CENTRAL}, "centralized", 119.9, 33.6, 198.2, 33.2),
    (SOFT, "none (float32)", 67.2, 26.9, 199.4, 27.6),
    (FORMATS["float16"], "float16", 90.5, 31.2, 198.8, 26.9),
    (FORMATS["float8"], "float8", 91.4, 31.4, 199.1, 26.5),
    (FORMATS["float4"], "float4", 49.1, 25.2, 197.2, 25.6),
    ({**SOFT, **HALF}, "Top-K 0.5", 46.5, 23.8, 131.6, 24.0),
    ({**SOFT, **QUARTER}, "Top-K 0.25", 25.1, 22.7, 25.5, 22.2),
)
LEARNED = 40.0  # a reward below is that of a policy which has not learned
#: Dampings at which the uncompressed row of Table 1 is run in full, to meet the printed one; and of
#: these the largest whose intervals hold its rewards at rounds 100 and 500, a rule that was fixed
#: before these runs. The Top-K rows are judged at that damping.
CALIBRATION = (0.03, 0.01)
CALIBRATED = 0.01

full = partial(Claim, paper="F")

DAMPING = (
    "At this damping, 0.1, the row without compression has a lower reward than the paper's at "
    "rounds 100 and 500."
)


def null(runs: Iterable[Run], rivals: Iterable[Run], *measures: str) -> Control:
    """No effect: hard switching on two disjoint halves of the seeds, in place of two sides."""
    return Control(
        "hard switching on two disjoint halves of the seeds instead of both runs",
        instead(runs, {"half": 0}, *measures) | instead(rivals, {"half": 1}, *measures),
    )


def of_mode(mode: str) -> list[Run]:
    """The runs of Figure 3 with one way of switching."""
    return [{"switch": mode, **run} for run in KINDS.values()]


C16 = Rule(
    {
        "the mean reward over the run is higher under soft than under hard switching": {
            training: of("area", switch="soft", **run) > of("area", switch="hard", **run)
            for training, run in KINDS.items()
        },
        "the cost changes less between evaluations under soft than under hard switching": {
            training: of("cost_scatter", switch="soft", **run)
            < of("cost_scatter", switch="hard", **run)
            for training, run in KINDS.items()
        },
    },
    note="The share of violating rounds does not measure steadiness: hard switching hovers around "
    "the limit, so about half of its rounds violate the constraint in any case.",
    control=null(of_mode("soft"), of_mode("hard"), "area", "cost_scatter"),
)


def ahead(states: int) -> Rule:
    """That under hard switching the federated run is ahead of a centralized one."""
    central: Run = {"training": "central", "switch": "hard", "states": states}
    federated: Run = {"switch": "hard", **HALF}
    measures = {f"round {at}": f"reward{at}" for at in ROUNDS}
    return Rule(
        {
            "the federated run has the higher reward": {
                text: of(measure, **federated) > of(measure, **central)
                for text, measure in measures.items()
            }
        },
        control=null([federated], [central], *measures.values()),
    )


def fresh(participants: int) -> Run:
    """The labels of the runs of C18."""
    return {**SOFT, **HALF, "participants": participants, "splits": "fresh"}


C18 = Rule(
    {
        "the mean reward over the run is lower with 3 clients than with all 10": of(
            "area", **fresh(3)
        )
        < of("area", **fresh(10)),
        "the cost changes more between evaluations with 3 clients than with all 10": of(
            "cost_scatter", **fresh(3)
        )
        > of("cost_scatter", **fresh(10)),
    },
    note="Fresh seeds, after five earlier ones.",
    control=null([fresh(3)], [fresh(10)], "area", "cost_scatter"),
)
C19 = Rule(
    {
        "the reward at round 500 is at least 197": {
            text: of("reward500", **run) >= 197 for text, run in FORMATS.items()
        },
        "the cost at round 500 is at most 30": {
            text: of("cost500", **run) <= BUDGET for text, run in FORMATS.items()
        },
    },
    note="No reward exceeds 200, so rewards that scatter over the seeds leave the claim open at "
    f"best. {DAMPING}",
    control=Control(
        "the rewards of round 100 instead of round 500",
        {Query.of("reward500", **run): Query.of("reward100", **run) for run in FORMATS.values()},
    ),
)
AS_CALIBRATED: Run = {**SOFT, "damping": CALIBRATED}
C20 = Rule(
    {
        "the mean reward over the run is lower with Top-K 0.5 than without compression": of(
            "area", **AS_CALIBRATED, **HALF
        )
        < of("area", **AS_CALIBRATED),
        f"with Top-K 0.25 the reward at round 500 is below {LEARNED:g}": of(
            "reward500", **AS_CALIBRATED, **QUARTER
        )
        < LEARNED,
    },
    note="A reward below 40 means that nothing is learned. The paper's run with Top-K 0.25 has 25, "
    "like an untrained policy. Top-K is on the messages in both directions, with error feedback; "
    "the paper's sentence may also mean the policy gradient. With damping 0.01 the row without "
    "compression has the printed rewards within its intervals.",
    control=null(
        [AS_CALIBRATED | HALF, AS_CALIBRATED | QUARTER],
        [AS_CALIBRATED],
        "area",
        "reward500",
    ),
)
C21 = Rule(
    {
        f"the cost of the centralized run exceeds {BUDGET:g} at round 500": of(
            "cost500", **SOFT, **CENTRAL
        )
        > BUDGET,
        f"the cost of the federated run without compression is at most {BUDGET:g} at round 500": of(
            "cost500", **SOFT
        )
        <= BUDGET,
    },
    note=DAMPING,
    control=null([SOFT | CENTRAL], [SOFT], "cost500"),
)
FIRST = of("first", **SOFT)
C28 = Rule(
    {
        "the rounds to the first success differ by at most a quarter from those without "
        "compression": {
            text: alike(of("first", **run), FIRST, FIRST) for text, run in FORMATS.items()
        }
    },
    note=DAMPING,
    control=Control(
        "centralized hard switching instead of each format",
        instead(FORMATS.values(), CENTRAL_HARD, "first"),
    ),
)
COMPRESSED = {**FORMATS, "Top-K 0.5": {**SOFT, **HALF}, "Top-K 0.25": {**SOFT, **QUARTER}}
STEADY = 0.05  # the share of violating rounds of a constraint that is stably satisfied
C39 = Rule(
    {
        f"the cost is at most {BUDGET:g} around rounds 100 and 500": {
            f"{text}, round {at}": of(f"cost{at}", **run) <= BUDGET
            for text, run in COMPRESSED.items()
            for at in (100, 500)
        },
        f"the server's estimate exceeds the budget in at most {STEADY:.0%} of the rounds of the "
        "second half": {text: of("violating", **run) <= STEADY for text, run in COMPRESSED.items()},
    },
    note="In the paper's table two of these costs are above 30, 31.2 and 31.4 at round 100. "
    f"{DAMPING}",
    control=Control(
        "centralized hard switching instead of each row",
        instead(
            COMPRESSED.values(),
            CENTRAL_HARD,
            "cost100",
            "cost500",
            "violating",
        ),
    ),
)

WITH_FORMATS = (*names(**SOFT, bits=(16, 8, 4)), "soft")
CLAIMS = (
    full(
        id="fedsgm/C16",
        place="Figure 3",
        wording="Soft switching converges faster and more steadily than hard switching on "
        "cartpole.",
        rule=C16,
        runs=(*names(switch=MODES, **HALF), *names(switch=MODES, **CENTRAL)),
        figure="figure_3",
    ),
    full(
        id="fedsgm/C17",
        place="Figure 3",
        wording="With hard switching the federated run learns the objective better than the "
        "centralized run.",
        rule=ahead(10 * STATES),
        runs=("hard_fraction0.5", *names(switch="hard", **CENTRAL)),
        figure="figure_3",
        reading="Fisher matrix from as many states as the clients use together",
        readings=(
            Reading(
                "Fisher matrix from as many states as one client uses",
                ahead(STATES),
                ("hard_fraction0.5", "central_hard"),
            ),
        ),
    ),
    full(
        id="fedsgm/C18",
        place="Figure 4",
        wording="With fewer clients per round, learning is slower and less stable.",
        rule=C18,
        runs=(*names(**fresh(3)), *names(**fresh(10))),
        rule_fixed="b9a72a48",
        figure="figure_4",
        needs=Needs(parameters=("sweep_participants",)),
    ),
    full(
        id="fedsgm/C19",
        place="Table 1",
        wording="With quantization to 16, 8 and 4 bits the reward reaches 197 or more by round 500 "
        "at a cost of at most 30.",
        rule=C19,
        runs=WITH_FORMATS,
        figure="table_1",
    ),
    full(
        id="fedsgm/C20",
        place="Table 1",
        wording="Top-K with half of the entries is slower (a reward of about 130 at round 500); "
        "with a quarter of the entries nothing is learned.",
        rule=C20,
        runs=names(**AS_CALIBRATED, fraction=(0.5, 0.25, 1.0)),
        figure="table_1",
    ),
    full(
        id="fedsgm/C21",
        place="Table 1",
        wording="The centralized run violates the budget; the federated run without compression "
        "does not.",
        rule=C21,
        runs=(*names(**SOFT, **CENTRAL), "soft"),
        figure="table_1",
    ),
    full(
        id="fedsgm/C28",
        place="Table 1",
        wording="Quantization has minimal impact on the number of rounds that learning takes.",
        rule=C28,
        runs=(*WITH_FORMATS, *names(**CENTRAL_HARD)),
        figure="table_1",
    ),
    full(
        id="fedsgm/C39",
        place="text on Table 1",
        wording="Under compression the constraint is stably satisfied.",
        rule=C39,
        runs=(*names(**SOFT, bits=(16, 8, 4)), *names(**SOFT, fraction=(0.5, 0.25))),
        figure="table_1",
    ),
)

PAPER_VALUES = tuple(
    PaperValue(
        f"{text}: {curve} at round {at}",
        Query.of(f"{curve}{at}", **run),
        printed[2 * number + column],
        f"{printed[2 * number + column]:g}",
        "Table 1",
    )
    for run, text, *printed in TABLE_1
    for number, at in enumerate((100, 500))
    for column, curve in enumerate(("reward", "cost"))
)
