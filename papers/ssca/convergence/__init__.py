"""Study of SSCA's Figures 2 and 3: convergence by samples and by features, beside SGD."""

from papers.kit.health import HealthCheck
from papers.kit.parameters import parameters
from papers.kit.study import Study
from papers.ssca import common
from papers.ssca.common import LEVELS
from papers.ssca.convergence import claims
from papers.ssca.convergence.quantities import derive
from papers.ssca.convergence.runs import specs

PARAMETERS = parameters(
    seeds=(
        "seeds; each fixes start, split, evaluated pictures and batches",
        tuple(range(20)),
        (0, 1),
    ),
    rounds=("rounds T", 100, 30),
    evaluate_every=("rounds between two evaluations", 5),
    sgd_every=("rounds between two evaluations of SGD", 10),
    batches=(
        "batch of a client, or of all clients if features are split",
        claims.BATCHES,
        (10,),
    ),
    levels=("levels U of the constrained algorithms", LEVELS, (1.0,)),
    rates=("the grid of SGD's first step sizes", claims.RATES, (0.3, 3.0)),
    falls=("the grid of the exponents with which SGD's step sizes fall", claims.FALLS, (0.0,)),
    start_seeds=(
        "seeds of the runs from He's start, with the smallest batch",
        tuple(range(10)),
        (0, 1),
    ),
    fine_batches=("batches for which SGD has a fine grid", claims.FINE_BATCHES, (10,)),
    fine_rates=("the fine grid of SGD's first step sizes", claims.FINE_RATES, (0.3,)),
    fine_falls=("the fine grid of the exponents", claims.FINE_FALLS, (0.0,)),
    tuning_seeds=("seeds on which SGD is tuned over the fine grid", (0, 1, 2), (2,)),
    fresh_seeds=(
        "seeds that compare SSCA with this SGD, which no run had before",
        tuple(range(500, 520)),
        (3, 4),
    ),
    later_seeds=(
        "seeds that compare batches and splits, which no run had before",
        tuple(range(620, 630)),
        (5, 6),
    ),
    **common.TASK,
)

STUDY = Study(
    name="ssca_convergence",
    title="Convergence of SSCA",
    paper="Y",
    specs=specs,
    derive=derive,
    watch={"*": HealthCheck("cost")},
    claims=claims.CLAIMS,
    at_paper={"seeds": tuple(range(100)), "evaluate": 60_000},
    **PARAMETERS,
)
