"""The full paper's claims about Neyman-Pearson classification, and one prediction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fedlib.claims import Claim, Numbers, Outcome, PaperValue
from fedlib.studies import np_unified_rules as rules
from fedlib.studies.np_unified_rules import FRACTIONS, MEMBERS, MODES, RHOS, STEPS

__all__ = ["CLAIMS", "PAPER_VALUES"]


def sweep(prefixes: Sequence[str], suffixes: Sequence[str]) -> tuple[str, ...]:
    """Names of runs."""
    return tuple(f"{a}{b}" for a in prefixes for b in suffixes)


ALL = ("hard_all", "soft_all")
RATES = ("0.0001", "0.001", "0.01", "0.03", "0.1", "0.3", "1")
PENALTY_RUNS = tuple(f"penalty_rho{r}_lr{x}" for r in RHOS for x in RATES)
TUNING = tuple(f"{m}_lr{x}" for m in MODES for x in RATES if x != "0.3")


def claim(
    number: str,
    place: str,
    wording: str,
    measure: str,
    rule: str,
    runs: tuple[str, ...],
    judged: Callable[[Numbers], Outcome],
    figure: str = "",
) -> Claim:
    """A claim of the full paper."""
    return Claim(f"fedsgm/{number}", "F", place, wording, measure, rule, runs, judged, figure)


CLAIMS = (
    claim(
        "C5",
        "Figure 1",
        "Hard and soft switching both converge and satisfy the constraint.",
        "Late means of f and g (last 100 of 500 rounds), 10 splits, with 10 of 20 and all clients.",
        "Each of four settings: interval of f below log(2)/4; late g <= 1.05 epsilon on 9 of 10 "
        "seeds.",
        (*MODES, *ALL),
        rules.c5,
        figure="figure_1",
    ),
    claim(
        "C6",
        "Figure 2, row 1",
        "More local steps converge faster, with diminishing gain.",
        "Late f at E = 1, 2, 5, 10, 20, all clients take part.",
        "For each mode: f falls from E = 1 to 10; the gain per doubling of E falls from step to "
        "step of the sweep.",
        sweep(ALL, STEPS),
        rules.c6,
        figure="local_steps",
    ),
    claim(
        "C7",
        "Figure 2, row 1",
        "The oscillation of the constraint around its level grows with the local steps.",
        "Mean |g(w_t+1) - g(w_t)| over the second half, all clients.",
        "For each mode it rises with every step of the sweep.",
        sweep(ALL, STEPS),
        rules.c7,
        figure="local_steps",
    ),
    claim(
        "C8",
        "Figure 2, row 2",
        "Higher participation converges faster and more steadily, for both modes.",
        "Rounds to f <= 0.1 with g <= 1.1 epsilon (500 if never), f at round 50, oscillation, at "
        "m = 2, 5, 10, 15, 20.",
        "For each mode each of the three falls with every step of m.",
        sweep(MODES, MEMBERS),
        rules.c8,
        figure="participation",
    ),
    claim(
        "C9",
        "Figure 6",
        "Penalty-FedAvg with rho = 0.001 or 0.5 is infeasible, with rho = 100 slow or poor.",
        "Late f and g at the step size tuned on the training curves, 10 seeds.",
        "Infeasible (late g > 1.05 epsilon) on half the seeds or more; for 100 the interval of f "
        "above twice that of tuned hard FedSGM.",
        (*PENALTY_RUNS, *TUNING, *MODES),
        rules.c9,
        figure="figure_6",
    ),
    claim(
        "C10",
        "Figure 6",
        "The right penalty is hard to find, and FedSGM dominates Penalty-FedAvg.",
        "Late f and share of infeasible seeds of every penalty and of soft FedSGM, each at its "
        "tuned step size.",
        "A penalty is dominated if it is infeasible on at least half of the seeds, or neither less "
        "often infeasible nor lower in f than soft FedSGM; the claim holds for each that is.",
        (*PENALTY_RUNS, *TUNING, *MODES),
        rules.c10,
        figure="figure_6",
    ),
    claim(
        "C11",
        "Figure 2, row 3",
        "With K/d = 0.1 the method converges thanks to error feedback, but more slowly.",
        "Late f uncompressed, compressed, and compressed without feedback; rounds to the target.",
        "For each mode: within 10 % with feedback; 30 % worse without; 10 % more rounds to the "
        "target.",
        sweep(MODES, ("", "_K1", "_nofeedback")),
        rules.c11,
        figure="compression",
    ),
    claim(
        "C12",
        "Figure 2, row 3",
        "Compression makes the constraint unstable; soft switching mitigates it.",
        "Oscillation of g at K/d = 1, 0.5, 0.25, 0.1, 0.04, all clients.",
        "For each mode it rises with every step; soft's is below hard's at every K/d.",
        sweep(ALL, FRACTIONS),
        rules.c12,
        figure="compression",
    ),
    claim(
        "C13",
        "Figure 5",
        "beta = 20 is more conservative than beta = 40.",
        "Differences of late f and g between the two, paired by seed.",
        "With 10 and with all clients: interval of the difference of g below 0, of f above 0.",
        sweep(("soft", "soft_all"), ("", "_beta20")),
        rules.c13,
        figure="figure_5",
    ),
    claim(
        "C14",
        "Figure 5",
        "beta = 20 is less stable than beta = 40.",
        "Difference of the oscillation of g between the two, paired by seed.",
        "With 10 and with all clients: interval of the difference above 0.",
        sweep(("soft", "soft_all"), ("", "_beta20")),
        rules.c14,
        figure="figure_5",
    ),
    claim(
        "C15",
        "Figure 5",
        "A large beta approaches hard switching.",
        "Late f and g at beta = 40 and 4000 against hard.",
        "With 10 and with all clients: within 5 % of hard, and nearer than at 40.",
        (*MODES, *ALL, "soft_beta4000", "soft_all_beta4000"),
        rules.c15,
        figure="figure_5",
    ),
    claim(
        "C23",
        "switching rule",
        "Soft switching equals hard switching in the limit of large beta.",
        "Largest difference between the curves of f and g at beta = 1e9 and of hard, every seed.",
        "At most 0.001 on every seed.",
        ("hard", "hard_all", "soft_beta1e+09", "soft_all_beta1e+09"),
        rules.c23,
    ),
    claim(
        "C24",
        "Section 3.2",
        "Client drift makes the gradients' skewness large although the mean gradients are nearly "
        "aligned.",
        "Skewness of the clients' full gradients at the final models of hard FedSGM.",
        "On every seed: |cosine| of the mean gradients at least 0.7, local at least twice the "
        "global norm, the bound of appendix A kept.",
        ("hard",),
        rules.c24,
    ),
    Claim(
        "fedsgm/P3",
        "ours",
        "prediction",
        "A fixed penalty ends feasible exactly if it exceeds the multiplier of its split.",
        "Feasibility of Penalty-FedAvg with all clients against rho >= lambda, five penalties and "
        "10 splits; lambda from the soft run.",
        "Right in at least 90 % of the cases with rho a factor 2 or more away from lambda.",
        (*(f"penalty_all_rho{r}" for r in RHOS), "soft_all"),
        rules.p3,
    ),
)

BOUND: Any = {"rtol": 0.05, "at_most": True}

PAPER_VALUES = (
    PaperValue("late constraint, hard, 10", "hard.g", 0.05, "at most 0.05", "F, Figure 1", **BOUND),
    PaperValue("late constraint, soft, 10", "soft.g", 0.05, "at most 0.05", "F, Figure 1", **BOUND),
    PaperValue(
        "late constraint, hard, all clients",
        "hard_all.g",
        0.05,
        "at most 0.05",
        "F, Figure 1",
        **BOUND,
    ),
    PaperValue(
        "late constraint, soft, all clients",
        "soft_all.g",
        0.05,
        "at most 0.05",
        "F, Figure 1",
        **BOUND,
    ),
    PaperValue("late objective, hard, 10", "hard.f", None, "curve only", "F, Figure 1"),
    PaperValue("late objective, soft, 10", "soft.f", None, "curve only", "F, Figure 1"),
    PaperValue(
        "infeasible seeds, hard, 10", "hard.infeasible", None, "none reported", "F, Figure 1"
    ),
    PaperValue(
        "infeasible seeds, soft, 10", "soft.infeasible", None, "none reported", "F, Figure 1"
    ),
)
