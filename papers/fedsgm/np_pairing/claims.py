"""Remark 1 of the full paper, and what follows for hard switching, judged by exchanged constraints.

The rules were fixed, and committed, before any of the splits that judge them was drawn.
"""

from __future__ import annotations

from functools import partial
from math import log10

from papers.kit.claims import Claim
from papers.kit.rules import Condition, Control, Rule, most, of, stat, stat_value

SHIFTS = (0, 1, 7, 13)
BETAS = (20, 40, 400)
STEPS = (1, 5, 20)
NOTHING = 1e-5  # of a model's length: models are stored with six digits
SEEN = 1e-3
MIXED = {f"soft{b}_E{e}": f"soft, beta = {b}, E = {e}" for b in BETAS for e in STEPS[1:]}
SINGLE = {f"soft{b}_E1": f"soft, beta = {b}, E = 1" for b in BETAS}
HARD = {f"hard_E{e}": f"hard, E = {e}" for e in STEPS}
REST = {
    "hard_sampled": "hard, E = 5, 10 of 20 clients",
    "soft40_sampled": "soft, beta = 40, E = 5, 10 of 20 clients",
    "hard_topk": "hard, E = 5, Top-K 0.1 both ways",
    "soft40_topk": "soft, beta = 40, E = 5, Top-K 0.1 both ways",
}
FROZEN = "Rule and control were committed before the 30 splits were drawn."
HOW = (
    "Every client keeps its objective and gets the constraint of another one. This changes K_loc "
    "and leaves f, g and K_glob as they are. The model with three such pairings is compared with "
    "that of the data's own pairing. Conditions read geometric means of distances."
)

Cells = dict[str, Condition]


def moves(settings: dict[str, str]) -> Cells:
    """The pairing moves the final model by more than a thousandth of its length, typically."""
    return {text: of(f"{name}.moved_log") > log10(SEEN) for name, text in settings.items()}


def values(settings: dict[str, str], measure: str, spec: str = ".2g") -> str:
    """A measure of some settings, without intervals."""
    return "; ".join(f"{text} {stat_value(f'{n}.{measure}', spec)}" for n, text in settings.items())


def runs(settings: dict[str, str]) -> tuple[str, ...]:
    """The runs of some settings, all pairings."""
    return tuple(f"{name}_shift{shift}" for name in settings for shift in SHIFTS)


EFFECT = Rule(
    {
        "exchanging the constraints moves the model, all clients and no compression": moves(
            {**HARD, **SINGLE, **MIXED}
        ),
        "exchanging the constraints moves the model with sampled clients or compression": moves(
            REST
        ),
    },
    "distance of the models as a share of their length: "
    + values({**HARD, **SINGLE, **MIXED, **REST}, "moved")
    + "; largest |K_loc| divided by the smallest: "
    + values({**HARD, **MIXED}, "skewness"),
    f"{HOW} {FROZEN}",
    control=Control(
        "hard switching with all clients in place of every setting",
        dict.fromkeys({**HARD, **SINGLE, **MIXED, **REST}, "hard_E5"),
    ),
)
REMEDIES = Rule(
    {
        "the exchange moves the model less with 5 than with 20 local steps": {
            f"soft, beta = {b}": of(f"soft{b}_E5.moved_log") < of(f"soft{b}_E20.moved_log")
            for b in BETAS
        },
        "the exchange moves the model less with the smaller sharpness": {
            f"beta = {a} against {b}, E = {e}": of(f"soft{a}_E{e}.moved_log")
            < of(f"soft{b}_E{e}.moved_log")
            for a, b in ((20, 40), (40, 400))
            for e in STEPS[1:]
        },
    },
    "distance of the models as a share of their length: "
    + "; ".join(f"{text} {stat(f'{name}.moved', '.2g')}" for name, text in MIXED.items())
    + "; mean of sigma (1 - sigma): "
    + values(MIXED, "mixing"),
    f"{HOW} {FROZEN}",
    control=Control(
        "hard switching at E = 5 in place of every setting", dict.fromkeys(MIXED, "hard_E5")
    ),
)
ROTATION = Rule(
    {
        "the model turns more with the pairing of largest |K_loc| than with that of smallest": {
            text: of(f"{name}.turn_more") > 0 for name, text in {**HARD, **MIXED}.items()
        }
    },
    "degrees that the change of the model turns from a round to the next, largest minus smallest "
    "|K_loc| (with the data's pairing): "
    + "; ".join(
        f"{text} {stat(f'{name}.turn_more', '+.2g')} ({stat_value(f'{name}.turn', '.3g')})"
        for name, text in {**HARD, **MIXED}.items()
    ),
    f"{HOW} {FROZEN}",
    control=Control(
        "pairings that are chosen without looking at K_loc",
        {f"{name}.turn_more": f"{name}.turn_null" for name in {**HARD, **MIXED}},
    ),
)
NO_EFFECT = Rule(
    {
        "no pairing moves the model of any split": {
            text: most(f"{name}.moved") <= NOTHING for name, text in {**HARD, **SINGLE}.items()
        },
        "the pairing changes |K_loc| by a tenth or more": {
            text: of(f"{name}.skewness") > 1.1 for name, text in {**HARD, **SINGLE}.items()
        },
    },
    "distance of the models as a share of their length: "
    + values({**HARD, **SINGLE}, "moved")
    + "; largest |K_loc| divided by the smallest: "
    + values({**HARD, **SINGLE}, "skewness"),
    f"{HOW} {FROZEN}",
    control=Control(
        "soft switching with beta = 40 and E = 5 in place of every setting",
        dict.fromkeys({**HARD, **SINGLE}, "soft40_E5"),
    ),
)

COMMIT = "be1c3907"  # that fixed the rules
full = partial(Claim, paper="F", place="Section 3.2, Remark 1, and F.3", rule_fixed=COMMIT)
CLAIMS = (
    full(
        id="fedsgm/C35",
        wording="The skewness K_loc of the clients' gradients makes their models drift, also where "
        "K_glob vanishes.",
        rule=EFFECT,
        runs=runs({**HARD, **SINGLE, **MIXED, **REST}),
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
        runs=runs({**HARD, **MIXED}),
    ),
    Claim(
        id="fedsgm/P4",
        paper="ours",
        place="prediction",
        wording="With all clients and no compression, no model depends on which objective and "
        "which constraint belong to a client, if switching is hard or clients make one step.",
        rule=NO_EFFECT,
        rule_fixed=COMMIT,
        runs=runs({**HARD, **SINGLE}),
    ),
)
