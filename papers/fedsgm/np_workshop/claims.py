"""The workshop paper's claims about Neyman-Pearson classification, and two predictions."""

from __future__ import annotations

from functools import partial
from math import log

from papers.kit.claims import Claim, PaperValue
from papers.kit.rules import Rule, between, most, of, told

EPSILON = 0.1
START = log(2)  # f and g at w = 0
MAIN = ("hard", "soft")
#: The step sizes that reach the level early.
RATES = {"lr0.1": "lr0.1", "lr0.2": "lr0.2", "lr0.3": "main", "lr0.5": "lr0.5", "lr1": "lr1"}
RATE_RUNS = tuple(f"{m}_{r}" for m in MAIN for r in RATES.values() if r != "main")

workshop = partial(Claim, paper="W")
ours = partial(Claim, paper="ours", place="prediction")


def predicted(key: str) -> str:
    """What the two predictions tell."""
    return (
        f"predicted {told(f'{key}.predicted')}, measured {told(f'{key}.measured')}, "
        f"mean difference {told(f'{key}.gap')}"
    )


C1 = Rule(
    {f"{m}: late f < {START / 4:.3f}": of(f"{m}.f") < START / 4 for m in MAIN}
    | {f"{m}: late g <= {1.05 * EPSILON:g}": of(f"{m}.g") <= 1.05 * EPSILON for m in MAIN},
    "; ".join(f"{m}: f {told(f'{m}.f')}, g {told(f'{m}.g')}" for m in MAIN),
)
C2 = Rule(
    {
        "hard violates after its first feasible round": of("hard.after") > 0,
        "soft never does": most("soft.after") <= 0,
        "g scatters less under soft": of("soft.jitter") < of("hard.jitter"),
    },
    "; ".join(
        f"{m}: {told(f'{m}.after')} after first feasible, std {told(f'{m}.jitter')}" for m in MAIN
    ),
)
C3 = Rule(
    {f"about 4 at {text}": between(f"ratio.{r}", 3, 5) for text, r in RATES.items()},
    "; ".join(f"{text}: {told(f'ratio.{r}', '.2g')}" for text, r in RATES.items()),
)
C4 = Rule(
    {"late f of soft within 5 % of hard's": of("loss_ratio.main") <= 1.05},
    f"soft/hard {told('loss_ratio.main')}",
)
P1 = Rule({"difference <= 0.1": of("share.gap") <= 0.1}, predicted("share"))
P2 = Rule(
    {
        "difference <= 0.01": of("level.gap") <= 0.1 * EPSILON,
        "no violation after the first feasible round": most("settled.after") <= 0,
    },
    predicted("level"),
)

CLAIMS = (
    workshop(
        id="fedsgm/C1",
        place="Figure 1",
        wording="Hard and soft switching both drive the objective down and bring the constraint "
        "to its level.",
        measure="f and g averaged over the last 20 of 100 rounds, 10 seeds.",
        rule=C1,
        runs=MAIN,
        figure="figure_1",
    ),
    workshop(
        id="fedsgm/C2",
        place="Figure 1",
        wording="Hard switching oscillates around the level, soft switching stays feasible.",
        measure="Violating rounds after the first feasible one (after); standard deviation of g, "
        "last 20 rounds (jitter).",
        rule=C2,
        runs=MAIN,
        figure="figure_1",
    ),
    workshop(
        id="fedsgm/C3",
        place="text on Figure 1",
        wording="Soft switching has about four times fewer violating rounds than hard switching.",
        measure="Violating rounds over all 100, hard divided by soft, at five step sizes.",
        rule=C3,
        runs=MAIN + RATE_RUNS,
        figure="learning_rates",
    ),
    workshop(
        id="fedsgm/C4",
        place="text on Figure 1",
        wording="The gain in feasibility costs nothing in the objective.",
        measure="Late f of soft divided by late f of hard, paired by seed.",
        rule=C4,
        runs=MAIN,
        figure="figure_1",
    ),
    ours(
        id="fedsgm/P1",
        wording="Hard switching spends a share lambda/(1 + lambda) of its late rounds on the "
        "constraint.",
        measure="Share of constraint rounds in the second half of long uncompressed runs, and its "
        "mean absolute difference from the formula (gap); lambda is the ratio of the gradients' "
        "norms at the final model.",
        rule=P1,
        runs=("hard_settled",),
    ),
    ours(
        id="fedsgm/P2",
        wording="Soft switching settles at g = epsilon - 1/(beta (1 + lambda)), below the level, "
        "so that violations stop after the descent.",
        measure="Mean g in the second half of long uncompressed runs against the formula, mean "
        "absolute difference over seeds (gap); violations after the first feasible round (after).",
        rule=P2,
        runs=("soft_settled",),
    ),
)

in_text = partial(PaperValue, place="W, text on Figure 1")
drawn = partial(PaperValue, place="W, Figure 1")

PAPER_VALUES = (
    in_text("violations, hard / soft", "ratio.main", 4.0, "about 4 times fewer", rtol=0.25),
    in_text("the same at step size 0.1", "ratio.lr0.1", 4.0, "about 4 times", rtol=0.25),
    in_text("the same at step size 1", "ratio.lr1", 4.0, "about 4 times", rtol=0.25),
    drawn("late constraint, soft", "soft.g", None, "at or below 0.1 (curve)"),
    drawn("late constraint, hard", "hard.g", None, "around 0.1 (curve)"),
    in_text("late objective, soft / hard", "loss_ratio.main", 1.0, "no loss", rtol=0.05),
)
