"""The rules that judge the full paper's claims about Neyman-Pearson classification."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import log

from papers.kit import rules as kit
from papers.kit.rules import (
    Condition,
    Control,
    Rule,
    falls,
    least,
    most,
    of,
    rises,
    stat,
    stat_value,
    value,
)

EPSILON = 0.05
START = log(2)  # f and g at w = 0
MODES = ("hard", "soft")
NAMED = {m: f"{m} switching" for m in MODES}
CURVES = {"f": "objective", "g": "constraint"}
GROUPS = {"": "10 of 20 clients", "_all": "all clients"}
SETTINGS = {f"{m}{g}": f"{m}, {text}" for g, text in GROUPS.items() for m in MODES}
RHOS = ("0.001", "0.5", "2", "20", "100")
STEPS = ("_E1", "_E2", "", "_E10", "_E20")
FRACTIONS = ("_K1", "_K0.5", "_K0.25", "", "_K0.04")
MEMBERS = ("_m2", "_m5", "", "_m15", "_all")
#: What the measures of instability are, and what each says of "more" and "less".
WORDS = {
    "oscillation": "mean change of the constraint from round to round",
    "scatter": "standard deviation of the late constraint",
}
VARIES = {
    "oscillation": "the constraint changes {} from round to round",
    "scatter": "the late constraint scatters {}",
}


def over(names: Iterable[str], text: str) -> str:
    """A text for every name, which stands in place of `$`; its label stands in place of `@`."""
    label = names if isinstance(names, Mapping) else {}
    return "; ".join(text.replace("@", label.get(name, name)).replace("$", name) for name in names)


def along(start: str, ends: Iterable[str], measure: str) -> tuple[str, ...]:
    """The numbers of a measure along a sweep."""
    return tuple(f"{start}{end}.{measure}" for end in ends)


def sweep_values(ends: Iterable[str], measure: str, spec: str = ".2g") -> str:
    """The values of a sweep from `$`, in order."""
    return ", ".join(stat_value(key, spec) for key in along("$", ends, measure))


def alike(a: str, b: str, margin: float) -> Condition:
    """Whether the mean of `a` is that of `b` but for a share of it: equivalence, seed by seed."""
    inside = (of(a) <= (1 + margin) * of(b)) & (of(a) >= (1 - margin) * of(b))
    return replace(inside, words=f"`{a}` within {100 * margin:.3g} % of `{b}`", keys=(a, b))


def gains_diminish(run: str) -> Condition:
    """Whether the last doubling of the local steps gains less in late f than the first."""
    one, two, ten, twenty = (of(f"{run}_E{e}.f") for e in (1, 2, 10, 20))
    return (ten - twenty) < (one - two)


def same(ends: Iterable[str], runs: Iterable[str], one: str, what: str) -> Control:
    """The control of a sweep in which nothing changes: one run under every label."""
    return Control(
        f"{what} instead of every run",
        {f"{r}{end}": f"{r}{one}" for r in runs for end in ends},
    )


SLOW = Control("step size 0.0001 instead of 0.3", {m: f"{m}_lr0.0001" for m in MODES})
C5 = Rule(
    {
        f"the late objective falls below ln2/4 (= {START / 4:.3f})": {
            text: of(f"{m}.f") < START / 4 for m, text in NAMED.items()
        },
        "at least 95 % of the means over three seeds have a late constraint of at most 0.0525": {
            text: value(f"{m}.of_three") >= 0.95 for m, text in NAMED.items()
        },
    },
    "late objective, late constraint, share of infeasible seeds, share of feasible means over "
    "three seeds; "
    + over(
        SETTINGS,
        f"@: {stat('$.f')}, {stat('$.g')}, {stat_value('$.infeasible', '.0%')}, "
        f"{stat_value('$.of_three', '.0%')}",
    ),
    "The paper plots means over three seeds. The rule looks at all means over three of our ten "
    "seeds, with 10 of 20 clients per round.",
    control=SLOW,
)
C6 = Rule(
    {
        "the late objective falls as the local steps E grow from 1 to 2, 5 and 10": {
            text: falls(*along(run, STEPS[:4], "f")) for run, text in SETTINGS.items()
        },
        "E = 20 instead of 10 lowers the late objective less than E = 2 instead of 1": {
            text: gains_diminish(run) for run, text in SETTINGS.items()
        },
    },
    "late objective at E = 1, 2, 5, 10, 20; "
    + over(SETTINGS, f"@: {sweep_values(STEPS, 'f', '.3f')}"),
    control=same(STEPS, SETTINGS, "_E1", "the run with one local step"),
)


def grows(measure: str) -> Rule:
    """That the oscillation of the constraint grows with the local steps, by some measure."""
    return Rule(
        {
            f"{VARIES[measure].format('more')} at each increase of E (1, 2, 5, 10, 20)": {
                text: rises(*along(run, STEPS, measure)) for run, text in SETTINGS.items()
            }
        },
        f"{WORDS[measure]}, times 1000, at E = 1, 2, 5, 10, 20; "
        + over(SETTINGS, f"@: {sweep_values(STEPS, measure)}"),
        control=same(STEPS, SETTINGS, "_E1", "the run with one local step"),
    )


C7 = grows("oscillation")
C8 = Rule(
    {
        "the mean of f + 4 max(0, g - epsilon) is lower with all 20 clients than with 2": {
            text: of(f"{m}_all.merit") < of(f"{m}_m2.merit") for m, text in NAMED.items()
        },
        "the constraint oscillates less with every increase to 5, 10, 15 and 20 clients": {
            text: falls(*along(m, MEMBERS, "oscillation")) for m, text in NAMED.items()
        },
    },
    "mean of f + 4 max(0, g - epsilon) with 2, 5, 10, 15, 20 clients: "
    + over(NAMED, f"@ {sweep_values(MEMBERS, 'merit', '.3f')}")
    + ". Excess of the constraint, times 1000: "
    + over(NAMED, f"@ {sweep_values(MEMBERS, 'excess')}")
    + ". Oscillation of the constraint, times 1000: "
    + over(NAMED, f"@ {sweep_values(MEMBERS, 'oscillation')}"),
    "The objective f alone does not measure speed: with few clients it is lower because the "
    "constraint g is violated. The factor 4 exceeds every multiplier.",
    control=same(MEMBERS, MODES, "_m2", "the run with two clients"),
)
C9 = Rule(
    {
        f"the late constraint exceeds {1.05 * EPSILON:g}, 5 % above its level": {
            f"rho = {r}": of(f"penalty_rho{r}.g") > 1.05 * EPSILON for r in RHOS[:2]
        },
        "with rho = 100 the late objective is higher than that of hard FedSGM": of(
            "penalty_rho100.f"
        )
        > of("hard_tuned.f"),
    },
    over(
        (*RHOS[:2], "100"),
        f"rho = $: late objective {stat('penalty_rho$.f', '.2g')}, late constraint "
        f"{stat('penalty_rho$.g', '.2g')}",
    )
    + f"; hard FedSGM: late objective {stat('hard_tuned.f', '.2g')}",
    control=Control(
        "rho = 20 instead of each",
        {f"penalty_rho{r}": "penalty_rho20" for r in (*RHOS[:2], "100")},
    ),
)
C10 = Rule(
    {
        "fewer than half of the five penalties are right on a split, on average": of(
            "penalty.right"
        )
        < 0.5,
        "every penalty is right on fewer than nine of ten splits": kit.all_of(
            *(value(f"penalty_rho{r}.right") < 0.9 for r in RHOS)
        ),
    },
    f"on average {stat('penalty.right', '.2f')} are right on a split; splits on which a penalty is "
    "right: " + over(RHOS, f"rho = $ {stat_value('penalty_rho$.right', '.0%')}"),
    "A penalty is right on a split if it is feasible there with a late objective of at most 1.25 "
    "times that of soft FedSGM, both at their tuned step sizes.",
    control=Control(
        "rho = 20 instead of every penalty",
        {"penalty.right": "penalty_rho20.right"}
        | {f"penalty_rho{r}": "penalty_rho20" for r in RHOS},
    ),
)
C11 = Rule(
    {
        "the late objective is lower with error feedback than without": {
            text: of(f"{m}.f") < of(f"{m}_nofeedback.f") for m, text in NAMED.items()
        },
        "the mean of f + max(0, g - epsilon) over the first 50 rounds is higher than without "
        "compression": {text: of(f"{m}.early") > of(f"{m}_K1.early") for m, text in NAMED.items()},
    },
    "late objective uncompressed / at K/d = 0.1 / at K/d = 0.1 without feedback: "
    + over(
        NAMED,
        f"@ {stat_value('$_K1.f', '.3f')} / {stat_value('$.f', '.3f')} / "
        f"{stat_value('$_nofeedback.f', '.3f')}",
    )
    + ". Mean of f + max(0, g - epsilon) over the first 50 rounds, uncompressed and at K/d = 0.1: "
    + over(NAMED, f"@ {stat('$_K1.early')} and {stat('$.early')}"),
    "Speed is compared in the first 50 of 500 rounds, in which the runs still descend.",
    control=Control(
        "the uncompressed run instead of every run",
        {f"{m}{end}": f"{m}_K1" for m in MODES for end in ("", "_nofeedback")},
    ),
)


def unstable(measure: str) -> Rule:
    """That compression makes the constraint unstable and soft switching less so."""
    return Rule(
        {
            f"{VARIES[measure].format('more')} at K/d = 0.1 than uncompressed": {
                text: of(f"{run}.{measure}") > of(f"{run}_K1.{measure}")
                for run, text in SETTINGS.items()
            },
            f"{VARIES[measure].format('less')} under soft than under hard switching": {
                text: of(f"soft{g}.{measure}") < of(f"hard{g}.{measure}")
                for g, text in GROUPS.items()
            },
        },
        f"{WORDS[measure]}, times 1000, at K/d = 1, 0.5, 0.25, 0.1, 0.04; "
        + over(SETTINGS, f"@: {sweep_values(FRACTIONS, measure)}"),
        control=same(FRACTIONS, SETTINGS, "_K1", "the uncompressed run"),
    )


C12 = unstable("oscillation")
C13 = Rule(
    {
        "the late constraint is lower with beta = 20 than with beta = 40": {
            text: of(f"soft{g}_beta20.g_more") < 0 for g, text in GROUPS.items()
        },
        "the late objective is higher with beta = 20 than with beta = 40": {
            text: of(f"soft{g}_beta20.f_more") > 0 for g, text in GROUPS.items()
        },
    },
    "late values, beta = 20 minus beta = 40; "
    + "; ".join(
        f"{text}: objective {stat(f'soft{g}_beta20.f_more', '+.2g')}, "
        f"constraint {stat(f'soft{g}_beta20.g_more', '+.2g')}"
        for g, text in GROUPS.items()
    ),
    control=Control(
        "beta = 80 instead of 20", {f"soft{g}_beta20": f"soft{g}_beta80" for g in GROUPS}
    ),
)
LATE = {(g, k): f"{words}, {text}" for g, text in GROUPS.items() for k, words in CURVES.items()}
C15 = Rule(
    {
        "with beta = 4000 the late value is at most a quarter as far from hard switching as with "
        "beta = 20": {
            text: kit.alike(
                of(f"soft{g}_beta4000.{k}"),
                of(f"hard{g}.{k}"),
                of(f"soft{g}_beta20.{k}") - of(f"hard{g}.{k}"),
            )
            for (g, k), text in LATE.items()
        }
    },
    "late values at beta = 40, at beta = 4000 and under hard switching; "
    + "; ".join(
        f"{text}: {stat_value(f'soft{g}.{k}', '.3f')}, "
        f"{stat_value(f'soft{g}_beta4000.{k}', '.3f')}, {stat_value(f'hard{g}.{k}', '.3f')}"
        for (g, k), text in LATE.items()
    ),
    control=Control("beta = 40 instead of 4000", {f"soft{g}_beta4000": f"soft{g}" for g in GROUPS}),
)
C23 = Rule(
    {
        "with beta = 1e9 no value of f or g differs by more than 0.001 from hard switching": {
            text: most(f"limit{g}.gap") <= 1e-3 for g, text in GROUPS.items()
        }
    },
    lambda n: "; ".join(
        f"largest difference, {text}: {max(n[f'limit{g}.gap'].per_seed):.1e}"
        for g, text in GROUPS.items()
    ),
    control=Control(
        "beta = 4000 instead of 1e9", {f"limit{g}.gap": f"control{g}.gap" for g in GROUPS}
    ),
)
C24 = Rule(
    {
        "the skewness of the clients' gradients exceeds that of the mean gradients on every "
        "split": least("skewness.local_to_global") > 1,
        "the difference of both skewness matrices stays within the paper's bound on every "
        "split": least("skewness.bound_to_difference") >= 1,
    },
    f"skewness of the clients divided by that of the means "
    f"{stat('skewness.local_to_global')}, bound divided by difference "
    f"{stat('skewness.bound_to_difference')}, cosine of the mean gradients "
    f"{stat('skewness.cosine', '.2f')}",
    "The note on skewness proves the claim for an instance with aligned mean gradients.",
    proviso={
        "the mean gradients of f and g are not aligned in our runs": least("skewness.cosine") > 0
    },
    control=Control(
        "a single client, with aligned gradients",
        {"skewness.local_to_global": "control.one", "skewness.cosine": "control.one"},
    ),
)
C26 = Rule(
    {
        "the late objective with all clients is within 10 % of the centralized one": {
            text: alike(f"fresh_{m}_all.f", f"fresh_{m}_central.f", 0.1)
            for m, text in NAMED.items()
        },
        "the late constraint with all clients is within 5 % of the centralized one": {
            text: alike(f"fresh_{m}_all.g", f"fresh_{m}_central.g", 0.05)
            for m, text in NAMED.items()
        },
    },
    over(
        NAMED,
        f"@: late objective with all clients {stat('fresh_$_all.f')}, centralized "
        f"{stat('fresh_$_central.f')}; late constraint with all clients "
        f"{stat('fresh_$_all.g')}, centralized {stat('fresh_$_central.g')}",
    ),
    "The margins are those of other claims, 10 % for printed values and 5 % for feasibility. 320 "
    "fresh splits, after ten earlier ones.",
    control=Control(
        "two of 20 clients instead of all", {f"fresh_{m}_all": f"{m}_m2" for m in MODES}
    ),
)
C27 = Rule(
    {
        "the late value varies less along the grid of beta than along the grid of rho": {
            words: of(f"spread.beta_{k}") < of(f"spread.rho_{k}") for k, words in CURVES.items()
        }
    },
    "; ".join(
        f"range of the late {words}: {stat(f'spread.beta_{k}')} along beta, "
        f"{stat(f'spread.rho_{k}')} along rho"
        for k, words in CURVES.items()
    ),
    "Both grids span a factor of 200 at the same step size: beta from 20 to 4000, rho from 0.5 to "
    "100.",
    control=Control(
        "beta and rho exchanged",
        {
            f"spread.{a}_{k}": f"spread.{b}_{k}"
            for a, b in (("beta", "rho"), ("rho", "beta"))
            for k in "fg"
        },
    ),
)
P3 = Rule(
    {
        "the prediction is right for at least 90 % of the penalties that are a factor 2 or more "
        "from the multiplier": value("penalty.predicted_clear") >= 0.9,
        "the prediction is right for all penalties": value("penalty.predicted") >= 1,
    },
    f"the prediction is right for {stat('penalty.predicted', '.2f')}, and for "
    f"{stat('penalty.predicted_clear', '.2f')} that are a factor 2 or more from the multiplier; "
    f"mean multiplier {stat('multiplier')}",
    control=Control(
        "the prediction that every penalty is feasible",
        {"penalty.predicted": "control.feasible", "penalty.predicted_clear": "control.feasible"},
    ),
)
