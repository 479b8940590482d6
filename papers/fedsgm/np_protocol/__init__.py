"""Study: the full paper's Neyman-Pearson figures at the steps of its own tuning protocol.

The paper tunes step sizes over powers of ten from 1 to 0.0001 and plots the best. On the ten splits
of study `np_unified` that picks 1 for hard and for soft switching, an end of the grid. Here
everything is judged there, on splits that no other run has, and Penalty-FedAvg sends messages that
are compressed like those of FedSGM.
"""

from papers.fedsgm.np_protocol import claims
from papers.fedsgm.np_protocol.quantities import derive
from papers.fedsgm.np_protocol.runs import specs
from papers.fedsgm.np_unified.runs import SWEEPS
from papers.kit.health import HealthCheck
from papers.kit.parameters import parameters
from papers.kit.study import Study

PARAMETERS = parameters(
    seeds=("the splits that judge, which no run had before", tuple(range(7000, 7100)), (0, 1)),
    tuning_seeds=("the splits on which the penalties' steps are tuned", tuple(range(10)), (2, 3)),
    rounds=("communication rounds T", 500, 40),
    lr=("step size of FedSGM, which tuning picks", 1.0),
    lrs=(
        "step sizes that are tuned over for the penalties",
        (1.0, 0.3, 0.1, 0.03, 0.01, 0.001, 0.0001),
        (1.0, 0.1),
    ),
    tolerance=("switching threshold and level of the constraint, epsilon", 0.05),
    beta=("sharpness of soft switching", 40.0),
    betas=("sharpnesses of the sweep", (20.0, 80.0, 120.0, 400.0, 4000.0), (20.0,)),
    end_betas=("sharpnesses with all clients", (20.0, 4000.0), (20.0,)),
    **SWEEPS,
    rhos=("penalties of Penalty-FedAvg", (0.001, 0.5, 2.0, 20.0, 100.0), (0.5, 20.0)),
    penalty_lrs=(
        "the step of each penalty, which tuning picks",
        (0.01, 1.0, 0.3, 0.3, 0.03),
        (1.0, 0.1),
    ),
)

STUDY = Study(
    name="np_protocol",
    title="Neyman-Pearson classification, tuned as in the paper",
    paper="F",
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    watch={"*": HealthCheck("f", guard="g", level=claims.EPSILON)},
    **PARAMETERS,
)
