"""The runs of the study on bounds: every theorem along T, and the hard instance."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import inf, sqrt
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
    Method,
    hard_rate,
    weak_multiplier,
)
from papers.fedsgm.problems.staircase import staircase
from papers.fedsgm.problems.weakly_convex import value_spread
from papers.fedsgm.theory import Rate, Setting
from papers.kit.quantities import Defaults, Labels, by_name, labels_of
from papers.kit.store import Spec
from papers.kit.study import Params

SHORT = ("f_gap", "g")
TENTH = 0.1  # of the threshold, along T
#: The labels of runs, each with its usual value; None where there is none. `threshold` and `step`
#: multiply what the theorem prescribes; `T` and `E` are there where they are varied.
DEFAULTS: Defaults = {
    "method": None,
    "version": None,
    "T": None,
    "E": None,
    "threshold": 1.0,
    "step": 1.0,
}


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


def specs(p: Params) -> dict[str, Spec]:
    """Every theorem along T, one with other thresholds and steps, and the hard instance."""
    return by_name([planned.spec for planned in plans(p)], DEFAULTS)


def plans(p: Params) -> Iterator[Plan]:
    """All runs."""
    for name, method in METHODS.items():
        for version in method.versions:
            for T in p["horizons"]:
                yield plan(p, {"method": name, "version": version, "T": T})
    printed: Labels = {"method": "hard", "version": "printed"}
    for T in p["horizons"]:
        yield plan(p, {**printed, "T": T, "threshold": TENTH})
    for step in p["step_factors"]:
        for threshold in p["threshold_factors"]:
            yield plan(p, {**printed, "threshold": threshold, "step": step})
    for version in METHODS["hard"].versions:
        labels: Labels = {"method": "stairs", "version": version}
        for T in p["stairs"]:
            yield stairs({**labels, "T": T}, T, 1)
        for E in p["stairs_local_steps"]:
            yield stairs({**labels, "E": E}, max(p["stairs"]) // E, E)


def plan(p: Params, labels: Mapping[str, Any]) -> Plan:
    """The run that a theorem prescribes, with the multiples that its labels have."""
    name = labels["method"]
    method = METHODS[name]
    weak = name == "weak"
    setting = setting_of(method, p, labels.get("T", p["rounds"]), 2 if weak else DIM)
    rate = method.rate(setting, labels["version"])
    algorithm = FedSGM(
        lr=rate.lr * labels.get("step", 1.0),
        local_steps=setting.E,
        participants=setting.participants,
        tolerance=rate.tolerance * labels.get("threshold", 1.0),
        switch=Hard() if rate.beta == inf else Soft(rate.beta),
        resample_for_update=setting.participants < CLIENTS,
        **messages(method, p),
    )
    looks = 20 if weak else 10
    keep = ("g", "w1", "w2") if weak else SHORT
    interval = max(1, setting.T // looks)
    spec = Spec(
        algorithm,
        method.problem,
        setting.T,
        p["seeds"],
        interval,
        keep,
        labels=labels,
    )
    return Plan(spec, rate, method.D, weak_multiplier(setting) if weak else 0.0)


def setting_of(method: Method, p: Params, rounds: int, dim: int) -> Setting:
    """What a theorem is applied to."""
    up = TopK(p["up"])
    down = TopK(p["down"])
    both_ways = method.uplink == "topk"
    unbiased = RandK(p["up"]).variance(dim) if method.uplink == "randk" else None
    return Setting(
        D=method.D,
        G=1.0,
        E=p["local_steps"],
        T=rounds,
        N=CLIENTS,
        n=p["participants"] if method.sampled else CLIENTS,
        q=(up.contraction(dim) if both_ways else None) or 1.0,
        q0=(down.contraction(dim) if both_ways else None) or 1.0,
        qu=unbiased or 0.0,
        sigma=steady(max(value_spread(method.problem(seed)) for seed in p["seeds"])),
        delta=DELTA,
    )


def messages(method: Method, p: Params) -> dict[str, Any]:
    """What the algorithm of a theorem has for its messages and minibatches."""
    fields: dict[str, Any] = {}
    if method.uplink == "topk":
        fields = {"uplink": TopK(p["up"]), "downlink": TopK(p["down"])}
    elif method.uplink == "randk":
        fields = {"uplink": RandK(p["up"]), "error_feedback": False}
    if method.stochastic:
        fields |= {"batch_size": BATCH, "value_batch_size": BATCH}
    return fields


def steady(x: float) -> float:
    """Ten digits, so that a parameter is the same on every machine: sums differ in the last bit."""
    return float(f"{x:.10g}")


def stairs(labels: Mapping[str, Any], rounds: int, local_steps: int) -> Plan:
    """The staircase with as many coordinates as there are steps in the run."""
    setting = Setting(D=1.0, G=1.0, E=local_steps, T=rounds)
    rate = hard_rate(setting, labels["version"])
    algorithm = FedSGM(
        lr=rate.lr,
        local_steps=local_steps,
        participants=1,
        tolerance=rate.tolerance,
    )
    task = partial(stair, rounds * local_steps)
    spec = Spec(algorithm, task, rounds, (0,), rounds, SHORT)
    return Plan(replace(spec, labels=labels), rate, 1.0)


def stair(dim: int, seed: int) -> Problem:  # noqa: ARG001 - nothing is random
    return staircase(dim)


def again(trace: Trace) -> Plan:
    """The plan of a stored run, from its labels and its configuration."""
    labels = labels_of(trace)
    algorithm = trace.config["algorithm"]
    rounds = trace.config["rounds"]
    if labels["method"] == "stairs":
        return stairs(labels, rounds, algorithm["local_steps"])
    p = {
        "seeds": trace.seeds,
        "rounds": rounds,
        "local_steps": algorithm["local_steps"],
        "participants": algorithm["participants"],
        "up": algorithm["uplink"].get("fraction", 1.0),
        "down": algorithm["downlink"].get("fraction", 1.0),
    }
    return plan(p, labels)
