"""Study F: the full paper's Neyman-Pearson figures (20 clients, 10 a round, Top-K both ways)."""

from papers.fedsgm.np_unified import claims
from papers.fedsgm.np_unified.quantities import derive
from papers.fedsgm.np_unified.runs import SWEEPS, specs
from papers.kit.health import HealthCheck
from papers.kit.parameters import parameters
from papers.kit.study import Study

PARAMETERS = parameters(
    seeds=(
        "seeds; each fixes test split, partition and participants",
        tuple(range(8000, 8030)),
        (0, 1, 2),
    ),
    rounds=("communication rounds T", 500, 40),
    lr=("step size of all runs that are not tuned", 0.3),
    lrs=(
        "step sizes that are tuned over for Figure 6",
        (1.0, 0.3, 0.1, 0.03, 0.01, 0.001, 0.0001),
        (1.0, 0.1),
    ),
    tolerance=("switching threshold and level of the constraint, epsilon", claims.EPSILON),
    beta=("sharpness of soft switching", 40.0),
    betas=("sharpnesses of the sweep", (20.0, 80.0, 120.0, 400.0, 4000.0), (20.0, 400.0)),
    **SWEEPS,
    rhos=("penalties of Penalty-FedAvg", claims.RHOS, (0.5, 20.0)),
    fresh=("splits that judge claim C26 alone", tuple(range(9200, 9520)), (100, 101)),
    many=("whether the settings that the paper leaves open are run", True, False),
)

STUDY = Study(
    name="np_unified",
    title="Neyman-Pearson classification, full paper",
    paper="F",
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    paper_values=claims.PAPER_VALUES,
    watch={"*": HealthCheck("f", guard="g", level=claims.EPSILON)},
    **PARAMETERS,
)
