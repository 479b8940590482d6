"""The full paper's claim about fair classification, and the rule that judges it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from papers.fedsgm.curves import FEASIBLE
from papers.kit.claims import Claim, PaperValue
from papers.kit.needs import Needs
from papers.kit.rules import Condition, Rule, Term, all_of, of, point, told, told_value, value

EPSILON = 0.05
NEAR = 0.05  # comparable: late losses within 5 %
MODES = ("hard", "soft")
OTHERS = (*MODES, "penalty", "central_hard", "central_soft", "central_penalty")
DUALS = ("conex_dual1", "conex_dual10")
RHOS = ("0.1", "1", "10")
TOLD = {
    "hard": "hard",
    "soft": "soft",
    f"penalty {told_value('penalty.rho', 'g')}": "penalty",
    "centralized hard": "central_hard",
    "centralized soft": "central_soft",
    "ConEx, dual step 1": "conex_dual1",
    "ConEx, dual step 10": "conex_dual10",
}


def lowest(terms: Iterable[Term]) -> Term:
    return _one_of("smallest", min, tuple(terms))


def highest(terms: Iterable[Term]) -> Term:
    return _one_of("largest", max, tuple(terms))


def _one_of(word: str, how: Callable[[list[float]], float], terms: tuple[Term, ...]) -> Term:
    form = f"{word} of {', '.join(t.form for t in terms)}"
    keys = tuple(key for t in terms for key in t.keys)
    return Term("", form, keys, lambda n: point(how([t.read(n).value for t in terms])))


def dominates(pair: str) -> Condition:
    """Neither late f nor late g is larger, and one of them is lower with its interval off zero."""
    both = f"{pair}.f", f"{pair}.g"
    f, g = map(of, both)
    return (f <= 0) & (g <= 0) & ((f < 0) | (g < 0))


def late(runs: Iterable[str], k: str) -> list[Term]:
    return [value(f"{run}.{k}") for run in runs]


C22 = Rule(
    {
        "hard comparable with the tuned penalty": (
            abs(value("hard_vs_penalty.f")) <= NEAR * value("penalty.f")
        )
        & (highest(late(("hard", "penalty"), "g")) <= FEASIBLE * EPSILON),
        "soft the best trade-off": dominates("soft_vs_hard") & dominates("soft_vs_penalty"),
        "centralized more conservative than federated": all_of(
            *(of(f"{m}_vs_central.g") > 0 for m in MODES),
            *(of(f"{m}_vs_central.f") < 0 for m in MODES),
        ),
        "IPP ConEx the most conservative": (highest(late(DUALS, "g")) < lowest(late(OTHERS, "g")))
        & (lowest(late(DUALS, "f")) > highest(late(OTHERS, "f"))),
    },
    "; ".join(f"{t} f {told(f'{x}.f')}, g {told(f'{x}.g', '.2g')}" for t, x in TOLD.items()),
)

CLAIMS = (
    Claim(
        id="fedsgm/C22",
        paper="F",
        place="Figure 7",
        wording="Soft FedSGM has the best trade-off of loss and fairness; hard FedSGM is "
        "comparable with the tuned penalty; centralized methods are more conservative; IPP ConEx "
        "is the most conservative.",
        measure="Late means of training loss f and gap g (last 100 of 500 rounds), 5 seeds; "
        "penalty tuned on training curves: smallest late f among those with mean late g <= 1.05 "
        "epsilon; differences of two methods (vs) paired by seed.",
        rule=C22,
        runs=(
            *MODES,
            *(f"penalty_rho{r}" for r in RHOS),
            *(f"central_{m}" for m in MODES),
            *(f"central_penalty_rho{r}" for r in RHOS),
            *DUALS,
        ),
        figure="trade_off",
        needs=Needs(parameters=("rhos",)),
    ),
)

PAPER_VALUES = tuple(
    PaperValue(f"late {what}, {text}", f"{run}.{k}", None, "curve only", "F, Figure 7")
    for run, text in (("hard", "hard"), ("soft", "soft"), ("penalty", "tuned penalty"))
    for k, what in (("f", "loss"), ("g", "gap"))
)
