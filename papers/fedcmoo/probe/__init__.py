"""Study of FedCMOO's Table 3 and Figure 11: errors of Gram estimates, local progress."""

from __future__ import annotations

from papers.fedcmoo.common import shared
from papers.fedcmoo.probe import claims
from papers.fedcmoo.probe.quantities import derive
from papers.fedcmoo.probe.runs import specs
from papers.kit.health import learning, nothing
from papers.kit.parameters import parameters
from papers.kit.study import Study, Tolerance

PARAMETERS = parameters(
    seeds=("seeds; each fixes start, split, participants and batches", (0,)),
    gram_rounds=("rounds with two grey tasks in which the Gram estimates are measured", 100, 1),
    gram_seeds=(
        "seeds with two grey tasks in which the Gram estimates are measured",
        (700, 701, 702),
        (0,),
    ),
    colour_rounds=("the same number on CIFAR-10 with digits; 0: none", 2, 0),
    attribute_rounds=("the same number with forty attributes; 0: none", 3, 1),
    attribute_participants=("clients a round with forty attributes", 6, 2),
    progress_seeds=("seeds with which local progress is measured", (703, 704, 705), (0,)),
    progress_rounds=("rounds in which local progress is measured", 100, 2),
    equal_rounds=("rounds in which FSMGDA's local training has FedCMOO's step size", 30, 1),
    **shared(),
)

STUDY = Study(
    name="cmoo_probe",
    title="Gram estimates and local progress, FedCMOO",
    paper="C",
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    paper_values=claims.PAPER_VALUES,
    watch={
        "gram_*": nothing("estimates of Gram matrices along a few rounds, whatever these gain"),
        "*": learning(0.1),
    },
    tolerances={"*": Tolerance(rounds=1)},
    at_paper={  # the rounds of the authors' demo
        "gram_rounds": 300,
        "colour_rounds": 300,
        "attribute_rounds": 300,
        "attribute_participants": 10,
        "progress_rounds": 300,
        "equal_rounds": 300,
        "seeds": (0, 1, 2),
    },
    **PARAMETERS,
)
