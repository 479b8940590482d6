"""Study of FedCMOO's Figure 3 (eleven properties of molecules) and of what is uploaded."""

from __future__ import annotations

from papers.fedcmoo.qm9 import claims
from papers.fedcmoo.qm9.quantities import derive
from papers.fedcmoo.qm9.runs import specs
from papers.kit.health import HealthCheck, nothing
from papers.kit.parameters import parameters
from papers.kit.study import Study, Tolerance

PARAMETERS = parameters(
    source=("0: QM9, 2: generated graphs with targets of a known rule, without a download", 0, 2),
    seeds=("seeds; each fixes start, split, participants and batches", (0,)),
    rounds=("communication rounds T of FedCMOO and FedCMOO-Pref", 22, 1),
    fsmgda_rounds=("rounds of FSMGDA, whose clients take six times as many steps", 8, 1),
    lr=("step size of the clients' Adam", 0.01),
    clients=("clients N", 20),
    participants=("clients a round", 4, 1),
    local_steps=("local steps E, a minibatch each", 14, 2),
    batch=("molecules of a client's minibatch", 8, 2),
    loss_rows=("molecules on which a client of FedCMOO-Pref estimates its losses", 32, 2),
    molecules=("training molecules of all clients together", 40_000, 200),
    test_molecules=("test molecules on which the losses of the figures are measured", 500, 20),
    evaluate_every=("rounds between two evaluations", 1),
    objectives=(
        "numbers of objectives M of the one-round runs whose uploads are counted",
        (2, 5, 11, 40),
        (2,),
    ),
    count_dim=("parameters d of the model in the one-round runs", 20_000, 2000),
)

STUDY = Study(
    name="cmoo_qm9",
    title="Properties of molecules, FedCMOO",
    paper="C",
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    paper_values=claims.PAPER_VALUES,
    watch={
        "*_objectives*": nothing("one round, whose uploads are counted"),
        "*": (HealthCheck("loss"), HealthCheck("loss_*")),
    },
    tolerances={"*": Tolerance(rounds=1)},
    at_paper={"rounds": 200, "fsmgda_rounds": 200, "batch": 128, "seeds": (0, 1, 2)},
    **PARAMETERS,
)
