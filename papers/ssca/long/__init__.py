"""Study of SSCA beyond the paper's 100 rounds: stationarity, the constraint, the penalty."""

from papers.kit.health import HealthCheck
from papers.kit.parameters import parameters
from papers.kit.study import Study
from papers.ssca import common
from papers.ssca.long import claims
from papers.ssca.long.quantities import derive
from papers.ssca.long.runs import specs

PARAMETERS = parameters(
    seeds=("seeds; each fixes start, split and batches", tuple(range(10)), (0, 1)),
    limit_seeds=("seeds of the runs with a constraint", (600, 601, 602, 603, 604), (0, 1)),
    rounds=("communication rounds T", 1000, 120),
    every=("rounds between two evaluations", 50, 20),
    batches=(
        "rows of a client's batch; the first also for the constrained runs",
        claims.BATCHES,
        (100,),
    ),
    levels=("levels U of the cost", claims.LEVELS, (0.6,)),
    penalties=("first penalties c of the runs in which c grows", claims.PENALTIES, (30.0,)),
    growth=("factor by which c grows, a whole number", 10),
    patience=("rounds between two checks of the slack", 50, 20),
    tolerance=("slack up to which c stays", 1e-3),
    **common.TASK,
)

STUDY = Study(
    name="ssca_long",
    title="Longer runs, SSCA",
    paper="Y",
    specs=specs,
    derive=derive,
    watch={"*": HealthCheck("cost")},
    claims=claims.CLAIMS,
    **PARAMETERS,
)
