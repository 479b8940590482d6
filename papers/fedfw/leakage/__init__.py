"""Study of FedFW's Figure 1: what a message gives away of a client's picture."""

from __future__ import annotations

from functools import partial
from typing import Any

from fedlib.sets import Ball, Blocks, L1Ball
from papers.fedfw.leakage import claims, figures
from papers.fedfw.leakage.attacks import Attacker, Reader, Shown
from papers.fedfw.leakage.gradients import Oracle, SmoothL1, Whole
from papers.fedfw.leakage.numbers import derive
from papers.fedfw.leakage.problem import DATA, Network, leak_problem
from papers.kit.store import Spec
from papers.kit.study import Params, Study

__all__ = ["STUDY", "network", "specs"]

PARAMETERS = {
    "seeds": "seeds; each fixes picture, network and dummies",
    "steps": "steps of L-BFGS, of up to 20 inner iterations each",
    "data": "data sets",
    "networks": "networks: one hidden layer of sigmoids, and a LeNet without pooling",
    "hidden": "hidden cells of the mlp",
    "radius": "radius of the balls",
    "sharpness": "of the softened arg max that the attacker of l1 messages uses",
}
FULL: Params = {
    "seeds": (0, 1, 2, 3, 4, 5, 6, 7, 8, 9),
    "steps": 100,
    "data": ("mnist", "cifar10"),
    "networks": ("mlp", "lenet"),
    "hidden": 32,
    "radius": 10.0,
    "sharpness": 20.0,
}
QUICK: Params = {**FULL, "seeds": (0, 1), "steps": 4, "data": ("digits",)}


def network(name: str, kind: str, hidden: int) -> Network:
    """The network for a data set."""
    return Network(kind, 3 if name == "cifar10" else 1, DATA[name][1], hidden)


def specs(p: Params) -> dict[str, Spec]:
    """All attacks, `DATA_NETWORK_SIGNAL`; the readings, `DATA_read_SIGNAL`; the pictures."""
    found: dict[str, Spec] = {}
    seeds, radius = tuple(p["seeds"]), float(p["radius"])
    ball, cross = Oracle(Ball(radius)), Oracle(L1Ball(radius))
    for name in p["data"]:
        for kind in p["networks"]:
            net = network(name, kind, p["hidden"])
            task = partial(leak_problem, name=name, network=net)
            tensors = Oracle(Blocks.of_shapes(net.shapes(), Ball(radius)))
            soft = SmoothL1(radius, float(p["sharpness"]))
            attacks: dict[str, Any] = {
                "gradient": Attacker(net, Whole(), None, p["steps"]),
                "l2": Attacker(net, ball, None, p["steps"]),
                "tensors": Attacker(net, tensors, None, p["steps"]),
                "l1": Attacker(net, cross, None, p["steps"]),
                "soft": Attacker(net, cross, soft, p["steps"]),
            }
            for signal, attacker in attacks.items():
                keep = ("psnr", "cosine", "mismatch", "final_w")
                spec = Spec(attacker, task, p["steps"], seeds, 1, keep)
                found[f"{name}_{kind}_{signal}"] = spec
            if kind == "mlp":
                sent: dict[str, Any] = {
                    "gradient": Whole(),
                    "l2": ball,
                    "tensors": tensors,
                    "l1": cross,
                }
                for signal, what in sent.items():
                    keep = ("psnr", "cosine", "silent", "final_w")
                    found[f"{name}_read_{signal}"] = Spec(
                        Reader(net, what), task, 1, seeds, 1, keep
                    )
        task = partial(leak_problem, name=name, network=network(name, "mlp", p["hidden"]))
        found[f"{name}_shown"] = Spec(Shown(), task, 1, seeds, 1, ("psnr", "final_w"))
    return found


STUDY = Study(
    name="fw_leakage",
    title="Leakage from gradients and from oracle answers",
    paper="D",
    data=("mnist", "cifar10"),
    profiles={"quick": QUICK, "full": FULL},
    parameters=PARAMETERS,
    specs=specs,
    derive=derive,
    claims=claims.CLAIMS,
    figures=figures.FIGURES,
)
