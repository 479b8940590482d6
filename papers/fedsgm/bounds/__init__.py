"""Study: the theorems' bounds against what their own step sizes and thresholds reach."""

from papers.fedsgm.bounds import claims
from papers.fedsgm.bounds.quantities import derive
from papers.fedsgm.bounds.runs import specs
from papers.kit.health import HealthCheck
from papers.kit.parameters import parameters
from papers.kit.study import Study

PARAMETERS = parameters(
    seeds=(
        "instances, of twelve kinds in turn; a seed also fixes participants and batches",
        tuple(range(12)),
        (0, 1),
    ),
    rounds=("rounds T where T is not varied", 1000, 60),
    horizons=("rounds T of the sweep over T", claims.HORIZONS, (20, 40, 60)),
    local_steps=("local steps E", 2),
    participants=("clients a round, of 10, for the theorems with sampled clients", 5),
    up=("K/d of the uplink, Top-K or Rand-K", 0.5),
    down=("K/d of the downlink", 0.5),
    threshold_factors=(
        "multiples of the prescribed threshold",
        (0.0, 0.03, 0.1, 0.3, 1.0),
        (0.0, 0.1, 1.0),
    ),
    step_factors=("multiples of the prescribed step size", (1.0, 3.0, 10.0), (1.0,)),
    stairs=("rounds T on the hard instance", (10, 30, 100, 300, 1000), (10, 30)),
    stairs_local_steps=(
        "local steps E on the hard instance; E T is the largest of stairs",
        (2, 5, 10),
        (5,),
    ),
)

STUDY = Study(
    name="bounds",
    title="Bound against practice",
    paper="F",
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    watch={"weak_*": HealthCheck("g"), "*": HealthCheck("f_gap", guard="g")},
    **PARAMETERS,
)
