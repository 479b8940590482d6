"""Remark 1 of the full paper, and what follows for hard switching, judged by exchanged constraints.

The rules were fixed, and committed, before any of the splits that judge them was drawn.
"""

from collections.abc import Mapping
from functools import partial
from math import log10

from papers.fedsgm.common import Run, instead
from papers.fedsgm.np_pairing.runs import DEFAULTS
from papers.kit.claims import Claim
from papers.kit.quantities import Query, names_of
from papers.kit.rules import Condition, Control, Rule, most, of

SHIFTS = (0, 1, 7, 13)
BETAS = (20, 40, 400)
STEPS = (1, 5, 20)
NOTHING = 1e-5  # of a model's length: models are stored with six digits
SEEN = 1e-3

#: Settings in words -> their labels.
Settings = Mapping[str, Run]


def soft(beta: float, steps: int) -> Run:
    """The labels of soft switching with all clients."""
    return {"switch": "soft", "beta": float(beta), "local_steps": steps}


MIXED: Settings = {
    f"soft, beta = {beta}, E = {steps}": soft(beta, steps) for beta in BETAS for steps in STEPS[1:]
}
SINGLE: Settings = {f"soft, beta = {beta}, E = 1": soft(beta, 1) for beta in BETAS}
HARD: Settings = {f"hard, E = {steps}": {"switch": "hard", "local_steps": steps} for steps in STEPS}
REST: Settings = {
    "hard, E = 5, 10 of 20 clients": {"switch": "hard", "participants": 10},
    "soft, beta = 40, E = 5, 10 of 20 clients": {"switch": "soft", "participants": 10},
    "hard, E = 5, Top-K 0.1 both ways": {"switch": "hard", "fraction": 0.1},
    "soft, beta = 40, E = 5, Top-K 0.1 both ways": {"switch": "soft", "fraction": 0.1},
}
#: Where no pairing can move a model.
STILL: Settings = {**HARD, **SINGLE}
FROZEN = "Rule and control were committed before the 30 splits were drawn."
HOW = (
    "Every client keeps its objective and gets the constraint of another one. This changes K_loc "
    "and leaves f, g and K_glob as they are. The model with three such pairings is compared with "
    "that of the data's own pairing. Conditions read geometric means of distances."
)


def moves(settings: Settings) -> dict[str, Condition]:
    """The pairing moves the final model by more than a thousandth of its length, typically."""
    return {text: of("moved_log", **labels) > log10(SEEN) for text, labels in settings.items()}


def runs(settings: Settings) -> tuple[str, ...]:
    """The runs of some settings, all pairings."""
    names: list[str] = []
    for labels in settings.values():
        names += names_of(DEFAULTS, **labels, shift=SHIFTS)
    return tuple(names)


EVERY = {**HARD, **SINGLE, **MIXED, **REST}
EFFECT = Rule(
    {
        "exchanging the constraints moves the model, all clients and no compression": moves(
            {**HARD, **SINGLE, **MIXED}
        ),
        "exchanging the constraints moves the model with sampled clients or compression": moves(
            REST
        ),
    },
    note=f"{HOW} {FROZEN}",
    control=Control(
        "hard switching with all clients in place of every setting",
        instead(EVERY.values(), {"switch": "hard"}, "moved_log"),
    ),
)
REMEDIES = Rule(
    {
        "the exchange moves the model less with 5 than with 20 local steps": {
            f"soft, beta = {beta}": of("moved_log", **soft(beta, 5))
            < of("moved_log", **soft(beta, 20))
            for beta in BETAS
        },
        "the exchange moves the model less with the smaller sharpness": {
            f"beta = {smaller} against {larger}, E = {steps}": of(
                "moved_log", **soft(smaller, steps)
            )
            < of("moved_log", **soft(larger, steps))
            for smaller, larger in ((20, 40), (40, 400))
            for steps in STEPS[1:]
        },
    },
    note=f"{HOW} The rule was committed before the 30 splits were drawn. The control is younger: "
    "no run could have passed the first one.",
    control=Control(
        "six settings in which no exchange moves a model, one in place of each",
        {
            Query.of("moved_log", **moving): Query.of("moved_log", **still)
            for moving, still in zip(MIXED.values(), STILL.values(), strict=True)
        },
    ),
)
TURNING: Settings = {**HARD, **MIXED}
ROTATION = Rule(
    {
        "the model turns more with the pairing of largest |K_loc| than with that of smallest": {
            text: of("turn_more", **labels) > 0 for text, labels in TURNING.items()
        }
    },
    note=f"{HOW} {FROZEN}",
    control=Control(
        "pairings that are chosen without looking at K_loc",
        {
            Query.of("turn_more", **labels): Query.of("turn_null", **labels)
            for labels in TURNING.values()
        },
    ),
)
NO_EFFECT = Rule(
    {
        "no pairing moves the model of any split": {
            text: most("moved", **labels) <= NOTHING for text, labels in STILL.items()
        },
        "the pairing changes |K_loc| by a tenth or more": {
            text: of("skewness", **labels) > 1.1 for text, labels in STILL.items()
        },
    },
    note=f"{HOW} {FROZEN}",
    control=Control(
        "soft switching with beta = 40 and E = 5 in place of every setting",
        labels={"switch": "soft", "beta": 40.0, "local_steps": 5},
    ),
)

COMMIT = "be1c3907"  # that fixed the rules
full = partial(
    Claim,
    paper="F",
    place="Section 3.2, Remark 1, and F.3",
    rule_fixed=COMMIT,
)
CLAIMS = (
    full(
        id="fedsgm/C35",
        wording="The skewness K_loc of the clients' gradients makes their models drift, also where "
        "K_glob vanishes.",
        rule=EFFECT,
        runs=runs(EVERY),
    ),
    full(
        id="fedsgm/C36",
        wording="Fewer local steps, and tuning the sharpness beta, reduce what the skewness does.",
        rule=REMEDIES,
        runs=runs(MIXED),
    ),
    full(
        id="fedsgm/C37",
        wording="The skewness turns the path of the model.",
        rule=ROTATION,
        runs=runs(TURNING),
    ),
    Claim(
        id="fedsgm/P4",
        paper="ours",
        place="prediction",
        wording="With all clients and no compression, no model depends on which objective and "
        "which constraint belong to a client, if switching is hard or clients make one step.",
        rule=NO_EFFECT,
        rule_fixed=COMMIT,
        runs=runs(STILL),
    ),
)
