"""Study of the full paper's Figure 7: fair classification on Adult, ten unequal clients."""

from papers.fedsgm.fairness import claims
from papers.fedsgm.fairness.quantities import derive
from papers.fedsgm.fairness.runs import specs
from papers.kit.health import HealthCheck
from papers.kit.parameters import parameters
from papers.kit.study import Study

PARAMETERS = parameters(
    seeds=("seeds; each fixes start, partition and participants", (0, 1, 2, 3, 4), (0, 1)),
    sweep_seeds=("seeds of the runs on what the printed step size may mean", (0, 1, 2), (0,)),
    fresh=(
        "seeds that judge claims C30 and C33, and C31 and C32 anew",
        tuple(range(1000, 1030)),
        (1000, 1001),
    ),
    rounds=("communication rounds T", 500, 20),
    lr=("step size where no other entry sets it", 0.1, 0.3),
    tolerance=("switching threshold and level of the gap, epsilon", claims.EPSILON),
    beta=("sharpness of soft switching", 40.0),
    clients=("clients N", 10),
    participants=("clients a round", 5),
    alpha=("concentration of the Dirichlet split", 2.0),
    local_steps=("local steps E, a minibatch each", 2),
    batch=(
        "rows of a client's minibatch; a centralized one has those of all participants",
        64,
        16,
    ),
    central_values=("rows of a centralized method's batch for the gap", 1024, 256),
    rhos=("penalties", (0.1, 1.0, 10.0)),
    duals=("dual steps of IPP ConEx", (1.0, 10.0)),
    conex_steps=(
        "more step sizes of IPP ConEx; 0.3 with a dual step of 100 diverges",
        (0.03, 0.03, 0.03, 0.1, 0.3, 0.3),
        (0.03,),
    ),
    conex_duals=(
        "dual step for each entry of conex_steps",
        (1.0, 10.0, 100.0, 100.0, 1.0, 10.0),
        (1.0,),
    ),
    printed_lr=("the step size that the paper prints", 0.0001),
    epoch_steps=("local steps that are two epochs of a client of mean size", 94, 4),
    many=("whether the settings that the paper leaves open are run", True, False),
    stand_in_rows=("0: the official files of Adult; else that many generated rows", 0, 2000),
)

STUDY = Study(
    name="fairness",
    title="Fair classification, full paper",
    paper="F",
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    watch={
        "*": (
            HealthCheck("f", guard="g", level=claims.EPSILON),
            HealthCheck("test_accuracy", chance=lambda config: config["problem"]["majority"]),
        )
    },
    **PARAMETERS,
)
