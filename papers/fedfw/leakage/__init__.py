"""Study of FedFW's Figure 1: what a message gives away of a client's picture."""

from __future__ import annotations

from papers.fedfw.leakage import claims
from papers.fedfw.leakage.quantities import derive
from papers.fedfw.leakage.runs import specs
from papers.kit.health import HealthCheck
from papers.kit.parameters import parameters
from papers.kit.study import Study, Tolerance

SEARCH = "the attacker searches with exact gradients until none is left"

PARAMETERS = parameters(
    seeds=("seeds; each fixes picture, network and dummies", tuple(range(10)), (0, 1)),
    fresh=("seeds that judge claim C12 alone", tuple(range(100, 152)), (100,)),
    steps=("steps of L-BFGS, of up to 20 inner iterations each", 100, 4),
    data=("data sets", ("mnist", "cifar10"), ("digits",)),
    networks=(
        "networks: one hidden layer of sigmoids, and a LeNet without pooling",
        ("mlp", "lenet"),
    ),
    hidden=("hidden cells of the mlp", 32),
    radius=("radius of the balls", 10.0),
    sharpness=("sharpness of the softened arg max with which l1 messages are attacked", 20.0),
)

STUDY = Study(
    name="fw_leakage",
    title="Leakage from gradients and from oracle answers",
    paper="D",
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    watch={"*": HealthCheck("psnr", exact=SEARCH)},
    tolerances={"*": Tolerance(rounds=1, strays=1)},
    **PARAMETERS,
)
