"""The workshop paper's claims about Neyman-Pearson classification, and two predictions."""

from __future__ import annotations

from functools import partial
from math import log

from papers.fedsgm import multiverse
from papers.kit.claims import Claim, PaperValue, Reading
from papers.kit.rules import Condition, Control, Rule, Size, alike, between, most, of, stat

EPSILON = 0.1
START = log(2)  # f and g at w = 0
MAIN = ("hard", "soft")
CURVES = {"f": "objective", "g": "constraint"}
SWAPPED = Control("hard and soft switching exchanged", {"hard": "soft", "soft": "hard"})

workshop = partial(Claim, paper="W")
ours = partial(Claim, paper="ours", place="prediction")


def predicted(what: str, key: str) -> str:
    """What the two predictions tell."""
    return (
        f"{what}: predicted {stat(f'{key}.predicted')}, measured {stat(f'{key}.measured')}, "
        f"mean absolute difference {stat(f'{key}.gap')}"
    )


FREE = Rule(
    {
        "the late objective with beta = 200 is at most 5 % above hard switching's": of(
            "soft_beta200.f"
        )
        <= 1.05 * of("hard.f")
    },
    f"late objective, soft switching divided by hard switching: {stat('loss_ratio.beta200')}",
    control=Control("beta = 5 instead of beta = 200", {"soft_beta200": "soft_beta5"}),
)


def recovers(soft: str) -> Rule:
    """That soft switching behaves as hard switching does."""
    return Rule(
        {
            "the late objective is within 5 % of hard switching's": within_5("f", soft),
            "the late constraint is within 5 % of hard switching's": within_5("g", soft),
        },
        "; ".join(
            f"late {words}: soft {stat(f'{soft}.{k}')}, hard {stat(f'hard.{k}')}"
            for k, words in CURVES.items()
        ),
        control=Control("beta = 5 instead of the larger beta", {soft: "soft_beta5"}),
    )


def within_5(k: str, soft: str) -> Condition:
    """Whether a late value is that of hard switching but for 5 %, seed by seed."""
    return abs(of(f"{soft}.{k}") - of(f"hard.{k}")) <= 0.05 * of(f"hard.{k}")


C1 = Rule(
    {
        f"the late objective falls below ln2/4 (= {START / 4:.3f})": {
            f"{m} switching": of(f"{m}.f") < START / 4 for m in MAIN
        },
        f"the late constraint is at most {1.05 * EPSILON:g}, 5 % above its level": {
            f"{m} switching": of(f"{m}.g") <= 1.05 * EPSILON for m in MAIN
        },
    },
    "; ".join(
        f"{m} switching: late objective {stat(f'{m}.f')}, late constraint {stat(f'{m}.g')}"
        for m in MAIN
    ),
    "Late values are means over the last 20 of 100 rounds.",
    control=Control("step size 0.01 instead of 0.3", {m: f"{m}_lr0.01" for m in MAIN}),
)
C2 = Rule(
    {
        "hard switching violates the constraint after its first feasible round": of("hard.after")
        > 0,
        "soft switching never violates the constraint after its first feasible round": most(
            "soft.after"
        )
        <= 0,
    },
    "; ".join(
        f"{m} switching: {stat(f'{m}.after')} with a violation after the first feasible one, "
        f"standard deviation of the late constraint {stat(f'{m}.jitter')}"
        for m in MAIN
    ),
    control=SWAPPED,
)
C3 = Rule(
    {
        "hard switching has 2.83 to 5.66 times the violating rounds of soft switching": between(
            "ratio.lr1", *multiverse.ABOUT
        )
    },
    f"violating rounds at step size 1, hard divided by soft: {stat('ratio.lr1', '.2g')}",
    "The full paper plots the best of the step sizes 1, 0.1, 0.01, ..., which is 1 here.",
    control=Control("hard switching against itself", {"ratio.lr1": "control.one"}),
    sizes=(Size("ratio.lr1", 4.0, "text on Figure 1"),),
)
C25 = Rule(
    {
        "the seeds' curves are closer to their median with soft than with hard switching": {
            words: of(f"fresh_soft.band_{k}") < of(f"fresh_hard.band_{k}")
            for k, words in CURVES.items()
        }
    },
    "mean distance of the seeds' curves from their median, soft minus hard: "
    + "; ".join(
        f"{words} {stat(f'fresh.band_{k}_more', '+.2f')}, on the 60 seeds of the "
        f"other claims {stat(f'main.band_{k}_more', '+.2f')}"
        for k, words in CURVES.items()
    ),
    "400 fresh seeds, after 60 earlier ones.",
    control=Control("hard switching instead of soft", {"fresh_soft": "fresh_hard"}),
)
P1 = Rule(
    {
        "the share of constraint rounds is within a quarter of its prediction": alike(
            of("share.measured"), of("share.predicted"), of("share.predicted")
        )
    },
    predicted("share of constraint rounds", "share"),
    "The formula is an approximation: the interval of measured minus predicted share excludes "
    "zero.",
    control=Control(
        "a predicted share of one half, whatever the multiplier",
        {"share.predicted": "control.half"},
    ),
)
P2 = Rule(
    {
        "the late constraint is within 0.01 of its prediction": of("level.gap") <= 0.1 * EPSILON,
        "no round after the first feasible one violates the constraint": most("settled.after") <= 0,
    },
    predicted("late constraint", "level"),
    control=Control("a predicted level of epsilon itself", {"level.gap": "control.level_gap"}),
)

CLAIMS = (
    workshop(
        id="fedsgm/C1",
        place="Figure 1",
        wording="Hard and soft switching both drive the objective down and bring the constraint "
        "to its level.",
        rule=C1,
        runs=MAIN,
        figure="figure_1",
    ),
    workshop(
        id="fedsgm/C2",
        place="Figure 1",
        wording="Hard switching oscillates around the level of the constraint; soft switching "
        "stays feasible.",
        rule=C2,
        runs=MAIN,
        figure="figure_1",
    ),
    workshop(
        id="fedsgm/C3",
        place="text on Figure 1",
        wording="Soft switching has about four times fewer violating rounds than hard switching.",
        rule=multiverse.C3,
        runs=multiverse.WORKSHOP,
        figure="learning_rates",
        reading="in all settings that the paper leaves open",
        readings=(
            Reading(
                "at the step size that the full paper's protocol chooses, 1",
                C3,
                ("hard_lr1", "soft_lr1"),
            ),
        ),
    ),
    workshop(
        id="fedsgm/C4",
        place="text on Figure 1",
        wording="The gain of soft switching in feasibility does not compromise its convergence.",
        rule=multiverse.C4,
        runs=multiverse.WORKSHOP,
        figure="sharpness",
        reading="in all settings that the paper leaves open",
        readings=(Reading("late f at beta = 200", FREE, ("hard", "soft_beta200", "soft_beta5")),),
    ),
    workshop(
        id="fedsgm/C34",
        place="Section 1",
        wording="Soft switching recovers the hard regime once beta is at least 2/epsilon.",
        rule=recovers("soft"),
        runs=(*MAIN, "soft_beta5"),
        figure="sharpness",
        reading="beta = 2/epsilon",
        readings=(
            Reading(
                "beta = 200, ten times as much",
                recovers("soft_beta200"),
                ("hard", "soft_beta200", "soft_beta5"),
            ),
        ),
    ),
    workshop(
        id="fedsgm/C25",
        place="text on Figure 1",
        wording="The curves of soft switching have narrower bands over the seeds than those of "
        "hard switching.",
        rule=C25,
        runs=("fresh_hard", "fresh_soft"),
        rule_fixed="82aa2943",
        figure="figure_1",
    ),
    ours(
        id="fedsgm/P1",
        wording="Hard switching spends a share lambda/(1 + lambda) of its late rounds on the "
        "constraint, where lambda is the multiplier of the constraint.",
        rule=P1,
        runs=("hard_settled",),
    ),
    ours(
        id="fedsgm/P2",
        wording="Soft switching settles at g = epsilon - 1/(beta (1 + lambda)), where lambda is "
        "the multiplier. This is below the level, so violations stop after the descent.",
        rule=P2,
        runs=("soft_settled",),
    ),
)

FEWER = "violations, hard divided by soft"
in_text = partial(PaperValue, place="W, text on Figure 1")

PAPER_VALUES = (
    in_text(FEWER, "ratio.main", 4.0, "about 4 times fewer", rtol=0.25),
    in_text(f"{FEWER}, at step size 0.1", "ratio.lr0.1", 4.0, "about 4 times", rtol=0.25),
    in_text(f"{FEWER}, at step size 1", "ratio.lr1", 4.0, "about 4 times", rtol=0.25),
    in_text(
        "late objective, soft divided by hard, at beta = 200",
        "loss_ratio.beta200",
        1.0,
        "not compromised",
        rtol=0.05,
    ),
)
