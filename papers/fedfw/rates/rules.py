"""The rules that judge the theorems and Figures 2 to 4 of Federated Frank-Wolfe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from papers.fedfw.rates.numbers import NORMS
from papers.kit.rules import (
    EXCHANGED,
    Control,
    Rule,
    most,
    near,
    of,
    stat,
    stat_value,
    value,
)

# What the claims are judged on: the full profile's rounds and sweeps.
CONVEX_ROUNDS = 4000
PAIR_PENALTIES = (0.01, 0.1, 1.0)
CONVEX_PENALTIES = (1e-3, 1e-2, 1e-1)
STOCHASTIC_PENALTIES = NONCONVEX_PENALTIES = (1e-2, 1e-1)
HORIZONS = (64, 256, 1024, 4096)
SHARES = (0.2, 0.5, 0.8, 1.0)
SHARE_PENALTIES = (0.01, 0.001)
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0)
QUALITIES, SLIPS = (0.75, 0.5, 0.25), (1e-3, 1e-2, 1e-1)
LANCZOS = (1, 2, 3, 5, 40)

ROUNDING = 1e-9  # C1: how near to 0 the naive scheme stays
SAME = 0.05  # C13: a share of the exact oracle's excess that counts as none
FEW = LANCZOS[:-1]  # steps; the most there are stand for the exact oracle
NAIVE = ("falling", "constant")
CONVEX_SHARES = {f"share_mclr_L{x:g}": f"regression, lambda_0 = {x:g}" for x in SHARE_PENALTIES}
NETWORKS = {"share_fedfw": "network, FedFW", "share_plus": "network, FedFW+"}
SETTINGS = {
    f"penalty_{model}_{norm}": f"{text}, {norm}"
    for model, text in (("mclr", "regression on MNIST"), ("net", "network"))
    for norm in NORMS
}
UNTRAINED = "network, l1"  # C6: of these settings
BOTH = {norm: f"wrong_{norm}" for norm in NORMS}


def values(keys: Iterable[str]) -> str:
    return " / ".join(map(stat_value, keys))


def listed(x: Sequence[float]) -> str:
    return " / ".join(f"{v:g}" for v in x)


C1 = Rule(
    {
        "the naive scheme ends at 0": {
            f"{step} step": value(f"pair_naive_{step}.farthest") <= ROUNDING for step in NAIVE
        },
        "FedFW comes nearer to 1": {
            f"lambda_0 = {x:g}": of(f"pair_fedfw_L{x:g}.nearer") > 0 for x in PAIR_PENALTIES
        },
    },
    "x at the end: naive scheme, falling / constant step: "
    f"{values(f'pair_naive_{s}.x' for s in NAIVE)}; FedFW, lambda_0 = {listed(PAIR_PENALTIES)}: "
    f"{values(f'pair_fedfw_L{x:g}.x' for x in PAIR_PENALTIES)}",
    "A limit is not reached in any run: the smaller lambda_0, the slower FedFW.",
    control=Control(
        "the naive scheme in the place of FedFW",
        {f"pair_fedfw_L{x:g}": "pair_naive_falling" for x in PAIR_PENALTIES},
    ),
)


def theorem(bound: str, kind: str, ends: dict[str, str], measure: str) -> Rule:
    """Whether a theorem's bound is kept, if a run could break it; its power is not judged.

    `ends` has what a slope is of in words -> its run, `measure` what the runs end with.
    """
    slopes = "; ".join(
        f"{text}: {stat_value(f'{run}{measure}')}, slope {stat(f'{run}.slope', '.2f')}"
        for text, run in ends.items()
    )
    return Rule(
        {f"at most {bound}": most(f"{kind}.ratio") <= 1},
        f"{bound} is {stat_value(f'{kind}.by_most')} times the most that a model in the set can "
        f"have, or more; the runs reach {stat_value(f'{kind}.ratio', '.2g')} of it, or less. At "
        f"the end {slopes}",
        "An order of decrease implies no slope in a window of rounds. Proofs, with shorter bounds "
        "and runs beside them, are in the notes.",
        {
            f"no run could break {bound}: in every round it is more than any model in the set can "
            "have": of(f"{kind}.by_most") < 1
        },
        control=Control("a run at twice the bound", {f"{kind}.ratio": 2.0}),
    )


def by_penalty(start: str, penalties: Sequence[float]) -> dict[str, str]:
    return {
        f"{norm}, lambda_0 = {x:g}": f"{start.format(norm)}_L{x:g}"
        for norm in NORMS
        for x in penalties
    }


CONVEX, NOISY, BUMPY = (
    by_penalty(start, penalties)
    for start, penalties in (
        ("convex_{}_fedfw", CONVEX_PENALTIES),
        ("sto_{}", STOCHASTIC_PENALTIES),
        ("nonconvex_{}", NONCONVEX_PENALTIES),
    )
)
LENGTHS = tuple(f"{run}_T{T}" for run in BUMPY.values() for T in HORIZONS)
C2 = theorem("(38)", "convex", CONVEX, ".excess")
C3 = theorem("(62)", "nonconvex", BUMPY, f"_T{HORIZONS[-1]}.least_gap")
C4 = theorem("(68)", "sto", NOISY, ".excess")


def participation(starts: dict[str, str], sentence: str, note: str, more: str = "") -> Rule:
    """Whether a larger p is faster in some settings: a run's name before p -> its words."""
    return Rule(
        {sentence: {text: of(f"{run}.trend") < 0 for run, text in starts.items()}},
        f"mean loss over the rounds, p = {listed(SHARES)}: "
        + "; ".join(
            f"{text}: {values(f'{run}_p{q:g}.mean_loss' for q in SHARES)}, by p "
            f"{stat(f'{run}.trend', '.2g')}"
            for run, text in starts.items()
        )
        + more,
        "Speed is the mean loss over the rounds; what is judged is its slope over p, seed by seed."
        + note,
        control=EXCHANGED,
    )


C5 = participation(CONVEX_SHARES, "the larger p, the lower the loss, for both lambda_0", "")
C15 = participation(
    NETWORKS,
    "the larger p, the lower the loss",
    " For FedFW+ there is no theorem.",
    f"; of FedFW+ the last loss by p {stat('share_plus.trend_last', '.2g')}",
)


def by_gap(gap: str, early: str, note: str) -> Rule:
    """Figure 4 with one of the two gaps: its trend in the first rounds, one panel a setting."""
    above = {text: of(f"{run}.trend_{gap}") > 0 for run, text in SETTINGS.items()}
    return Rule(
        {"a larger lambda_0, a larger gap": {t: c for t, c in above.items() if t != UNTRAINED}},
        f"mean gap of the first rounds, lambda_0 = {listed(PENALTIES)}: "
        + "; ".join(
            f"{text}: {values(f'{run}_L{x:g}.{early}' for x in PENALTIES)}, power of lambda_0 "
            f"{stat(f'{run}.trend_{gap}', '.2g')}"
            for run, text in SETTINGS.items()
        ),
        f"{note} The {UNTRAINED} ball trains with no lambda_0, and is not judged.",
        control=EXCHANGED,
    )


C6 = by_gap("surrogate", "early_surrogate", "The penalty, which this gap contains, enlarges it.")
C6_GLOBAL = by_gap("gap", "early_gap", "The penalty is no part of this gap.")

ATTAINED = {
    f"{norm}, m = {m:g}": of(f"{run}_quality{m:g}.times") <= m**-2
    for norm, run in BOTH.items()
    for m in QUALITIES
}
MISSED = {
    f"{norm}, e = {x:g}": of(f"{run}_slip{x:g}.more") <= x
    for norm, run in BOTH.items()
    for x in SLIPS
}
FALLING = {
    f"{norm}, e = {x:g}": near(f"{run}_falling{x:g}.times", 1, SAME)
    for norm, run in BOTH.items()
    for x in SLIPS
}
C13 = Rule(
    {
        "a share m of the gap costs at most 1/m^2": ATTAINED,
        "an error e costs at most e": MISSED,
        "an error that falls with the step costs nothing": FALLING,
    },
    "; ".join(
        f"{norm}: excess by the exact oracle's with a share {listed(QUALITIES)} of the gap "
        f"{values(f'{run}_quality{m:g}.times' for m in QUALITIES)}, and with a falling error of "
        f"{listed(SLIPS)} {', '.join(stat(f'{run}_falling{x:g}.times', '.3f') for x in SLIPS)}; "
        f"more than it with a constant one {values(f'{run}_slip{x:g}.more' for x in SLIPS)}"
        for norm, run in BOTH.items()
    )
    + f"; nuclear ball, gap with {listed(FEW)} steps by that with all: "
    f"{values(f'nuclear_k{k}.times' for k in FEW)}",
    "The paper cites this and has no experiment. 1/m^2 and e are what the errors may cost in the "
    f"bounds of the notes; nothing is a change within {100 * SAME:g} % of the exact oracle's "
    "excess, a margin of ours. Few steps of Lanczos are errors of no known size: not judged.",
    control=Control(
        "an oracle with a quarter of the gap under every name",
        {f"{run}_{kind}{x:g}": f"{run}_quality0.25" for run in BOTH.values()
         for kind, xs in (("falling", SLIPS), ("slip", SLIPS)) for x in xs},
    ),
)  # fmt: skip
