"""The workshop paper's claims about Neyman-Pearson classification, and two predictions."""

from __future__ import annotations

from math import log

from fedlib.claims import Claim, Numbers, Outcome, PaperValue, judge

__all__ = ["CLAIMS", "PAPER_VALUES"]

EPSILON = 0.1
START = log(2)  # f and g at w = 0
MAIN = ("hard", "soft")
RATES = ("lr0.1", "lr0.2", "main", "lr0.5", "lr1")  # the step sizes that reach the level early
RATE_RUNS = tuple(f"{m}_{r}" for m in MAIN for r in RATES if r != "main")


def c1(n: Numbers) -> Outcome:
    """Both modes: late f below a quarter of its start, late g at most 5 % above the level."""
    parts = {}
    for mode in MAIN:
        parts[f"{mode}: late f < {START / 4:.3f}"] = n[f"{mode}.f"].high < START / 4
        parts[f"{mode}: late g <= {1.05 * EPSILON:g}"] = n[f"{mode}.g"].high <= 1.05 * EPSILON
    text = "; ".join(f"{m}: f {n[f'{m}.f'].text()}, g {n[f'{m}.g'].text()}" for m in MAIN)
    return judge(parts, text)


def c2(n: Numbers) -> Outcome:
    """Soft never violates again, hard does, and hard's g scatters more."""
    parts = {
        "hard violates after its first feasible round": n["hard.after"].low > 0,
        "soft never does": max(n["soft.after"].per_seed) == 0,
        "g scatters less under soft": n["soft.jitter"].high < n["hard.jitter"].low,
    }
    text = "; ".join(
        f"{m}: {n[f'{m}.after'].text()} after first feasible, std {n[f'{m}.jitter'].text()}"
        for m in MAIN
    )
    return judge(parts, text)


def c3(n: Numbers) -> Outcome:
    """The ratio is about 4 (interval meets 3 to 5) at every step size that reaches the level."""
    parts = {
        f"about 4 at {'lr0.3' if r == 'main' else r}": n[f"ratio.{r}"].high >= 3
        and n[f"ratio.{r}"].low <= 5
        for r in RATES
    }
    text = "; ".join(
        f"{'lr0.3' if r == 'main' else r}: {n[f'ratio.{r}'].text('.2g')}" for r in RATES
    )
    return judge(parts, text)


def c4(n: Numbers) -> Outcome:
    """Soft's late objective is at most 5 % above hard's."""
    r = n["loss_ratio.main"]
    return judge({"late f of soft within 5 % of hard's": r.low <= 1.05}, f"soft/hard {r.text()}")


def p1(n: Numbers) -> Outcome:
    """Predicted and measured share differ by at most 0.1 on average over seeds."""
    gap = n["share.gap"]
    text = (
        f"predicted {n['share.predicted'].text()}, measured {n['share.measured'].text()}, "
        f"mean difference {gap.text()}"
    )
    return judge({"difference <= 0.1": gap.high <= 0.1}, text)


def p2(n: Numbers) -> Outcome:
    """Soft settles within a tenth of epsilon of the predicted level and never violates again."""
    gap = n["level.gap"]
    text = (
        f"predicted {n['level.predicted'].text()}, measured {n['level.measured'].text()}, "
        f"mean difference {gap.text()}"
    )
    parts = {
        "difference <= 0.01": gap.high <= 0.1 * EPSILON,
        "no violation after the first feasible round": max(n["settled.after"].per_seed) == 0,
    }
    return judge(parts, text)


CLAIMS = (
    Claim(
        "fedsgm/C1",
        "W",
        "Figure 1",
        "Hard and soft switching both drive the objective down and bring the constraint to its "
        "level.",
        "f and g averaged over the last 20 of 100 rounds, 10 seeds.",
        "For both modes the interval of f lies below log(2)/4 and that of g below 1.05 epsilon.",
        MAIN,
        c1,
        figure="figure_1",
    ),
    Claim(
        "fedsgm/C2",
        "W",
        "Figure 1",
        "Hard switching oscillates around the level, soft switching stays feasible.",
        "Violating rounds after the first feasible one; standard deviation of g, last 20 rounds.",
        "Hard: interval above 0. Soft: 0 on every seed. Soft's deviation below hard's, intervals "
        "apart.",
        MAIN,
        c2,
        figure="figure_1",
    ),
    Claim(
        "fedsgm/C3",
        "W",
        "text on Figure 1",
        "Soft switching has about four times fewer violating rounds than hard switching.",
        "Violating rounds over all 100, hard divided by soft, at five step sizes.",
        "At a step size it holds if the interval of the ratio meets [3, 5]; reproduced if it holds "
        "at all five, not at all if at none.",
        MAIN + RATE_RUNS,
        c3,
        figure="learning_rates",
    ),
    Claim(
        "fedsgm/C4",
        "W",
        "text on Figure 1",
        "The gain in feasibility costs nothing in the objective.",
        "Late f of soft divided by late f of hard, paired by seed.",
        "Holds if the interval of the ratio reaches down to 1.05.",
        MAIN,
        c4,
        figure="figure_1",
    ),
    Claim(
        "fedsgm/P1",
        "ours",
        "prediction",
        "Hard switching spends a share lambda/(1 + lambda) of its late rounds on the constraint.",
        "Share of constraint rounds in the second half of long uncompressed runs; lambda is the "
        "ratio of the gradients' norms at the final model.",
        "The mean absolute difference over seeds is at most 0.1 (upper end of its interval).",
        ("hard_settled",),
        p1,
    ),
    Claim(
        "fedsgm/P2",
        "ours",
        "prediction",
        "Soft switching settles at g = epsilon - 1/(beta (1 + lambda)), below the level, so that "
        "violations stop after the descent.",
        "Mean g in the second half of long uncompressed runs against the formula.",
        "The mean absolute difference is at most epsilon/10 (upper end of its interval), and no "
        "seed violates after its first feasible round.",
        ("soft_settled",),
        p2,
    ),
)

PAPER_VALUES = (
    PaperValue(
        "violations, hard / soft",
        "ratio.main",
        4.0,
        "about 4 times fewer",
        "W, text on Figure 1",
        0.25,
    ),
    PaperValue(
        "the same at step size 0.1",
        "ratio.lr0.1",
        4.0,
        "about 4 times",
        "W, text on Figure 1",
        0.25,
    ),
    PaperValue(
        "the same at step size 1", "ratio.lr1", 4.0, "about 4 times", "W, text on Figure 1", 0.25
    ),
    PaperValue("late constraint, soft", "soft.g", None, "at or below 0.1 (curve)", "W, Figure 1"),
    PaperValue("late constraint, hard", "hard.g", None, "around 0.1 (curve)", "W, Figure 1"),
    PaperValue(
        "late objective, soft / hard",
        "loss_ratio.main",
        1.0,
        "no loss",
        "W, text on Figure 1",
        0.05,
    ),
)
