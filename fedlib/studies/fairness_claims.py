"""The full paper's claim about fair classification, and the rule that judges it."""

from __future__ import annotations

from fedlib.claims import Claim, Numbers, Outcome, PaperValue, judge
from fedlib.numbers import Number
from fedlib.studies.fairness_numbers import FEASIBLE

__all__ = ["CLAIMS", "PAPER_VALUES", "c22"]

EPSILON = 0.05
NEAR = 0.05  # comparable: late losses within 5 %
OTHERS = ("hard", "soft", "penalty", "central_hard", "central_soft", "central_penalty")
DUALS = ("conex_dual1", "conex_dual10")
RHOS = ("0.1", "1", "10")


def not_larger(difference: Number) -> bool:
    """Whether a paired difference is not above zero: its interval reaches zero or below."""
    return difference.low <= 0


def dominates(n: Numbers, pair: str) -> bool:
    """Neither late f nor late g is larger, and one of them is lower with its interval off zero."""
    f, g = n[f"{pair}.f"], n[f"{pair}.g"]
    return not_larger(f) and not_larger(g) and (f.high < 0 or g.high < 0)


def c22(n: Numbers) -> Outcome:
    """Four parts, as the claim's rule says."""
    n["adult.rows"]  # a stand-in for the data cannot judge the paper
    penalty = n["penalty.f"]
    near = abs(n["hard_vs_penalty.f"].value) <= NEAR * penalty.value
    kept = max(n["hard.g"].value, n["penalty.g"].value) <= FEASIBLE * EPSILON
    more = all(
        n[f"{m}_vs_central.g"].low > 0 and n[f"{m}_vs_central.f"].high < 0 for m in ("hard", "soft")
    )
    least = all(
        n[f"{d}.g"].value < n[f"{o}.g"].value and n[f"{d}.f"].value > n[f"{o}.f"].value
        for d in DUALS
        for o in OTHERS
    )
    soft = dominates(n, "soft_vs_hard") and dominates(n, "soft_vs_penalty")
    parts = {
        "hard comparable with the tuned penalty": near and kept,
        "soft the best trade-off": soft,
        "centralized more conservative than federated": more,
        "IPP ConEx the most conservative": least,
    }
    text = "; ".join(
        f"{name} f {n[f'{run}.f'].text()}, g {n[f'{run}.g'].text('.2g')}"
        for name, run in (
            ("hard", "hard"),
            ("soft", "soft"),
            (f"penalty {n['penalty.rho'].value:g}", "penalty"),
            ("centralized hard", "central_hard"),
            ("centralized soft", "central_soft"),
            ("ConEx, dual step 1", "conex_dual1"),
            ("ConEx, dual step 10", "conex_dual10"),
        )
    )
    return judge(parts, text)


CLAIMS = (
    Claim(
        "fedsgm/C22",
        "F",
        "Figure 7",
        "Soft FedSGM has the best trade-off of loss and fairness; hard FedSGM is comparable with "
        "the tuned penalty; centralized methods are more conservative; IPP ConEx is the most "
        "conservative.",
        "Late means of training loss f and gap g (last 100 of 500 rounds), 5 seeds; penalty tuned "
        "on training curves: smallest late f among those with mean late g <= 1.05 epsilon.",
        "(1) Late f of hard within 5 % of the tuned penalty's, late g of both <= 1.05 epsilon. "
        "(2) Against hard and against the tuned penalty, paired by seed: neither f nor g of soft "
        "larger (interval of the difference reaches 0), one of them lower (interval below 0). "
        "(3) For hard and for soft: centralized g lower and f higher than federated, intervals of "
        "both paired differences off 0. (4) At both dual steps ConEx has lower mean g and higher "
        "mean f than hard, soft and penalty, federated and centralized.",
        (
            "hard",
            "soft",
            *(f"penalty_rho{r}" for r in RHOS),
            "central_hard",
            "central_soft",
            *(f"central_penalty_rho{r}" for r in RHOS),
            *DUALS,
        ),
        c22,
        figure="trade_off",
    ),
)

PAPER_VALUES = tuple(
    PaperValue(f"late {what}, {text}", f"{run}.{k}", None, "curve only", "F, Figure 7")
    for run, text in (("hard", "hard"), ("soft", "soft"), ("penalty", "tuned penalty"))
    for k, what in (("f", "loss"), ("g", "gap"))
)
