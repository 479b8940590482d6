"""Study of FedFW's tables with the authors' rows and loop, FedDR's clients from one start.

In the published code one model is built, which every client of FedDR copies, and a client walks
through its minibatches in a fixed order. Study `fw_authors` gave each client a start of its own.
"""

from __future__ import annotations

from papers.fedfw.authors.runs import GUESSING
from papers.fedfw.common_start import claims
from papers.fedfw.common_start.quantities import derive
from papers.fedfw.common_start.runs import specs
from papers.kit.parameters import parameters
from papers.kit.study import Study

PARAMETERS = parameters(
    seeds=("seeds, which no run had before; each fixes a split", tuple(range(300, 308)), (0, 1)),
    splits=("columns: IID, and the three classes that are called non-IID", ("iid", "classes")),
    rounds=("rounds of FedFW in Tables 1 and 2, epochs", 340, 3),
    feddr_rounds=("rounds of FedDR there, single minibatches", 1000, 20),
    many_rounds=("rounds of FedFW-sto in Table 3, 100 users; 0: without", 150, 0),
    many_feddr_rounds=("rounds of FedDR there", 300, 20),
)

STUDY = Study(
    name="fw_common",
    title="FedFW's tables, FedDR from one start",
    paper="D",
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    watch=GUESSING,
    **PARAMETERS,
)
