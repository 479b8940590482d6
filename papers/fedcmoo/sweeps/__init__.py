"""Study of FedCMOO's Figures 2 and 4: how many local steps, and which preference."""

from __future__ import annotations

from papers.fedcmoo.common import shared
from papers.fedcmoo.sweeps import claims
from papers.fedcmoo.sweeps.quantities import derive
from papers.fedcmoo.sweeps.runs import specs
from papers.kit.health import HealthCheck, learning
from papers.kit.parameters import parameters
from papers.kit.study import Study, Tolerance

PARAMETERS = parameters(
    seeds=("seeds; each fixes start, split, participants and batches", (0, 1, 2), (0,)),
    step_rounds=("communication rounds T of the runs with different local steps", 167, 2),
    steps=("numbers of local steps", (1, 20), (1, 2)),
    preference_rounds=("rounds T of the runs with preferences", 100, 2),
    ratios=("r_2 / r_1 of the preferences", (0.25, 0.5, 1.0, 2.0, 4.0), (0.5, 1.0)),
    **shared(),
)

STUDY = Study(
    name="cmoo_sweeps",
    title="Local steps and preferences, FedCMOO",
    paper="C",
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    watch={"*": (*learning(0.1), HealthCheck("loss_*"), HealthCheck("accuracy_*", chance=0.1))},
    tolerances={"*": Tolerance(rounds=1)},
    at_paper={"step_rounds": 500, "preference_rounds": 300},
    **PARAMETERS,
)
