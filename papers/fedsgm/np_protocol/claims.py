"""What the full paper says of Neyman-Pearson classification, judged at the steps of its protocol.

The rules were fixed, and committed, before any of the splits that judge them was drawn. R5 to R27
are the sentences of C5 to C27, which were judged at step size 0.3 on splits that were known.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from papers.fedsgm.common import Run, instead
from papers.fedsgm.curves import START
from papers.fedsgm.np_protocol.quantities import LEVEL_SLACK, SLACK
from papers.fedsgm.np_protocol.runs import PENALTY
from papers.fedsgm.np_unified import claims as unified
from papers.fedsgm.np_unified.claims import (
    ALL,
    AT_EACH_E,
    AT_EACH_SIZE,
    BETAS,
    BY_MODE,
    FEW,
    GROUPS,
    OF_COMPRESSION,
    RHOS,
    SETTINGS,
    STEPS,
    WITH_AND_WITHOUT,
    Runs,
    each_of,
    null,
    steadily,
)
from papers.fedsgm.np_unified.runs import MEMBERS, MODES
from papers.fedsgm.np_unified.runs import PAPER as AT_PAPER
from papers.kit.claims import Claim, Reading
from papers.kit.health import Needs
from papers.kit.quantities import Defaults, name_of, names_of
from papers.kit.rules import Control, Rule, Term, of, value

EPSILON = 0.05
#: The labels of runs at the paper's setting.
PAPER: Defaults = {**AT_PAPER, "lr": 1.0, "splits": "judging"}
FROZEN = (
    "Rule, margins, control and step sizes were committed before the 100 splits were drawn. FedSGM "
    "has step 1, which tuning on ten other splits picks."
)
VARIES = {
    "scatter": "the standard deviation of the late constraint",
    "oscillation": "the mean change of the constraint from round to round",
}

BY_RHO: Runs = {f"rho = {rho:g}": {**PENALTY, "rho": rho} for rho in RHOS}
names = partial(names_of, PAPER)


def named(runs: Iterable[Run]) -> tuple[str, ...]:
    """The names of runs."""
    return tuple(name_of(run, PAPER) for run in runs)


R5 = Rule(
    {
        f"the late objective falls below ln2/4 (= {START / 4:.3f})": {
            text: of("f", **run) < START / 4 for text, run in BY_MODE.items()
        },
        "the mean late constraint over the splits is at most 0.0525": {
            text: of("g", **run) <= 1.05 * EPSILON for text, run in BY_MODE.items()
        },
        "at least 95 % of the means over three splits have a late constraint of at most 0.0525": {
            text: value("of_three", **run) >= 0.95 for text, run in BY_MODE.items()
        },
    },
    note=f"The paper plots means over three seeds, with 10 of 20 clients a round. {FROZEN}",
    control=Control(
        "the penalty 0.5 instead of each mode",
        instead(
            BY_MODE.values(),
            BY_RHO["rho = 0.5"],
            "f",
            "g",
            "of_three",
        ),
    ),
)


def gain(measure: str, run: Run, start: int, end: int) -> Term:
    """By how much more local steps lower a measure."""
    return of(measure, **run, local_steps=start) - of(measure, **run, local_steps=end)


def more_steps(measure: str, words: str) -> Rule:
    """With more local steps a measure of progress is lower, and the gain diminishes."""
    return Rule(
        {
            f"{words} falls as the local steps grow from 1 to 2, 5 and 10": steadily(
                measure,
                "local_steps",
                STEPS[:-1],
                SETTINGS,
                up=False,
            ),
            f"{words} does not rise from 10 to 20 local steps": {
                text: of(measure, **run, local_steps=20) <= of(measure, **run, local_steps=10)
                for text, run in SETTINGS.items()
            },
            "20 instead of 10 local steps lower it less than 2 instead of 1": {
                text: gain(measure, run, 10, 20) < gain(measure, run, 1, 2)
                for text, run in SETTINGS.items()
            },
        },
        note=FROZEN,
        control=null(AT_EACH_E, measure),
    )


def unsteady(measure: str) -> Rule:
    """The constraint is less steady with more local steps."""
    return Rule(
        {
            f"{VARIES[measure]} grows from 1 to 2, 5, 10 and 20 local steps": steadily(
                measure,
                "local_steps",
                STEPS,
                SETTINGS,
                up=True,
            )
        },
        note=FROZEN,
        control=null(AT_EACH_E, measure),
    )


R8 = Rule(
    {
        "the mean of f + 4 max(0, g - epsilon) over all rounds falls from 2 to 5, 10, 15 and 20 "
        "clients": steadily("merit", "participants", MEMBERS, BY_MODE, up=False),
        f"{VARIES['oscillation']} falls from 2 to 5, 10, 15 and 20 clients": steadily(
            "oscillation",
            "participants",
            MEMBERS,
            BY_MODE,
            up=False,
        ),
    },
    note="With few clients the objective alone is low because the constraint is violated. The "
    f"factor 4 exceeds every multiplier. {FROZEN}",
    control=null(AT_EACH_SIZE, "merit", "oscillation"),
)
R9 = unified.right_penalty(
    PENALTY,
    {},
    "The penalty's messages are compressed like those of FedSGM. With rho = 20 the late "
    f"objective is higher than that of hard FedSGM too, as the control shows. {FROZEN}",
)


def hard_to_find(measure: str, slack: str) -> Rule:
    """Few penalties are right, and none is right on almost all splits."""
    sharpnesses = instead([{"knob": "rho"}], {"knob": "beta"}, measure)
    for run, beta in zip(BY_RHO.values(), BETAS, strict=False):
        sharpnesses |= instead([run], {"switch": "soft", "beta": beta}, measure)
    return Rule(
        {
            "fewer than half of the five penalties are right on a split, on average": of(
                measure, knob="rho"
            )
            < 0.5,
            "a penalty is right on fewer than nine of ten splits": {
                text: of(measure, **run) < 0.9 for text, run in BY_RHO.items()
            },
        },
        note=f"Right is feasible with a late objective of at most {slack}. The penalty's messages "
        "are compressed like those of FedSGM; its step sizes are tuned on ten other splits. "
        f"{FROZEN}",
        control=Control("sharpnesses instead of penalties", sharpnesses),
    )


R11 = replace(unified.C11, note=FROZEN)


def unstable(measure: str) -> Rule:
    """Compression makes the constraint unstable, soft switching less so."""
    return unified.unstable(
        measure,
        f"{VARIES[measure]} is larger at K/d = 0.1",
        "it is smaller under soft than under hard switching at K/d = 0.1",
        FROZEN,
    )


SOFT: Runs = {
    text: {"switch": "soft", "participants": participants} for participants, text in GROUPS.items()
}
GENTLE: Run = {"beta": 20.0}
WITH_BETAS = [{**run, **change} for run in SOFT.values() for change in ({}, GENTLE)]
R13 = Rule(
    {
        "the late constraint is lower with beta = 20 than with beta = 40": {
            text: of("g", **run, **GENTLE) < of("g", **run) for text, run in SOFT.items()
        },
        "the late objective is higher with beta = 20 than with beta = 40": {
            text: of("f", **run, **GENTLE) > of("f", **run) for text, run in SOFT.items()
        },
    },
    note=FROZEN,
    control=null(WITH_BETAS, "f", "g"),
)


R15 = replace(unified.C15, note=FROZEN)
R26 = Rule(
    unified.as_central(),
    note=FROZEN,
    control=Control(
        "no error feedback instead of all clients", labels={"participants": FEW, "feedback": False}
    ),
)
R27 = replace(
    unified.C27,
    note="Both grids span a factor of 200, beta from 20 to 4000 and rho from 0.5 to 100. Each "
    f"penalty has its own tuned step, every sharpness has step 1. {FROZEN}",
)

PENALTIES = names(**PENALTY, rho=RHOS)
SHARPNESSES = names(switch="soft", beta=BETAS)
TUNED = Needs(parameters=("lr", "penalty_lrs", "rhos", "betas"))
COMMIT = "3b6e91f0"  # that fixed the rules
EARLIER = {claim.id: claim for claim in unified.CLAIMS}


def again(number: int, runs: tuple[str, ...], rules: Rule | dict[str, Rule]) -> Claim:
    """A claim of study `np_unified`, judged by another rule; the first of several counts."""
    claim = EARLIER[f"fedsgm/C{number}"]
    if isinstance(rules, Rule):
        rules = {"": rules}
    readings = [Reading(name, rule, runs, TUNED, COMMIT) for name, rule in rules.items()]
    return Claim(
        id=f"fedsgm/R{number}",
        paper=claim.paper,
        place=claim.place,
        wording=claim.wording,
        rule=readings[0].rule,
        runs=runs,
        needs=TUNED,
        reading=readings[0].name,
        readings=tuple(readings[1:]),
        rule_fixed=COMMIT,
    )


CLAIMS = (
    again(5, (*MODES, *names(**PENALTY, rho=0.5)), R5),
    again(
        6,
        named(AT_EACH_E),
        {
            "as the mean over all rounds": more_steps(
                "merit", "the mean of f + 4 max(0, g - epsilon) over all rounds"
            ),
            "as the late objective": more_steps("f", "the late objective"),
        },
    ),
    again(
        7,
        named(AT_EACH_E),
        {
            "as the change from round to round": unsteady("oscillation"),
            "as the standard deviation of late g (scatter)": unsteady("scatter"),
        },
    ),
    again(8, named(AT_EACH_SIZE), R8),
    again(9, (*PENALTIES, "hard"), R9),
    again(
        10,
        (*PENALTIES, *SHARPNESSES),
        {
            "as good but for a share of the fall": hard_to_find(
                "right", f"{SLACK:.0%} of the fall from the start above that of soft FedSGM"
            ),
            "as good but for a factor on the level": hard_to_find(
                "right_level", f"{LEVEL_SLACK:g} times that of soft FedSGM"
            ),
        },
    ),
    again(11, named(OF_COMPRESSION), R11),
    again(
        12,
        named(WITH_AND_WITHOUT),
        {
            "unstable as the standard deviation of late g (scatter)": unstable("scatter"),
            "unstable from round to round": unstable("oscillation"),
        },
    ),
    again(13, named(WITH_BETAS), R13),
    again(15, named([*SETTINGS.values(), *each_of(SOFT.values(), "beta", (20.0, 4000.0))]), R15),
    again(26, (*names(switch=MODES, participants=ALL), *names(method="SGM", switch=MODES)), R26),
    again(27, (*SHARPNESSES, *PENALTIES[1:]), R27),
)
