"""Study: SSCA beside momentum SGD, of which it is a form, with step and weight tuned."""

from papers.kit.health import HealthCheck
from papers.kit.parameters import parameters
from papers.kit.study import Study
from papers.ssca import common
from papers.ssca.baselines import claims
from papers.ssca.baselines.quantities import derive
from papers.ssca.baselines.runs import specs

PARAMETERS = parameters(
    seeds=("seeds that judge, which no run had before", tuple(range(700, 720)), (0, 1)),
    tuning_seeds=("seeds on which momentum SGD is tuned", (0, 1, 2), (2, 3)),
    rounds=("rounds T", 100, 30),
    batches=("batch of a client, or of all clients if features are split", claims.BATCHES, (10,)),
    rates=("its constant step sizes a", (0.1, 0.2, 0.4, 0.7, 1.0), (0.2, 0.4)),
    betas=("its constant weights beta of the last change", (0.3, 0.5, 0.7, 0.85), (0.5,)),
    **common.TASK,
)

STUDY = Study(
    name="ssca_baselines",
    title="SSCA beside tuned momentum SGD",
    paper="Y",
    specs=specs,
    derive=derive,
    watch={"*": HealthCheck("cost")},
    claims=claims.CLAIMS,
    **PARAMETERS,
)
