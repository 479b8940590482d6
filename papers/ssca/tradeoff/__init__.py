"""Study of SSCA's Figure 4, |w|^2 against the training cost, and of its Theorem 5."""

from papers.kit.health import HealthCheck
from papers.kit.parameters import parameters
from papers.kit.study import Study
from papers.ssca import common
from papers.ssca.tradeoff import claims
from papers.ssca.tradeoff.quantities import derive
from papers.ssca.tradeoff.runs import specs

PARAMETERS = parameters(
    seeds=("seeds; each fixes start, split and batches", tuple(range(10)), (0, 1)),
    rounds=("communication rounds T", 100, 40),
    batch=("rows of a client's batch; with features split, of the common batch per client", 100),
    ridges=("weights lambda of the ridge in (27)", claims.RIDGES, (1e-4, 1e-2, 3e-2)),
    levels=("levels U of the cost in (37)", claims.LEVELS, (0.4, 0.6, 1.0)),
    theorem_seeds=(
        "seeds of the runs of Theorem 5, on scikit-learn's digits",
        (0, 1, 2, 3, 4),
        (0, 1),
    ),
    theorem_pictures=("training pictures of the runs of Theorem 5", 300, 100),
    theorem_clients=("clients of the runs of Theorem 5", 10, 2),
    theorem_hidden=("hidden cells of the runs of Theorem 5", 16, 8),
    theorem_levels=("levels U of the runs of Theorem 5", claims.THEOREM, (0.6,)),
    theorem_rounds=("rounds of the runs of Theorem 5, with full batches", 3000, 200),
    **common.TASK | {"evaluate": (common.TASK["evaluate"][0], 60_000, 2_000)},
)

STUDY = Study(
    name="ssca_tradeoff",
    title="Norm against cost, SSCA",
    paper="Y",
    specs=specs,
    derive=derive,
    watch={"*": HealthCheck("cost")},
    claims=claims.CLAIMS,
    at_paper={"seeds": tuple(range(100))},
    **PARAMETERS,
)
