"""Study of FedCMOO on quadratics whose Pareto front is known: what the theory is about."""

from __future__ import annotations

from papers.fedcmoo.toy import claims
from papers.fedcmoo.toy.quantities import derive
from papers.fedcmoo.toy.runs import specs
from papers.kit.health import HealthCheck, nothing
from papers.kit.parameters import parameters
from papers.kit.study import Study

PARAMETERS = parameters(
    seeds=("seeds; each fixes the instance, participants and batches", tuple(range(10)), (0, 1)),
    lr=("client step size, except in the runs on the rate", 0.1),
    rounds=("rounds of the sweep over local steps", 400, 20),
    edge_rounds=("rounds of the sweeps over tolerance and scale", 150, 20),
    local_steps_grid=("local steps E of the sweep", (1, 5, 10, 20, 50), (1, 10)),
    spreads=(
        "root mean square distances of the clients' optima from the common ones",
        (0.0, 1.0),
        (0.0,),
    ),
    horizons=("rounds T of the runs on the rate", (50, 100, 200, 400, 800, 1600), (20, 40)),
    rate_local_steps=("local steps E of the runs on the rate", 5),
    rate_participants=(
        "clients a round, of 20, of the runs on the rate; also for each of the two Gram factors",
        10,
    ),
    tolerances=("FedCMOO-Pref's epsilon", (0.1, 0.01, 0.001, 0.0001), (0.1, 0.01)),
    objectives=("M of the sweep over tolerances and of the direction", (2, 5), (2,)),
    scale=("factor of objective 1 in the scale mismatch", 20.0),
    points=("random models and preferences a seed, for the direction", 100, 10),
)

STUDY = Study(
    name="cmoo_toy",
    title="FedCMOO on quadratics with a known front",
    paper="C",
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    paper_values=claims.PAPER_VALUES,
    watch={
        "probe_*": nothing("directions at random models"),
        "rate_*": HealthCheck("g_12"),  # the inner product of both gradients, which end opposed
        "*": HealthCheck(
            "stationarity", exact="exact gradients of quadratics come to rest within one look"
        ),
    },
    **PARAMETERS,
)
