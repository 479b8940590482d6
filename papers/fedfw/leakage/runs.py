"""The attacks of the study of leakage, with the labels by which everything finds them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from fedlib.sets import Ball, Blocks, L1Ball
from papers.fedfw.leakage.attacks import Attacker, Oracle, SmoothL1, Whole
from papers.fedfw.leakage.problem import DATA, Network, leak_problem
from papers.kit.quantities import Defaults, Label, by_name, completed
from papers.kit.store import Spec
from papers.kit.study import Params

KEEP = ("psnr", "cosine", "mismatch", "final_w")

#: The labels of runs; the fresh seeds judge the claim.
DEFAULTS: Defaults = {"draw": "shown", "data": None, "network": None, "signal": None}


def specs(p: Params) -> dict[str, Spec]:
    """All runs by the names that their labels give."""
    return by_name([*runs(p)], DEFAULTS)


def runs(p: Params) -> Iterator[Spec]:
    """All attacks on all networks and data sets, with the seeds that are shown and fresh ones."""
    steps = p["steps"]
    for data in p["data"]:
        for kind in p["networks"]:
            net = network(data, kind, p["hidden"])
            problem = partial(leak_problem, name=data, network=net)
            for signal, attacker in attackers(net, p).items():
                labels: dict[str, Label] = {"data": data, "network": kind, "signal": signal}
                shown = completed(labels, DEFAULTS)
                fresh = {**shown, "draw": "fresh"}
                yield Spec(
                    attacker,
                    problem,
                    steps,
                    p["seeds"],
                    1,
                    KEEP,
                    labels=shown,
                )
                yield Spec(
                    attacker,
                    problem,
                    steps,
                    p["fresh"],
                    steps,
                    ("psnr",),
                    labels=fresh,
                )


def network(data: str, kind: str, hidden: int) -> Network:
    """A network for the pictures of a data set."""
    channels = 3 if data == "cifar10" else 1
    _, side = DATA[data]
    return Network(kind, channels, side, hidden)


def attackers(net: Network, p: Params) -> dict[str, Attacker]:
    """What is sent -> who attacks it."""
    radius = float(p["radius"])
    cross = Oracle(L1Ball(radius))
    signals: dict[str, Any] = {
        "gradient": Whole(),
        "l2": Oracle(Ball(radius)),
        "tensors": Oracle(Blocks.of_shapes(net.shapes(), Ball(radius))),
        "l1": cross,
    }
    attacks = {name: Attacker(net, signal, None, p["steps"]) for name, signal in signals.items()}
    soft = SmoothL1(radius, float(p["sharpness"]))
    return {**attacks, "soft": Attacker(net, cross, soft, p["steps"])}
