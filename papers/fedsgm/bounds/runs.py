"""The runs of the study on bounds: every theorem along T, and the hard instance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import sqrt
from typing import Any

from fedlib.algorithms.fedsgm import FedSGM
from fedlib.compress import RandK, TopK
from fedlib.core import Problem, Trace
from fedlib.steps import Hard, Soft
from papers.fedsgm.bounds.methods import (
    BATCH,
    CLIENTS,
    DELTA,
    DIM,
    METHODS,
    RHO,
    RHO_HAT,
    hard_rate,
    weak_multiplier,
)
from papers.fedsgm.problems.staircase import staircase
from papers.fedsgm.problems.weakly_convex import value_spread
from papers.fedsgm.theory import Rate, Setting
from papers.kit.store import Spec
from papers.kit.study import Params

SHORT = ("f_gap", "g")


@dataclass(frozen=True)
class Plan:
    """One run with the promise that it is held against."""

    spec: Spec
    rate: Rate
    D: float
    multiplier: float = 0.0  # Lemma 10's Lambda, for weakly convex f

    @property
    def stationarity(self) -> float:
        """What F Theorem 10 promises of the mean distance to the prox points."""
        return sqrt((1 + self.multiplier) * self.rate.accuracy / (RHO_HAT - 2 * RHO))


def plan(name: str, version: str, p: Params, **changes: Any) -> Plan:
    """The run that a theorem prescribes, at the study's parameters with some changed.

    `threshold` and `step` multiply what the theorem prescribes.
    """
    method, now = METHODS[name], {**p, **changes}
    seeds, dim = now["seeds"], 2 if name == "weak" else DIM
    participants = now["participants"] if method.sampled else CLIENTS
    up, down = float(now["up"]), float(now["down"])
    s = Setting(
        D=method.D,
        G=1.0,
        E=now["local_steps"],
        T=now["rounds"],
        N=CLIENTS,
        n=participants,
        q=TopK(up).contraction(dim) or 1.0 if method.uplink == "topk" else 1.0,
        q0=TopK(down).contraction(dim) or 1.0 if method.uplink == "topk" else 1.0,
        qu=RandK(up).variance(dim) or 0.0 if method.uplink == "randk" else 0.0,
        sigma=steady(max(value_spread(method.problem(s)) for s in seeds)),
        delta=DELTA,
    )
    rate = method.rate(s, version)
    extras: dict[str, Any] = {}
    if method.uplink == "topk":
        extras = {"uplink": TopK(up), "downlink": TopK(down)}
    elif method.uplink == "randk":
        extras = {"uplink": RandK(up), "error_feedback": False}
    if method.stochastic:
        extras |= {"batch_size": BATCH, "value_batch_size": BATCH}
    algorithm = FedSGM(
        lr=rate.lr * now.get("step", 1.0),
        local_steps=s.E,
        participants=participants,
        tolerance=rate.tolerance * now.get("threshold", 1.0),
        switch=Hard() if rate.beta == float("inf") else Soft(rate.beta),
        resample_for_update=participants < CLIENTS,
        **extras,
    )
    looks, keep = (20, ("g", "w1", "w2")) if name == "weak" else (10, SHORT)
    spec = Spec(algorithm, method.problem, s.T, seeds, max(1, s.T // looks), keep)
    return Plan(spec, rate, method.D, weak_multiplier(s) if name == "weak" else 0.0)


def steady(x: float) -> float:
    """Ten digits, so that a parameter is the same on every machine: sums differ in the last bit."""
    return float(f"{x:.10g}")


def stairs(rounds: int, local_steps: int, version: str) -> Plan:
    """The staircase with as many coordinates as there are steps in the run."""
    s = Setting(D=1.0, G=1.0, E=local_steps, T=rounds)
    rate = hard_rate(s, version)
    algorithm = FedSGM(
        lr=rate.lr, local_steps=local_steps, participants=1, tolerance=rate.tolerance
    )
    spec = Spec(algorithm, partial(stair, rounds * local_steps), rounds, (0,), rounds, SHORT)
    return Plan(spec, rate, 1.0)


def stair(dim: int, seed: int) -> Problem:  # noqa: ARG001 - nothing is random
    return staircase(dim)


def again(name: str, trace: Trace) -> Plan:
    """The plan of a stored run, from its name and its configuration."""
    method, version, _ = parts(name)
    algorithm = trace.config["algorithm"]
    now = {
        "seeds": trace.seeds,
        "rounds": trace.config["rounds"],
        "local_steps": algorithm["local_steps"],
        "participants": algorithm["participants"],
        "up": algorithm["uplink"].get("fraction", 1.0),
        "down": algorithm["downlink"].get("fraction", 1.0),
    }
    if method == "stairs":
        return stairs(now["rounds"], now["local_steps"], version)
    if version in ("tenth", "scaled"):
        version = "printed"
    return plan(method, version, now)


def parts(name: str) -> tuple[str, str, str]:
    """Method, version and setting of a run's name."""
    rest, setting = name.rsplit("_", 1)
    method, version = rest.rsplit("_", 1)
    return method, version, setting


def plans(p: Params) -> dict[str, Plan]:
    """All runs by name, `METHOD_VERSION_SETTING`; the setting is what differs: `T300`, `E5`.

    Version "tenth" has the printed step size and a tenth of the printed threshold, "scaled" any
    multiples of both, `x0.1s3`.
    """
    found: dict[str, Plan] = {}
    for name, method in METHODS.items():
        for version in method.versions:
            for T in p["horizons"]:
                found[f"{name}_{version}_T{T}"] = plan(name, version, p, rounds=T)
    for T in p["horizons"]:
        found[f"hard_tenth_T{T}"] = plan("hard", "printed", p, rounds=T, threshold=0.1)
    for k in p["step_factors"]:
        for x in p["threshold_factors"]:
            scaled = plan("hard", "printed", p, threshold=x, step=k)
            found[f"hard_scaled_x{x:g}s{k:g}"] = scaled
    for version in METHODS["hard"].versions:
        for T in p["stairs"]:
            found[f"stairs_{version}_T{T}"] = stairs(T, 1, version)
        for E in p["stairs_local_steps"]:
            found[f"stairs_{version}_E{E}"] = stairs(max(p["stairs"]) // E, E, version)
    return found
