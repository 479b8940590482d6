"""Study W: the workshop paper's Neyman-Pearson figure (10 clients, unbiased Rand-K uplink)."""

from papers.fedsgm.np_workshop import claims
from papers.fedsgm.np_workshop.quantities import derive
from papers.fedsgm.np_workshop.runs import OPEN_LRS, specs
from papers.kit.health import HealthCheck
from papers.kit.parameters import parameters
from papers.kit.study import Study

PARAMETERS = parameters(
    seeds=("seeds; each fixes partition and compressors", tuple(range(8100, 8160)), (0, 1, 2)),
    rounds=("communication rounds T", 100),
    clients=("clients n, all of which take part", 10),
    lr=("step size of the main curves", 0.3),
    lrs=("step sizes of the sweep", (0.01, 0.03, 0.1, 0.2, 0.5, 1.0), (0.1, 1.0)),
    tolerance=("switching threshold and level of the constraint, epsilon", claims.EPSILON),
    beta=("sharpness of soft switching", 20.0),
    betas=("sharpnesses of the sweep", (5.0, 10.0, 40.0, 60.0, 200.0), (5.0, 200.0)),
    fraction=("K/d of the Rand-K uplink", 0.1),
    local_steps=("local steps E", 5),
    fresh=("seeds that judge claim C25 alone", tuple(range(1000, 1400)), (1000, 1001)),
    drift_seeds=("seeds that judge claim C40 alone", tuple(range(8300, 8330)), (8300, 8301)),
    drift_lrs=("step sizes at which the drift is measured", OPEN_LRS, (0.3,)),
    settle_rounds=("rounds of the uncompressed runs for predictions P1 and P2", 2000, 120),
    many=("whether the settings that the paper leaves open are run", True, False),
)

STUDY = Study(
    name="np_workshop",
    title="Neyman-Pearson classification, workshop paper",
    paper="W",
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    paper_values=claims.PAPER_VALUES,
    watch={"*": HealthCheck("f", guard="g", level=claims.EPSILON)},
    **PARAMETERS,
)
