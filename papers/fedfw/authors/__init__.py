"""Study of FedFW's tables with the rows and the loop of its authors: where their values are from.

Fixed before the runs. Compared are the printed values of Tables 1 to 3 on generated data. What
stands beside a printed value is the best test accuracy over the rounds (evaluated after each), mean
over three splits; it counts as the same within one point, as near up to three, as apart beyond.
"""

from __future__ import annotations

from papers.fedfw.authors.quantities import derive
from papers.fedfw.authors.runs import GUESSING, specs
from papers.kit.parameters import parameters
from papers.kit.study import Study

PARAMETERS = parameters(
    seeds=("seeds; each fixes split and minibatches", (0, 1, 2), (0, 1)),
    splits=("columns: IID, and the three classes that are called non-IID", ("iid", "classes")),
    rounds=("rounds of FedFW in Tables 1 and 2, epochs", 340, 3),
    feddr_rounds=("rounds of FedDR there, single minibatches", 1000, 20),
    many_rounds=("rounds of FedFW-sto in Table 3, 100 users; 0: without", 150, 0),
    many_feddr_rounds=("rounds of FedDR there", 300, 20),
    text_rounds=("rounds of the paper's text", 100, 20),
    most=("most rows of a client of our own rows", 1000, 100),
    lambdas=("grid of lambda_0 for the protocol of the text", (1e-4, 1e-3, 1e-2, 1e-1), (1e-3,)),
    rates=("grid of FedDR's step sizes there", (0.5, 0.05), (0.5,)),
    etas=("grid of FedDR's eta there", (1.0, 10.0, 100.0), (10.0,)),
    chosen=("lambda_0 among which the best test accuracy chooses", (1e-3, 1e-2, 1e-1), (1e-3,)),
)

STUDY = Study(
    name="fw_authors",
    title="FedFW's tables, the authors' rows and loop",
    paper="D",
    specs=specs,
    derive=derive,
    watch=GUESSING,
    **PARAMETERS,
)
