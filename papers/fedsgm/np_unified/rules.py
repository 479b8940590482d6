"""The rules that judge the full paper's claims about Neyman-Pearson classification."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import log, log2

from papers.kit.rules import (
    Condition,
    Numbers,
    Rule,
    Term,
    all_of,
    falls,
    least,
    most,
    of,
    point,
    rises,
    told,
    told_value,
    value,
)

START = log(2)  # f and g at w = 0
MODES = ("hard", "soft")
GROUPS = {"": "10 of 20 clients", "_all": "all clients"}
SETTINGS = {f"{m}{g}": f"{m}, {text}" for g, text in GROUPS.items() for m in MODES}
RHOS = ("0.001", "0.5", "2", "20", "100")
STEPS = ("_all_E1", "_all_E2", "_all", "_all_E10", "_all_E20")
DOUBLINGS = (log2(2 / 1), log2(5 / 2), log2(10 / 5), log2(20 / 10))
FRACTIONS = ("_all_K1", "_all_K0.5", "_all_K0.25", "_all", "_all_K0.04")
MEMBERS = ("_m2", "_m5", "", "_m15", "_all")


def over(names: Iterable[str], text: str) -> str:
    """A text for every name, which stands in place of `$`."""
    return "; ".join(text.replace("$", name) for name in names)


def along(start: str, ends: Iterable[str], measure: str) -> tuple[str, ...]:
    """The numbers of a measure along a sweep."""
    return tuple(f"{start}{end}.{measure}" for end in ends)


def told_along(ends: Iterable[str], measure: str, spec: str = ".2g") -> str:
    """The values of a sweep from `$`, in order."""
    return ", ".join(told_value(key, spec) for key in along("$", ends, measure))


def gains_diminish(*keys: str) -> Condition:
    """Whether each doubling of E gains less than the one before."""

    def holds(n: Numbers) -> bool:
        lost = [n[a].value - n[b].value for a, b in pairwise(keys)]
        gains = [x / doublings for x, doublings in zip(lost, DOUBLINGS, strict=True)]
        return all(later < gain for gain, later in pairwise(gains))

    form = f"what a doubling of E gains falls along {', '.join(['{}'] * len(keys))}"
    return Condition(form, keys, holds)


def smallest_size(key: str) -> Term:
    """The smallest absolute value of any seed."""
    form = "smallest size of {} of any seed"
    return Term("", form, (key,), lambda n: point(min(map(abs, n[key].per_seed))))


def from_hard(group: str, end: str, k: str) -> Term:
    """How far a late value under soft switching is from that under hard switching."""
    return abs(value(f"soft{group}{end}.{k}") - value(f"hard{group}.{k}"))


C5 = Rule(
    {f"{t}: late f < {START / 4:.3f}": of(f"{x}.f") < START / 4 for x, t in SETTINGS.items()}
    | {
        f"{text}: feasible on 9 of 10 seeds": value(f"{run}.infeasible") <= 0.1
        for run, text in SETTINGS.items()
    },
    over(
        SETTINGS,
        f"$: f {told('$.f')}, g {told('$.g')}, {told_value('$.infeasible', '.0%')} of seeds "
        "infeasible",
    ),
)
C6 = Rule(
    {f"{m}: f falls from E = 1 to 10": falls(*along(m, STEPS[:4], "f")) for m in MODES}
    | {f"{m}: gains diminish": gains_diminish(*along(m, STEPS, "f")) for m in MODES},
    over(MODES, f"$: f = {told_along(STEPS, 'f', '.3f')} at E = 1, 2, 5, 10, 20"),
)
C7 = Rule(
    {f"{m}: rises with E": rises(*along(m, STEPS, "oscillation")) for m in MODES},
    over(MODES, f"$: {told_along(STEPS, 'oscillation')} x 1e-3 at E = 1, 2, 5, 10, 20"),
)
C8 = Rule(
    {
        f"{m}: {text} with m": falls(*along(m, MEMBERS, measure))
        for m in MODES
        for measure, text in {
            "target": "rounds to f <= 0.1 and g <= 1.1 epsilon fall",
            "f_early": "f at round 50 falls",
            "oscillation": "oscillation falls",
        }.items()
    },
    over(
        MODES,
        f"$: {told_along(MEMBERS, 'target', '.0f')} rounds, f at 50 "
        f"{told_along(MEMBERS, 'f_early')} at m = 2, 5, 10, 15, 20",
    ),
)
C9 = Rule(
    {
        f"rho = {r}: infeasible on at least half of the seeds": bad >= 0.5
        for r, bad in ((r, value(f"penalty_rho{r}.infeasible")) for r in RHOS[:2])
    }
    | {
        "rho = 100: late f at least twice that of hard FedSGM": of("penalty_rho100.f")
        >= 2 * value("hard_tuned.f")
    },
    over(
        (*RHOS[:2], "100"),
        f"rho $: f {told('penalty_rho$.f', '.2g')}, g {told('penalty_rho$.g', '.2g')}",
    ),
)
C10 = Rule(
    {
        f"FedSGM dominates rho = {r}": (value(f"penalty_rho{r}.infeasible") >= 0.5)
        | (value(f"penalty_rho{r}.infeasible") >= value("soft_tuned.infeasible"))
        & (value(f"penalty_rho{r}.f") >= value("soft_tuned.f"))
        for r in RHOS
    },
    "; ".join(
        f"{text}: f {told(f'{x}.f', '.2g')}, infeasible {told_value(f'{x}.infeasible', '.0%')}"
        for text, x in (("soft", "soft_tuned"), *((f"rho {r}", f"penalty_rho{r}") for r in RHOS))
    ),
    "Dominated: infeasible on half of the seeds, or no better than soft FedSGM in both measures.",
)
C11 = Rule(
    {
        f"{m}: {text}": holds
        for m in MODES
        for text, holds in {
            "with feedback f within 10 % of uncompressed": value(f"{m}.f")
            <= 1.1 * value(f"{m}_K1.f"),
            "without feedback f at least 30 % worse": value(f"{m}_nofeedback.f")
            >= 1.3 * value(f"{m}.f"),
            "at least 10 % more rounds to the target": value(f"{m}.target")
            >= 1.1 * value(f"{m}_K1.target"),
        }.items()
    },
    over(
        MODES,
        f"$: f {told_value('$_K1.f', '.3f')} uncompressed, {told_value('$.f', '.3f')} at "
        f"K/d = 0.1, {told_value('$_nofeedback.f', '.3f')} without feedback; target after "
        f"{told_value('$_K1.target', '.0f')} and {told_value('$.target', '.0f')} rounds",
    ),
)
C12 = Rule(
    {f"{m}: rises as K/d falls": rises(*along(m, FRACTIONS, "oscillation")) for m in MODES}
    | {
        "soft below hard at every K/d": all_of(
            *(value(f"soft{k}.oscillation") < value(f"hard{k}.oscillation") for k in FRACTIONS)
        )
    },
    over(
        MODES, f"$: {told_along(FRACTIONS, 'oscillation')} x 1e-3 at K/d = 1, 0.5, 0.25, 0.1, 0.04"
    ),
)
C13 = Rule(
    {f"{text}: g lower": of(f"soft{g}_beta20.g_more") < 0 for g, text in GROUPS.items()}
    | {f"{text}: f higher": of(f"soft{g}_beta20.f_more") > 0 for g, text in GROUPS.items()},
    "; ".join(
        f"{text}: f {told(f'soft{g}_beta20.f_more', '+.2g')}, "
        f"g {told(f'soft{g}_beta20.g_more', '+.2g')}"
        for g, text in GROUPS.items()
    ),
)
MORE = {f"soft{g}_beta20.oscillation_more": text for g, text in GROUPS.items()}
C14 = Rule(
    {f"{text}: oscillates more": of(key) > 0 for key, text in MORE.items()},
    "; ".join(f"{text}: {told(key, '+.2g')}" for key, text in MORE.items()),
)
LATE = {(g, k): f"{text}: {k}" for g, text in GROUPS.items() for k in "fg"}
C15 = Rule(
    {
        f"{text} within 5 % of hard": from_hard(g, "_beta4000", k) <= 0.05 * value(f"hard{g}.{k}")
        for (g, k), text in LATE.items()
    }
    | {
        f"{text} nearer than at 40": from_hard(g, "_beta4000", k) < from_hard(g, "", k)
        for (g, k), text in LATE.items()
    },
    "; ".join(
        f"{text} {told_value(f'soft{g}.{k}', '.3f')}, "
        f"{told_value(f'soft{g}_beta4000.{k}', '.3f')}, hard {told_value(f'hard{g}.{k}', '.3f')}"
        for (g, k), text in LATE.items()
    ),
)
C23 = Rule(
    {f"{text}: largest gap <= 0.001": most(f"limit{g}.gap") <= 1e-3 for g, text in GROUPS.items()},
    lambda n: "; ".join(
        f"{text}: {max(n[f'limit{g}.gap'].per_seed):.1e}" for g, text in GROUPS.items()
    ),
)
C24 = Rule(
    {
        "mean gradients nearly (anti-)parallel: |cos| >= 0.7": smallest_size("skewness.cosine")
        >= 0.7,
        "local at least twice the global skewness": least("skewness.local_to_global") >= 2,
        "the bound holds on every seed": least("skewness.bound_to_difference") >= 1,
    },
    f"local/global {told('skewness.local_to_global')}, "
    f"bound/difference {told('skewness.bound_to_difference')}, "
    f"cosine {told('skewness.cosine', '.2f')}",
)
P3 = Rule(
    {"right for 90 %": value("penalty.predicted_clear") >= 0.9},
    f"right for {told('penalty.predicted', '.2f')}, a factor 2 away "
    f"{told('penalty.predicted_clear', '.2f')}; multiplier {told('multiplier')}",
)
