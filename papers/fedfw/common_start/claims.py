"""What FedFW's tables say of generated data, judged with FedDR's clients at one common start.

The rules were fixed, and committed, before any of the splits that judge them was drawn.
"""

from __future__ import annotations

from functools import partial

from papers.fedfw.authors.claims import differences, many, runs_of, table_3, tables
from papers.fedfw.authors.runs import Labels
from papers.kit.claims import Claim
from papers.kit.health import Needs
from papers.kit.quantities import Query
from papers.kit.rules import Control

FROZEN = (
    " All of FedDR's clients start at one random model, and minibatches have a fixed order, as in "
    "the published code. Rule and control were committed before the splits were drawn. On three "
    "splits before, every client of FedDR had had a start of its own, which misreads the code."
)


def without_effect(cells: dict[str, Labels]) -> Control:
    """FedDR on disjoint halves of the splits in place of both methods."""
    return Control(
        "FedDR on two disjoint halves of the splits instead of both methods",
        {Query.of("best", **cell): Query.of("null", **cell) for cell in cells.values()},
    )


paper = partial(Claim, paper="D", rule_fixed="e538465a")
CLAIMS = (
    paper(
        id="fedfw/R16",
        place="Tables 1, 2",
        wording="With the l2 ball FedFW is ahead of FedDR on generated data, IID and non-IID.",
        rule=tables("l2", "FedFW above FedDR", without_effect(differences("l2")), FROZEN),
        runs=runs_of("l2"),
        needs=Needs(paper={"rounds": 1000}),
    ),
    paper(
        id="fedfw/R17",
        place="Table 3",
        wording="FedFW-sto is ahead of FedDR on generated data, IID and non-IID.",
        rule=table_3(without_effect(many()), FROZEN),
        runs=runs_of(),
        needs=Needs(paper={"rounds": 300}),
    ),
    paper(
        id="fedfw/C18",
        place="Tables 1, 2",
        wording="With the l1 ball and generated data, FedFW is ahead of FedDR for IID logistic "
        "regression and behind it in the three other cells.",
        rule=tables(
            "l1", "the difference has the printed sign", without_effect(differences("l1")), FROZEN
        ),
        runs=runs_of("l1"),
        # The best round is compared, and the authors' own FedDR falls back to guessing after it.
        needs=Needs(paper={"rounds": 1000}, dead=("*_l1_feddr",)),
    ),
)
