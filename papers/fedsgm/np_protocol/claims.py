"""What the full paper says of Neyman-Pearson classification, judged at the steps of its protocol.

The rules were fixed, and committed, before any of the splits that judge them was drawn. R5 to R27
are the sentences of C5 to C27, which were judged at step size 0.3 on splits that were known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import pairwise

from papers.fedsgm.np_protocol.quantities import LEVEL_SLACK, PARTS, SLACK, START
from papers.kit.claims import Claim, Reading
from papers.kit.health import Needs
from papers.kit.rules import Condition, Control, Rule, alike, of, stat, stat_value, value

EPSILON = 0.05
MODES = {"hard": "hard switching", "soft": "soft switching"}
GROUPS = {"": "10 of 20 clients", "_all": "all clients"}
SETTINGS = {f"{m}{g}": f"{m}, {text}" for g, text in GROUPS.items() for m in MODES}
CURVES = {"f": "objective", "g": "constraint"}
RHOS = ("0.001", "0.5", "2", "20", "100")
BETAS = ("_beta20", "", "_beta80", "_beta120", "_beta400", "_beta4000")
STEPS = {"_E1": 1, "_E2": 2, "": 5, "_E10": 10, "_E20": 20}
MEMBERS = {"_m2": 2, "_m5": 5, "": 10, "_m15": 15, "_all": 20}
FROZEN = (
    "Rule, margins, control and step sizes were committed before the 100 splits were drawn. FedSGM "
    "has step 1, which tuning on ten other splits picks."
)
VARIES = {
    "scatter": "the standard deviation of the late constraint",
    "oscillation": "the mean change of the constraint from round to round",
}

Cells = dict[str, Condition]


def null(runs: Iterable[str]) -> Control:
    """No effect: hard switching on disjoint sets of splits, in place of runs that differ."""
    names = [*runs]
    places = {name: f"null{k % PARTS}" for k, name in enumerate(names)}
    return Control("hard switching on disjoint sets of splits instead of each run", places)


def along(ends: Mapping[str, int], measure: str, runs: Mapping[str, str], up: bool) -> Cells:
    """From each value of a sweep to the next a measure rises, or falls, for each of some runs."""
    found: Cells = {}
    for run, text in runs.items():
        for a, b in pairwise(ends):
            first, second = of(f"{run}{a}.{measure}"), of(f"{run}{b}.{measure}")
            words = f"{text}, {ends[a]} to {ends[b]}"
            found[words] = second > first if up else second < first
    return found


def listed(runs: Mapping[str, str], ends: Iterable[str], measure: str, spec: str = ".3g") -> str:
    """The values of a measure along a sweep, for each of some runs."""
    rows = []
    for run, text in runs.items():
        values = ", ".join(stat_value(f"{run}{end}.{measure}", spec) for end in ends)
        rows.append(f"{text}: {values}")
    return "; ".join(rows)


def runs(starts: Iterable[str], ends: Iterable[str]) -> tuple[str, ...]:
    """Every start with every end."""
    return tuple(f"{a}{b}" for a in starts for b in ends)


R5 = Rule(
    {
        f"the late objective falls below ln2/4 (= {START / 4:.3f})": {
            text: of(f"{m}.f") < START / 4 for m, text in MODES.items()
        },
        "the mean late constraint over the splits is at most 0.0525": {
            text: of(f"{m}.g") <= 1.05 * EPSILON for m, text in MODES.items()
        },
        "at least 95 % of the means over three splits have a late constraint of at most 0.0525": {
            text: value(f"{m}.of_three") >= 0.95 for m, text in MODES.items()
        },
    },
    "late objective, late constraint, share of infeasible splits, share of feasible means over "
    "three splits; "
    + "; ".join(
        f"{text}: {stat(f'{m}.f')}, {stat(f'{m}.g')}, {stat(f'{m}.infeasible', '.0%')}, "
        f"{stat_value(f'{m}.of_three', '.0%')}"
        for m, text in MODES.items()
    ),
    f"The paper plots means over three seeds, with 10 of 20 clients a round. {FROZEN}",
    control=Control("the penalty 0.5 instead of each mode", dict.fromkeys(MODES, "penalty_rho0.5")),
)


def more_steps(measure: str, words: str) -> Rule:
    """With more local steps a measure of progress is lower, and the gain diminishes."""
    first = {end: e for end, e in STEPS.items() if e <= 10}
    return Rule(
        {
            f"{words} falls as the local steps grow from 1 to 2, 5 and 10": along(
                first, measure, SETTINGS, up=False
            ),
            f"{words} does not rise from 10 to 20 local steps": {
                text: of(f"{run}_E20.{measure}") <= of(f"{run}_E10.{measure}")
                for run, text in SETTINGS.items()
            },
            "20 instead of 10 local steps lower it less than 2 instead of 1": {
                text: of(f"{run}_E10.{measure}") - of(f"{run}_E20.{measure}")
                < of(f"{run}_E1.{measure}") - of(f"{run}_E2.{measure}")
                for run, text in SETTINGS.items()
            },
        },
        f"{words} at 1, 2, 5, 10, 20 local steps; {listed(SETTINGS, STEPS, measure)}",
        FROZEN,
        control=null(runs(SETTINGS, STEPS)),
    )


def unsteady(measure: str) -> Rule:
    """The constraint is less steady with more local steps."""
    return Rule(
        {
            f"{VARIES[measure]} grows from 1 to 2, 5, 10 and 20 local steps": along(
                STEPS, measure, SETTINGS, up=True
            )
        },
        f"{VARIES[measure]}, times 1000, at 1, 2, 5, 10, 20 local steps; "
        f"{listed(SETTINGS, STEPS, measure, '.2g')}",
        FROZEN,
        control=null(runs(SETTINGS, STEPS)),
    )


R8 = Rule(
    {
        "the mean of f + 4 max(0, g - epsilon) over all rounds falls from 2 to 5, 10, 15 and 20 "
        "clients": along(MEMBERS, "merit", MODES, up=False),
        f"{VARIES['oscillation']} falls from 2 to 5, 10, 15 and 20 clients": along(
            MEMBERS, "oscillation", MODES, up=False
        ),
    },
    "mean of f + 4 max(0, g - epsilon) with 2, 5, 10, 15, 20 clients: "
    f"{listed(MODES, MEMBERS, 'merit')}. Change of the constraint, times 1000: "
    f"{listed(MODES, MEMBERS, 'oscillation', '.2g')}",
    "With few clients the objective alone is low because the constraint is violated. The factor 4 "
    f"exceeds every multiplier. {FROZEN}",
    control=null(runs(MODES, MEMBERS)),
)
R9 = Rule(
    {
        f"the late constraint exceeds {1.05 * EPSILON:g}, 5 % above its level": {
            f"rho = {r}": of(f"penalty_rho{r}.g") > 1.05 * EPSILON for r in RHOS[:2]
        },
        "with rho = 100 the late objective is higher than that of hard FedSGM": of(
            "penalty_rho100.f"
        )
        > of("hard.f"),
    },
    "; ".join(
        f"rho = {r}: late objective {stat(f'penalty_rho{r}.f', '.2g')}, late constraint "
        f"{stat(f'penalty_rho{r}.g', '.2g')}"
        for r in (*RHOS[:2], "100")
    )
    + f"; hard FedSGM: late objective {stat('hard.f', '.2g')}",
    f"The penalty's messages are compressed like those of FedSGM. {FROZEN}",
    control=Control(
        "rho = 20 instead of each",
        {f"penalty_rho{r}": "penalty_rho20" for r in (*RHOS[:2], "100")},
    ),
)


def hard_to_find(key: str, slack: str) -> Rule:
    """Few penalties are right, and none is right on almost all splits."""
    return Rule(
        {
            "fewer than half of the five penalties are right on a split, on average": of(
                f"penalty.{key}"
            )
            < 0.5,
            "a penalty is right on fewer than nine of ten splits": {
                f"rho = {r}": of(f"penalty_rho{r}.{key}") < 0.9 for r in RHOS
            },
        },
        f"on average {stat(f'penalty.{key}', '.2f')} of the penalties are right on a split (of the "
        f"sharpnesses {stat(f'beta.{key}', '.2f')}); splits on which a penalty is right: "
        + ", ".join(f"rho = {r} {stat(f'penalty_rho{r}.{key}', '.0%')}" for r in RHOS)
        + "; a sharpness: "
        + ", ".join(
            f"beta = {end.removeprefix('_beta') or 40} {stat_value(f'soft{end}.{key}', '.0%')}"
            for end in BETAS
        ),
        f"Right is feasible with a late objective of at most {slack}. The penalty's messages are "
        f"compressed like those of FedSGM; its step sizes are tuned on ten other splits. {FROZEN}",
        control=Control(
            "sharpnesses instead of penalties",
            {f"penalty.{key}": f"beta.{key}"}
            | {f"penalty_rho{r}": f"soft{end}" for r, end in zip(RHOS, BETAS, strict=False)},
        ),
    )


R11 = Rule(
    {
        "the late objective is lower with error feedback than without": {
            text: of(f"{m}.f") < of(f"{m}_nofeedback.f") for m, text in MODES.items()
        },
        "the mean of f + max(0, g - epsilon) over the first 50 rounds is higher than without "
        "compression": {text: of(f"{m}.early") > of(f"{m}_K1.early") for m, text in MODES.items()},
    },
    "late objective uncompressed / at K/d = 0.1 / at K/d = 0.1 without feedback: "
    + "; ".join(
        f"{text} {stat_value(f'{m}_K1.f', '.3f')} / {stat_value(f'{m}.f', '.3f')} / "
        f"{stat_value(f'{m}_nofeedback.f', '.3f')}"
        for m, text in MODES.items()
    )
    + ". Mean of f + max(0, g - epsilon) over the first 50 rounds, uncompressed and at K/d = 0.1: "
    + "; ".join(
        f"{text} {stat(f'{m}_K1.early')} and {stat(f'{m}.early')}" for m, text in MODES.items()
    ),
    FROZEN,
    control=null(runs(MODES, ("", "_nofeedback", "_K1"))),
)


def unstable(measure: str) -> Rule:
    """Compression makes the constraint unstable, soft switching less so."""
    return Rule(
        {
            f"{VARIES[measure]} is larger at K/d = 0.1 than uncompressed": {
                text: of(f"{run}.{measure}") > of(f"{run}_K1.{measure}")
                for run, text in SETTINGS.items()
            },
            "it is smaller under soft than under hard switching at K/d = 0.1": {
                text: of(f"soft{g}.{measure}") < of(f"hard{g}.{measure}")
                for g, text in GROUPS.items()
            },
        },
        f"{VARIES[measure]}, times 1000, at K/d = 1, 0.5, 0.25, 0.1, 0.04; "
        + listed(SETTINGS, ("_K1", "_K0.5", "_K0.25", "", "_K0.04"), measure, ".2g"),
        FROZEN,
        control=null(runs(SETTINGS, ("", "_K1"))),
    )


R13 = Rule(
    {
        "the late constraint is lower with beta = 20 than with beta = 40": {
            text: of(f"soft{g}_beta20.g") < of(f"soft{g}.g") for g, text in GROUPS.items()
        },
        "the late objective is higher with beta = 20 than with beta = 40": {
            text: of(f"soft{g}_beta20.f") > of(f"soft{g}.f") for g, text in GROUPS.items()
        },
    },
    "late objective and constraint at beta = 20, then at beta = 40; "
    + "; ".join(
        f"{text}: {stat(f'soft{g}_beta20.f')}, {stat(f'soft{g}_beta20.g')}, {stat(f'soft{g}.f')}, "
        f"{stat(f'soft{g}.g')}"
        for g, text in GROUPS.items()
    ),
    FROZEN,
    control=null(runs(("soft", "soft_all"), ("", "_beta20"))),
)
LATE = {(g, k): f"{words}, {text}" for g, text in GROUPS.items() for k, words in CURVES.items()}
R15 = Rule(
    {
        "with beta = 4000 the late value is at most a quarter as far from hard switching as with "
        "beta = 20": {
            text: alike(
                of(f"soft{g}_beta4000.{k}"),
                of(f"hard{g}.{k}"),
                of(f"soft{g}_beta20.{k}") - of(f"hard{g}.{k}"),
            )
            for (g, k), text in LATE.items()
        }
    },
    "late values at beta = 20, at beta = 4000 and under hard switching; "
    + "; ".join(
        f"{text}: {stat_value(f'soft{g}_beta20.{k}', '.4f')}, "
        f"{stat_value(f'soft{g}_beta4000.{k}', '.4f')}, {stat_value(f'hard{g}.{k}', '.4f')}"
        for (g, k), text in LATE.items()
    ),
    FROZEN,
    control=Control("beta = 40 instead of 4000", {f"soft{g}_beta4000": f"soft{g}" for g in GROUPS}),
)


def as_central(mode: str, k: str) -> Condition:
    """Whether all clients end where centralized training does, within a share of its fall."""
    apart = of(f"{mode}_all.{k}") - of(f"{mode}_central.{k}")
    return abs(apart) <= SLACK * of(f"{mode}_central.{k}_fall")


R26 = Rule(
    {
        f"the late {words} with all clients differs from the centralized one by at most "
        f"{SLACK:.0%} of the latter's fall from the start": {
            text: as_central(m, k) for m, text in MODES.items()
        }
        for k, words in CURVES.items()
    },
    "; ".join(
        f"{text}: late objective with all clients {stat(f'{m}_all.f')}, centralized "
        f"{stat(f'{m}_central.f')}; late constraint with all clients {stat(f'{m}_all.g')}, "
        f"centralized {stat(f'{m}_central.g')}"
        for m, text in MODES.items()
    ),
    FROZEN,
    control=Control(
        "no error feedback instead of all clients", {f"{m}_all": f"{m}_nofeedback" for m in MODES}
    ),
)
R27 = Rule(
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
    "Both grids span a factor of 200, beta from 20 to 4000 and rho from 0.5 to 100. Each penalty "
    f"has its own tuned step, every sharpness has step 1. {FROZEN}",
    control=Control(
        "the grid of rho on two disjoint halves of the splits instead of both grids",
        {
            f"spread.{knob}_{k}": f"spread_half{i}.rho_{k}"
            for i, knob in enumerate(("beta", "rho"))
            for k in "fg"
        },
    ),
)

PENALTIES = tuple(f"penalty_rho{r}" for r in RHOS)
SHARPNESSES = tuple(f"soft{end}" for end in BETAS)
TUNED = Needs(parameters=("lr", "penalty_lrs", "rhos", "betas"))
COMMIT = "3b6e91f0"  # that fixed the rules
full = partial(Claim, paper="F", needs=TUNED, rule_fixed=COMMIT)

CLAIMS = (
    full(
        id="fedsgm/R5",
        place="Figure 1",
        wording="Hard and soft switching both converge and satisfy the constraint.",
        rule=R5,
        runs=(*MODES, "penalty_rho0.5"),
    ),
    full(
        id="fedsgm/R6",
        place="Figure 2, row 1",
        wording="With more local steps the methods converge faster, with diminishing gain.",
        rule=more_steps("merit", "the mean of f + 4 max(0, g - epsilon) over all rounds"),
        runs=runs(SETTINGS, STEPS),
        reading="as the mean over all rounds",
        readings=(
            Reading(
                "as the late objective",
                more_steps("f", "the late objective"),
                runs(SETTINGS, STEPS),
                TUNED,
                COMMIT,
            ),
        ),
    ),
    full(
        id="fedsgm/R7",
        place="Figure 2, row 1",
        wording="The oscillation of the constraint around its level grows with the local steps.",
        rule=unsteady("oscillation"),
        runs=runs(SETTINGS, STEPS),
        reading="as the change from round to round",
        readings=(
            Reading(
                "as the standard deviation of late g (scatter)",
                unsteady("scatter"),
                runs(SETTINGS, STEPS),
                TUNED,
                COMMIT,
            ),
        ),
    ),
    full(
        id="fedsgm/R8",
        place="Figure 2, row 2",
        wording="With more clients per round, both switching modes converge faster and more "
        "steadily.",
        rule=R8,
        runs=runs(MODES, MEMBERS),
    ),
    full(
        id="fedsgm/R9",
        place="Figure 6",
        wording="Penalty-FedAvg is infeasible with rho = 0.001 or 0.5, and slow or poor with rho = "
        "100.",
        rule=R9,
        runs=(*PENALTIES, "hard"),
    ),
    full(
        id="fedsgm/R10",
        place="Figure 6",
        wording="The right penalty rho of Penalty-FedAvg is hard to find.",
        rule=hard_to_find(
            "right", f"{SLACK:.0%} of the fall from the start above that of soft FedSGM"
        ),
        runs=(*PENALTIES, *SHARPNESSES),
        reading="as good but for a share of the fall",
        readings=(
            Reading(
                "as good but for a factor on the level",
                hard_to_find("right_level", f"{LEVEL_SLACK:g} times that of soft FedSGM"),
                (*PENALTIES, *SHARPNESSES),
                TUNED,
                COMMIT,
            ),
        ),
    ),
    full(
        id="fedsgm/R11",
        place="Figure 2, row 3",
        wording="With Top-K at K/d = 0.1 the method converges thanks to error feedback, but more "
        "slowly.",
        rule=R11,
        runs=runs(MODES, ("", "_K1", "_nofeedback")),
    ),
    full(
        id="fedsgm/R12",
        place="Figure 2, row 3",
        wording="Compression makes the constraint unstable; soft switching mitigates it.",
        rule=unstable("scatter"),
        runs=runs(SETTINGS, ("", "_K1")),
        reading="unstable as the standard deviation of late g (scatter)",
        readings=(
            Reading(
                "unstable from round to round",
                unstable("oscillation"),
                runs(SETTINGS, ("", "_K1")),
                TUNED,
                COMMIT,
            ),
        ),
    ),
    full(
        id="fedsgm/R13",
        place="Figure 5",
        wording="Soft switching is more conservative with beta = 20 than with beta = 40.",
        rule=R13,
        runs=runs(("soft", "soft_all"), ("", "_beta20")),
    ),
    full(
        id="fedsgm/R15",
        place="Figure 5",
        wording="Soft switching with a large beta approaches hard switching.",
        rule=R15,
        runs=(*SETTINGS, *runs(("soft", "soft_all"), ("_beta20", "_beta4000"))),
    ),
    full(
        id="fedsgm/R26",
        place="Figure 2, row 2",
        wording="With all clients per round the method matches centralized training.",
        rule=R26,
        runs=runs(MODES, ("_all", "_central")),
    ),
    full(
        id="fedsgm/R27",
        place="Figures 5 and 6",
        wording="The sharpness beta is far easier to tune than the penalty rho.",
        rule=R27,
        runs=(*SHARPNESSES, *PENALTIES[1:]),
    ),
)
