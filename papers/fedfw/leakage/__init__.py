"""Study of FedFW's Figure 1: what a message gives away of a client's picture."""

from __future__ import annotations

from functools import partial
from typing import Any

from fedlib.sets import Ball, Blocks, L1Ball
from papers.fedfw.leakage import claims, figures
from papers.fedfw.leakage.attacks import Attacker
from papers.fedfw.leakage.gradients import Oracle, SmoothL1, Whole
from papers.fedfw.leakage.numbers import derive
from papers.fedfw.leakage.problem import DATA, Network, leak_problem
from papers.kit.health import HealthCheck, HealthChecks
from papers.kit.store import Spec
from papers.kit.study import Params, Study, parameters
from papers.kit.tolerance import Tolerance

__all__ = ["STUDY", "network", "specs"]

PARAMETERS = parameters(
    seeds=("seeds; each fixes picture, network and dummies", tuple(range(10)), (0, 1)),
    steps=("steps of L-BFGS, of up to 20 inner iterations each", 100, 4),
    data=("data sets", ("mnist", "cifar10"), ("digits",)),
    networks=(
        "networks: one hidden layer of sigmoids, and a LeNet without pooling",
        ("mlp", "lenet"),
    ),
    hidden=("hidden cells of the mlp", 32),
    radius=("radius of the balls", 10.0),
    sharpness=("of the softened arg max that the attacker of l1 messages uses", 20.0),
)


def network(name: str, kind: str, hidden: int) -> Network:
    return Network(kind, 3 if name == "cifar10" else 1, DATA[name][1], hidden)


def specs(p: Params) -> dict[str, Spec]:
    """All attacks, `DATA_NETWORK_SIGNAL`."""
    found: dict[str, Spec] = {}
    seeds, radius, steps = tuple(p["seeds"]), float(p["radius"]), p["steps"]
    whole, ball, cross = Whole(), Oracle(Ball(radius)), Oracle(L1Ball(radius))
    soft = SmoothL1(radius, float(p["sharpness"]))
    for name in p["data"]:
        for kind in p["networks"]:
            net = network(name, kind, p["hidden"])
            task = partial(leak_problem, name=name, network=net)
            tensors = Oracle(Blocks.of_shapes(net.shapes(), Ball(radius)))
            sent: dict[str, Any] = {"gradient": whole, "l2": ball, "tensors": tensors, "l1": cross}
            attacks = {k: Attacker(net, what, None, steps) for k, what in sent.items()}
            attacks["soft"] = Attacker(net, cross, soft, steps)
            keep = ("psnr", "cosine", "mismatch", "final_w")
            for signal, attacker in attacks.items():
                found[f"{name}_{kind}_{signal}"] = Spec(attacker, task, steps, seeds, 1, keep)
    return found


WATCH: HealthChecks = {
    "*": HealthCheck("psnr", exact="the attacker searches with exact gradients until none is left"),
}


STUDY = Study(
    name="fw_leakage",
    title="Leakage from gradients and from oracle answers",
    paper="D",
    data=("mnist", "cifar10"),
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    figures=figures.FIGURES,
    watch=WATCH,
    tolerances={"*": Tolerance(rounds=1)},
    **PARAMETERS,
)
