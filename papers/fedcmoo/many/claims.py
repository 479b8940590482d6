"""FedCMOO's claim about many objectives, and the rule that judges it."""

from __future__ import annotations

from papers.fedcmoo.common import cmoo
from papers.fedcmoo.many.numbers import SETS
from papers.kit.needs import Needs
from papers.kit.rules import EXCHANGED, Rule, of, stat

#: What the paper's runs have: its data, and the rounds that its authors' code has by default.
NEEDS = Needs(paper={"rounds": 200, "problem.data": "celeba", "algorithm.participants": 10})
STAND_IN = "Forty attributes of a digit and an item in place of CelebA's."


C2 = Rule(
    {
        "FedCMOO ahead with 40 tasks": of("attributes.gap") > 0,
        "by more than with 2": of("attributes_vs_halves.gap") > 0,
    },
    "FedCMOO minus FSMGDA in final accuracy, "
    + "; ".join(f"M = {count}: {stat(f'{tasks}.gap', '.2g')}" for tasks, count in SETS.items()),
    control=EXCHANGED,
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
        "step sizes of the paper's CelebA-5 for M = 2 and 5, of its CelebA for M = 40; one seed. "
        + STAND_IN,
        rule=C2,
        runs=tuple(f"{tasks}_{name}" for tasks in SETS for name in ("fedcmoo", "fsmgda")),
        figure="progress",
        needs=NEEDS,
    ),
)
