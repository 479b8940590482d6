"""Study: whether it matters which objective and which constraint belong to the same client.

The full paper's Remark 1 says that the skewness K_loc of the clients' gradient pairs makes local
models drift. Here the constraints are exchanged among the clients, which changes K_loc and neither
the mean objective, nor the mean constraint, nor K_glob.
"""

from papers.fedsgm.np_pairing import claims
from papers.fedsgm.np_pairing.quantities import derive
from papers.fedsgm.np_pairing.runs import specs
from papers.kit.health import HealthCheck
from papers.kit.parameters import parameters
from papers.kit.study import Study

PARAMETERS = parameters(
    seeds=("the splits that judge, which no run had before", tuple(range(7200, 7230)), (0, 1)),
    rounds=("communication rounds T", 300, 40),
    shifts=("pairings: client j gets the constraint of client j - shift", claims.SHIFTS, (0, 1)),
    lr=("step size, the one that tuning picks", 1.0),
    tolerance=("switching threshold and level of the constraint, epsilon", 0.05),
    betas=("sharpnesses of soft switching", tuple(map(float, claims.BETAS)), (40.0,)),
    beta=("sharpness with sampled clients or compression", 40.0),
    participants=("clients a round where they are sampled", 10),
    local_steps=("local steps with sampled clients or compression", 5),
    local_steps_sweep=("local steps with all clients", claims.STEPS, (1, 5)),
    fraction=("K/d of Top-K, uplink and downlink, where there is compression", 0.1),
)

STUDY = Study(
    name="np_pairing",
    title="Which constraint a client has",
    paper="F",
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    watch={"*": HealthCheck("f", guard="g", level=0.05)},
    **PARAMETERS,
)
