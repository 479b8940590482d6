"""Study of FedCMOO's Figures 1, 8, 9 with many objectives: 2, 5 and 40 tasks of one picture.

The paper's forty attributes are those of CelebA's faces, which may not be passed on. Here stand
forty attributes of a digit and an item (`papers.fedcmoo.problems.attributes`), in the quick profile
the same attributes of scikit-learn's digits, which need no download.
"""

from __future__ import annotations

from papers.fedcmoo.many import claims
from papers.fedcmoo.many.quantities import derive
from papers.fedcmoo.many.runs import specs
from papers.kit.health import HealthCheck
from papers.kit.parameters import parameters
from papers.kit.study import Study, Tolerance

PARAMETERS = parameters(
    seeds=("seeds; each fixes start, split, participants and batches", (0,)),
    rounds=("communication rounds T", 25, 2),
    source=("0: a digit and an item, 2: pairs of scikit-learn's digits", 0, 2),
    clients=("clients N", 100, 6),
    participants=("clients a round", 5, 1),
    local_steps=("local steps E, a minibatch each", 10, 2),
    batch=("rows of a client's minibatch", 128, 8),
    alpha=("concentration of the Dirichlet split", 0.3),
    pictures=("0: all training pictures; else the first so many", 0, 600),
    test_pictures=("0: all test pictures; else the first so many", 5000, 100),
)

STUDY = Study(
    name="cmoo_many",
    title="Many objectives",
    paper="C",
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    watch={
        "*": (
            HealthCheck("loss"),
            HealthCheck("loss_*"),
            HealthCheck("accuracy", chance=lambda c: c["problem"]["majority"]),
        ),
    },
    tolerances={"*": Tolerance(rounds=1)},
    at_paper={"rounds": 200, "participants": 10, "seeds": (0, 1, 2)},
    **PARAMETERS,
)
