"""What Federated Frank-Wolfe's theorems, Figures 2 to 4 and remarks say, as claims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from papers.fedfw.rates.numbers import NORMS
from papers.kit.claims import Claim, Reading
from papers.kit.health import Needs
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
        f"the naive scheme ends within {ROUNDING:g} of 0": {
            f"{step} step": value(f"pair_naive_{step}.farthest") <= ROUNDING for step in NAIVE
        },
        "FedFW ends nearer to 1 than it starts": {
            f"lambda_0 = {x:g}": of(f"pair_fedfw_L{x:g}.nearer") > 0 for x in PAIR_PENALTIES
        },
    },
    "The naive scheme with a falling / constant step ends at x = "
    f"{values(f'pair_naive_{s}.x' for s in NAIVE)}. FedFW with lambda_0 = "
    f"{listed(PAIR_PENALTIES)} ends at "
    f"{values(f'pair_fedfw_L{x:g}.x' for x in PAIR_PENALTIES)}",
    "No run reaches the limit 1. A smaller lambda_0 makes FedFW approach it more slowly.",
    control=Control(
        "the naive scheme instead of FedFW",
        {f"pair_fedfw_L{x:g}": "pair_naive_falling" for x in PAIR_PENALTIES},
    ),
)


SLOPES = (
    "The slopes are not judged, because a rate does not determine the slope in a window of rounds. "
    "The notes prove a smaller bound and compare it with runs."
)


def theorem(bound: str, kind: str, ends: dict[str, str], measure: str, note: str) -> Rule:
    """Whether runs keep a theorem's bound, if a run could break it; its power is not judged.

    `ends` maps a setting in words to its run; `measure` is the key of the final value.
    """
    slopes = "; ".join(
        f"{text}: {stat_value(f'{run}{measure}')}, {stat(f'{run}.slope', '.2f')}"
        for text, run in ends.items()
    )
    return Rule(
        {f"the runs stay below the bound {bound}": most(f"{kind}.ratio") <= 1},
        f"The bound {bound} is at least {stat_value(f'{kind}.by_most')} times the largest value of "
        f"a model in the set. The runs reach at most {stat_value(f'{kind}.ratio', '.2g')} of the "
        f"bound. Final values and slopes: {slopes}",
        note,
        {
            f"no run could break the bound {bound}, which in every round exceeds the value of "
            "every model in the set": of(f"{kind}.by_most") < 1
        },
        control=Control("a run at twice the bound", {f"{kind}.ratio": 2.0}),
    )


def by_penalty(start: str, penalties: Sequence[float]) -> dict[str, str]:
    return {
        f"{norm}, lambda_0 = {x:g}": f"{start.format(norm)}_L{x:g}"
        for norm in NORMS
        for x in penalties
    }


SETTLED, NOISY, BUMPY = (
    by_penalty(start, penalties)
    for start, penalties in (
        ("convex_{}_fedfw", CONVEX_PENALTIES),
        ("sto_{}", STOCHASTIC_PENALTIES),
        ("nonconvex_{}", NONCONVEX_PENALTIES),
    )
)
LENGTHS = tuple(f"{run}_T{T}" for run in BUMPY.values() for T in HORIZONS)
C2 = theorem("(38)", "convex", SETTLED, ".excess", SLOPES)
C3 = theorem(
    "(62)",
    "nonconvex",
    BUMPY,
    f"_T{HORIZONS[-1]}.least_gap",
    "On slopes and a smaller bound see C2.",
)
C4 = theorem("(68)", "sto", NOISY, ".excess", "On slopes and a smaller bound see C2.")


def participation(starts: dict[str, str], sentence: str, note: str, more: str = "") -> Rule:
    """Whether a larger p is faster in some settings: a run's name before p -> its words."""
    return Rule(
        {sentence: {text: of(f"{run}.trend") < 0 for run, text in starts.items()}},
        f"Mean loss over the rounds for p = {listed(SHARES)}: "
        + "; ".join(
            f"{text}: {values(f'{run}_p{q:g}.mean_loss' for q in SHARES)}, slope over p "
            f"{stat(f'{run}.trend', '.2g')}"
            for run, text in starts.items()
        )
        + more,
        "A share p of the clients takes part in a round. The rule judges the slope of "
        "the loss over p, seed by seed." + note,
        control=EXCHANGED,
    )


C5 = participation(CONVEX_SHARES, "the mean loss over the rounds falls with p", "")
C15 = participation(
    NETWORKS,
    "the mean loss over the rounds falls with p",
    " No theorem covers FedFW+.",
    f". The last loss of FedFW+ has the slope {stat('share_plus.trend_last', '.2g')} over p",
)


def by_gap(gap: str, early: str, note: str) -> Rule:
    """Figure 4 with one of the two gaps: its trend in the first rounds, one panel a setting."""
    above = {text: of(f"{run}.trend_{gap}") > 0 for run, text in SETTINGS.items()}
    return Rule(
        {
            "the mean gap of the first rounds rises with lambda_0": {
                t: c for t, c in above.items() if t != UNTRAINED
            }
        },
        f"Mean gap of the first rounds for lambda_0 = {listed(PENALTIES)}: "
        + "; ".join(
            f"{text}: {values(f'{run}_L{x:g}.{early}' for x in PENALTIES)}, exponent of lambda_0 "
            f"{stat(f'{run}.trend_{gap}', '.2g')}"
            for run, text in SETTINGS.items()
        ),
        note,
        control=EXCHANGED,
    )


C6 = by_gap(
    "surrogate",
    "early_surrogate",
    "The gap of the surrogate contains the penalty, which enlarges it.",
)
C6_GLOBAL = by_gap(
    "gap",
    "early_gap",
    "The gap (11) does not contain the penalty. "
    f"The setting '{UNTRAINED}' is not judged, because it trains with no lambda_0.",
)

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


def on_balls(texts: dict[str, str]) -> str:
    """A text for each of the two balls."""
    return " and ".join(f"{text} ({norm} ball)" for norm, text in texts.items())


C13 = Rule(
    {
        "an oracle with a share m of the gap multiplies the excess by at most 1/m^2": ATTAINED,
        "an oracle with the additive error e adds at most e to the excess": MISSED,
        f"an error e that falls with the step changes the excess by at most {100 * SAME:g} "
        "%": FALLING,
    },
    f"an oracle with a share {listed(QUALITIES)} of the gap multiplies the exact oracle's excess "
    "by "
    + on_balls(
        {b: values(f"{run}_quality{m:g}.times" for m in QUALITIES) for b, run in BOTH.items()}
    )
    + f". One with a falling error of {listed(SLIPS)} multiplies it by "
    + on_balls(
        {
            b: ", ".join(stat(f"{run}_falling{x:g}.times", ".3f") for x in SLIPS)
            for b, run in BOTH.items()
        }
    )
    + f". One with a constant error of {listed(SLIPS)} adds to it "
    + on_balls({b: values(f"{run}_slip{x:g}.more" for x in SLIPS) for b, run in BOTH.items()})
    + f". On the nuclear ball {listed(FEW)} Lanczos steps multiply the gap with all steps by "
    f"{values(f'nuclear_k{k}.times' for k in FEW)}",
    "The paper cites this claim without an experiment. The excess F - F* at the end is "
    "compared with that of the exact oracle. The limits 1/m^2 and e are from the bounds of the "
    "notes. Runs with few Lanczos steps are not judged, because their errors are unknown.",
    control=Control(
        "the oracle with a quarter of the gap instead of every other",
        {f"{run}_{kind}{x:g}": f"{run}_quality0.25" for run in BOTH.values()
         for kind, xs in (("falling", SLIPS), ("slip", SLIPS)) for x in xs},
    ),
)  # fmt: skip


KNOWN = tuple(f"convex_{norm}_reference" for norm in NORMS)


paper = partial(Claim, paper="D")


def swept(start: str, values: Iterable[float]) -> tuple[str, ...]:
    names = [start.format(norm) for norm in NORMS] if "{}" in start else [start]
    return tuple(f"{name}{x:g}" for name in names for x in values)


def shares(starts: Iterable[str]) -> tuple[str, ...]:
    return tuple(run for start in starts for run in swept(f"{start}_p", SHARES))


LAMBDA_RUNS = tuple(
    run
    for start, text in SETTINGS.items()
    if text != UNTRAINED
    for run in swept(f"{start}_L", PENALTIES)
)
LAMBDA_NEEDS = Needs(parameters=("penalties",), dead=("penalty_*_L0.1", "penalty_*_L1"))

CLAIMS = (
    paper(
        id="fedfw/C1",
        place="Appendix A",
        wording="On a problem of two clients with the minimizer 1, averaging the oracle's answers "
        "at the common model stalls at 0. FedFW converges to 1.",
        rule=C1,
        runs=(
            *(f"pair_naive_{s}" for s in NAIVE),
            *swept("pair_fedfw_L", PAIR_PENALTIES),
        ),
        figure="counterexample",
        needs=Needs(dead=("pair_naive_*",)),
    ),
    paper(
        id="fedfw/C2",
        place="Theorem 1",
        wording="On convex problems F - F* is below the bound (38), which falls like the root of "
        "1/t.",
        rule=C2,
        kind="proved",
        runs=(*KNOWN, *swept("convex_{}_fedfw_L", CONVEX_PENALTIES)),
        figure="theorem_1",
    ),
    paper(
        id="fedfw/C3",
        place="Theorem 2",
        wording="On smooth problems that are not convex the smallest gap of T rounds is below the "
        "bound (62), which falls like the cube root of 1/T.",
        rule=C3,
        kind="proved",
        runs=tuple(f"nonconvex_{norm}_reference" for norm in NORMS) + LENGTHS,
        needs=Needs(parameters=("horizons",), dead=("nonconvex_l1_L0.1_*",)),
    ),
    paper(
        id="fedfw/C4",
        place="Theorem 3",
        wording="On convex problems F - F* of FedFW-sto is of the order of the cube root of 1/t.",
        rule=C4,
        kind="proved",
        runs=(*KNOWN, *swept("sto_{}_L", STOCHASTIC_PENALTIES)),
    ),
    paper(
        id="fedfw/C5",
        place="Theorem 1, Figure 2",
        wording="On convex problems FedFW converges faster the more clients take part, "
        "for every lambda_0.",
        rule=C5,
        runs=shares(CONVEX_SHARES),
        figure="figure_2",
        needs=Needs(parameters=("shares",)),
    ),
    paper(
        id="fedfw/C15",
        place="Theorem 2, Figure 3",
        wording="On problems that are not convex FedFW and FedFW+ converge faster the more "
        "clients take part.",
        rule=C15,
        runs=shares(NETWORKS),
        figure="figure_3",
        needs=Needs(parameters=("shares",)),
    ),
    paper(
        id="fedfw/C6",
        place="Figure 4",
        wording="With a larger lambda_0 the Frank-Wolfe gap is larger in the first rounds.",
        rule=C6_GLOBAL,
        runs=LAMBDA_RUNS,
        figure="figure_4",
        needs=LAMBDA_NEEDS,
        reading="the gap (11), as in the text",
        readings=(Reading("the surrogate's gap, as in the code", C6, LAMBDA_RUNS, LAMBDA_NEEDS),),
    ),
    paper(
        id="fedfw/C13",
        place="Remark on oracles",
        wording="Frank-Wolfe methods tolerate additive and multiplicative errors of their oracles.",
        rule=C13,
        runs=(
            *(f"wrong_{norm}_exact" for norm in NORMS),
            *swept("wrong_{}_quality", QUALITIES),
            *swept("wrong_{}_slip", SLIPS),
            *swept("wrong_{}_falling", SLIPS),
            *swept("nuclear_k", LANCZOS),
        ),
        needs=Needs(parameters=("lanczos",)),
    ),
)
