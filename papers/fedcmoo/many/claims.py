"""FedCMOO's claim about the number of objectives."""

from __future__ import annotations

from papers.fedcmoo.common import NOTHING, TWO, cmoo
from papers.fedcmoo.many.runs import DEFAULTS, SETS
from papers.kit.health import Needs
from papers.kit.quantities import names_of
from papers.kit.rules import Rule, of

#: What the paper's runs have: its data, and the rounds that its authors' code has by default.
NEEDS = Needs(paper={"rounds": 200, "problem.data": "celeba", "algorithm.participants": 10})

C2 = Rule(
    {
        "FedCMOO's final accuracy exceeds FSMGDA's with 40 tasks": of("gap", tasks="attributes")
        > 0,
        "FedCMOO's lead is larger with 40 tasks than with 2": of(
            "gap", tasks="attributes", minus="halves"
        )
        > 0,
    },
    control=NOTHING,
)
CLAIMS = (
    cmoo(
        id="fedcmoo/C2",
        place="Figures 1, 8 and 9",
        wording="The advantage of FedCMOO over FSMGDA grows with the number of objectives (40 "
        "tasks of CelebA against two tasks).",
        rule=C2,
        runs=names_of(DEFAULTS, tasks=[*SETS], method=[*TWO]),
        figure="progress",
        needs=NEEDS,
    ),
)
