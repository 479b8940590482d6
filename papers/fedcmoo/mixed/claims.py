"""What Table 2 of FedCMOO shows on MultiMNIST.

The rule was fixed, and committed, before any of the seeds that judge it was drawn.
"""

from __future__ import annotations

from papers.fedcmoo.common import cmoo
from papers.fedcmoo.mixed.runs import DEFAULTS
from papers.fedcmoo.pairs.claims import TABLE_2
from papers.fedcmoo.pairs.runs import MIXED
from papers.kit.claims import PaperValue
from papers.kit.health import Needs
from papers.kit.quantities import Query, names_of
from papers.kit.rules import Control, Rule, of

R11 = Rule(
    {
        "Scalarized is more accurate on the digit with the log-likelihood": of(
            "gap", method="scalarized"
        )
        < 0,
        "FSMGDA is more accurate on the digit with the norm": of("gap", method="fsmgda") > 0,
        "FedCMOO's accuracy in its worse digit exceeds the other method's": {
            f"against {text}": of("worst", method="fedcmoo") > of("worst", method=name)
            for name, text in MIXED.items()
            if name != "fedcmoo"
        },
    },
    note="The rule was committed before the seeds were drawn. The control is younger: no run could "
    "have passed the first one. The rounds are those of the authors' demo; the paper prints none. "
    "Study cmoo_pairs has a third of them and the mean square in place of the norm; FSMGDA trains "
    "neither digit there, so those runs judge nothing.",
    control=Control(
        "FedCMOO instead of Scalarized in the first part",
        {Query.of("gap", method="scalarized"): Query.of("gap", method="fedcmoo")},
    ),
)

CLAIMS = (
    cmoo(
        id="fedcmoo/R11",
        place="Table 2",
        wording="One task has an l2 norm as its loss, the other the negative log-likelihood. "
        "Scalarized then trains only one task, and FSMGDA mainly the other one. FedCMOO has the "
        "best accuracy in its worse task.",
        rule=R11,
        runs=names_of(DEFAULTS, method=[*MIXED]),
        needs=Needs(paper={"rounds": 300, "problem.clients": 100}),
        rule_fixed="4b359804",
    ),
)
PAPER_VALUES = tuple(
    PaperValue(
        f"{MIXED[name]}, Digit {digit}",
        Query.of(f"accuracy_{digit}", method=name),
        accuracy,
        f"{accuracy:.1f} %",
        "C, Table 2",
        0.03,
    )
    for name, accuracies in TABLE_2.items()
    for digit, accuracy in enumerate(accuracies, 1)
)
