"""FedCMOO's claims about many objectives, and the rules that judge them."""

from __future__ import annotations

from papers.fedcmoo.common import cmoo
from papers.fedcmoo.many.numbers import METHODS, SETS
from papers.kit.claims import PaperValue
from papers.kit.rules import Rule, of, told, told_value, value

POINT = 0.5  # a difference of accuracies that counts, in points
EVEN = 0.9  # a spread that counts as smaller: at most so much of the other
ONE_SEED = "One seed, so that an interval is a single value."
#: C17: how many tasks, against which method -> ratio of the deviations.
RATIOS = {
    (SETS[tasks], text): f"{tasks}_pref_vs_{name}.deviation"
    for tasks in ("groups", "attributes")
    for name, text in (("fedcmoo", "FedCMOO"), ("fsmgda", "FSMGDA"))
}

C2 = Rule(
    {
        "FedCMOO ahead with 40 tasks": of("attributes.gap") > POINT,
        "the gap with 40 tasks above that with 2": of("attributes_vs_halves.gap") > POINT,
        "the gap with 5 tasks between the two": (
            value("groups.gap") - value("halves.gap") >= -POINT
        )
        & (value("groups.gap") - value("attributes.gap") <= POINT),
    },
    "FedCMOO minus FSMGDA in final accuracy, "
    + "; ".join(f"M = {count}: {told(f'{tasks}.gap', '.2g')}" for tasks, count in SETS.items()),
    note=ONE_SEED,
)
C17 = Rule(
    {
        f"more even than {text} with {count} tasks": of(key) <= EVEN
        for (count, text), key in RATIOS.items()
    },
    "deviation of the final losses over tasks: "
    + "; ".join(
        f"M = {count}, {told_value(key, '.2f')} of {text}'s"
        for (count, text), key in RATIOS.items()
    ),
    note=ONE_SEED,
)

CLAIMS = (
    cmoo(
        id="fedcmoo/C2",
        place="Figures 1, 8 and 9",
        wording="The advantage of FedCMOO over FSMGDA grows with the number of objectives (40 "
        "tasks of CelebA against two tasks).",
        measure="Final mean test accuracy (last fifth of the evaluations) of FedCMOO minus "
        "FSMGDA's, in points (gap), with M = 2, 5 and 40 tasks (halves, groups, attributes) on the "
        "same 40 attributes of the same pictures, equal rounds, clients, local steps and network; "
        "step sizes of the paper's CelebA-5 for M = 2 and 5, of its CelebA for M = 40. Forty "
        "attributes of a digit and an item in place of CelebA's.",
        rule=C2,
        runs=tuple(f"{tasks}_{name}" for tasks in SETS for name in ("fedcmoo", "fsmgda")),
        figure="gap_by_tasks",
    ),
    cmoo(
        id="fedcmoo/C17",
        place="Figure 10",
        wording="FedCMOO-Pref with equal preference trains the tasks more evenly than FedCMOO and "
        "FSMGDA.",
        measure="Standard deviation over the tasks of their final test losses (last fifth of the "
        "evaluations), FedCMOO-Pref's divided by another method's (deviation), with M = 5 (groups) "
        "and M = 40 tasks (attributes). Forty attributes of a digit and an item in place of "
        "CelebA's.",
        rule=C17,
        runs=tuple(f"{tasks}_{name}" for tasks in ("groups", "attributes") for name in METHODS),
        figure="figure_10",
    ),
)

#: The paper shows its results with many objectives as curves and radial plots only.
PAPER_VALUES = tuple(
    PaperValue(f"{what}, M = {count}", f"{tasks}.{k}", None, "curve only", "C, Figures 1 and 8")
    for tasks, count in SETS.items()
    if count > 2
    for k, what in (
        ("gap", "FedCMOO - FSMGDA in accuracy (points)"),
        ("gap_upload", "the same at equal uploads"),
    )
)
