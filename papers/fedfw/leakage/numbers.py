"""The derived numbers of the study of leakage, and what is checked without a search."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedlib import data
from fedlib.algorithms.fedfw import FedFW
from fedlib.core import Loop, Trace
from fedlib.core.sampling import seeded
from fedlib.core.trace import Array
from fedlib.sets import Ball, L1Ball
from papers.fedfw.feasible_data import constrained_pictures
from papers.fedfw.leakage.attacks import message
from papers.fedfw.leakage.gradients import Oracle, Whole, rebuilt_models
from papers.fedfw.leakage.problem import Network, leak_problem
from papers.kit.numbers import Number, exact, mean, measured
from papers.kit.study import Params, Traces

SIGNALS = ("gradient", "l2", "tensors", "l1", "soft")
CLEAR = 60.0  # dB: an error below a thousandth of the range; eight bits a pixel have 59
SEEN = 25.0  # dB: a picture that one recognizes
REBUILT = 20  # rounds of the run whose models are rebuilt


def places(traces: Mapping[str, Any]) -> list[str]:
    """Data set and network of all attacks, such as `"mnist_lenet"`."""
    return [name.removesuffix("_gradient") for name in traces if attacked(name, "gradient")]


def attacked(name: str, signal: str) -> bool:
    return name.endswith(f"_{signal}") and "_read_" not in name


def capped(x: Array) -> Array:
    """PSNR in dB, where everything above 60 counts as 60: such pictures are equal to the eye."""
    return np.minimum(x, CLEAR)


def derive(traces: Traces, _: Params) -> dict[str, Number]:
    """Where every attack ends, differences by seed, the readings, and the checks.

    Keys are `run.measure`; `place.a_minus_b` is the difference of two signals' PSNR, each capped at
    60 dB, by seed, where `l1` is for every seed the better of the exact and the softened attack;
    `places.a_minus_b` is its mean over data sets and networks.
    """
    numbers: dict[str, Number] = {}
    for name, trace in traces.items():
        numbers |= measured({name: trace}, measures(trace))
    each = {place: apart(traces, place) for place in places(traces)}
    for place, pairs in each.items():
        numbers |= {f"{place}.{k}": mean(x, "dB") for k, x in pairs.items()}
    for k in next(iter(each.values()), {}):
        numbers[f"places.{k}"] = mean(np.mean([pairs[k] for pairs in each.values()], 0), "dB")
    return numbers | checked()


def last(x: Array) -> Array:
    return np.asarray(x[:, -1])


def measures(trace: Trace) -> dict[str, Any]:
    found: dict[str, Any] = {"psnr": (lambda t: last(t.metrics["psnr"]), "dB")}
    if "cosine" in trace.metrics:
        found["cosine"] = lambda t: last(t.metrics["cosine"])
    if "mismatch" in trace.info:
        found |= ATTACK
    if "silent" in trace.info:
        found["silent"] = (lambda t: last(t.info["silent"]) > 0, "%")
    if wall := float(trace.provenance.get("wall_s") or 0):
        found["wall"] = lambda _: exact(wall, "s")
    return found


def first_seen(path: Array) -> Array:
    """Per seed, the first step with 25 dB or more; as many as there are if there is none."""
    good = path >= SEEN
    return np.asarray(np.where(good.any(1), good.argmax(1), path.shape[1] - 1), float)


ATTACK = {
    "start": (lambda t: t.metrics["psnr"][:, 0], "dB"),
    "best": (lambda t: t.metrics["psnr"].max(1), "dB"),
    "shown": (lambda t: capped(last(t.metrics["psnr"])), "dB"),
    "seen": (lambda t: last(t.metrics["psnr"]) >= SEEN, "%"),
    "mismatch": lambda t: last(t.info["mismatch"]),
    "steps": (lambda t: first_seen(t.metrics["psnr"]), "steps"),
}


def apart(traces: Traces, place: str) -> dict[str, Array]:
    end = {s: capped(last(traces[f"{place}_{s}"].metrics["psnr"])) for s in SIGNALS}
    end["l1"] = np.maximum(end["l1"], end["soft"])
    pairs = (("gradient", "l2"), ("gradient", "tensors"), ("l2", "l1"), ("tensors", "l1"))
    return {f"{a}_minus_{b}": end[a] - end[b] for a, b in pairs}


@lru_cache(maxsize=1)
def checked() -> dict[str, Number]:
    """What holds to rounding: the l2 answer is the gradient's direction, and models come back."""
    return {"rescaled.error": mean(rescaled()), "rebuilt.error": exact(rebuilt())}


def rescaled() -> list[float]:
    """On three digits and both networks: the relative distance of -|g| s / r from g, s = lmo(g)."""
    found = []
    for kind in ("lenet", "mlp"):
        for seed in range(3):
            net = Network(kind, 1, 8)
            problem = leak_problem(seed, name="digits", network=net)
            g, s = (message(net, what, problem) for what in (Whole(), Oracle(Ball(10.0))))
            found.append(float((-s * g.norm() / 10 - g).norm() / g.norm()))
    return found


class Tapped(Loop):
    """The plain engine, in which the server writes down what arrives."""

    arrived: tuple[Tensor, ...] = ()

    def ask(self, *arguments: Any, **options: Any) -> Any:
        """As in `Loop`."""
        answer = super().ask(*arguments, **options)
        self.arrived = (*self.arrived, answer[0])
        return answer


def rebuilt() -> float:
    """FedFW on digits in the l1 ball: how far models made from messages are from the clients' own.

    The largest distance over rounds and clients, relative to the radius; messages are decoded from
    the wire format, a position and a sign.
    """
    table = data.digits()
    problem = constrained_pictures(
        table, table, data="digits", clients=5, labels=3, train_rows=200, dtype=torch.float64
    ).within(L1Ball(10.0))
    method, rng = FedFW(0.01), seeded(0, "rounds")
    state = method.init(problem)
    path = [state.x]
    sent: list[Any] = []
    for _ in range(REBUILT):
        engine = Tapped(problem)
        state, _ = method.round(engine, state, method.draw(problem, rng))
        path.append(state.x)
        sent += engine.arrived
    eta = [2 / (t + 1) for t in range(1, REBUILT + 1)]
    models = rebuilt_models(path[0], torch.stack(sent), eta)
    return float((models - torch.stack(path)).norm(dim=-1).max() / 10)
