"""The derived numbers of the study of longer SSCA runs."""

from __future__ import annotations

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.kit.numbers import Number, mean
from papers.kit.study import Params, Traces
from papers.ssca.long.claims import THIRDS

METRICS = ("cost", "accuracy", "norm", "cost_all", "gradient")
REPORTS = ("nu", "slack", "penalty")
EARLY = 100  # the paper's number of rounds


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Where every run ends, violations, slacks and gradients."""
    numbers: dict[str, Number] = {}
    for name, trace in traces.items():
        found = {k: mean(v[:, -1]) for k, v in trace.metrics.items() if k in METRICS}
        if "gradient" in trace.metrics:
            found |= stationarity(trace)
        if name.startswith("limit_"):
            found |= constraint(trace, p)
        numbers |= {f"{name}.{k}": v for k, v in found.items()}
    return numbers


def at(trace: Trace, metric: str, round_: int) -> Array:
    """Per seed the metric at the last evaluation up to a round."""
    column = int(np.searchsorted(trace.rounds, round_, side="right")) - 1
    return np.asarray(trace.metrics[metric][:, column])


def stationarity(trace: Trace) -> dict[str, Number]:
    """The gradient at the end as a share of that at the start, and how it falls on the way.

    `gradient_first`, `_middle`, `_last` are its means over the thirds of the run, without the
    start; `fall` is the slope of log |gradient| over log t from T / 2 on, at most two points apart.
    """
    g, t = trace.metrics["gradient"], trace.rounds
    late = t >= t[-1] / 2
    x = np.log(t[late])
    x = x - x.mean()
    y = np.log(g[:, late])
    third = np.ceil(3 * t / t[-1])  # 1, 2, 3; 0 is the start
    found = {
        f"gradient_{name}": mean(g[:, third == i].mean(1))
        for i, name in enumerate(THIRDS, 1)
        if (third == i).any()
    }
    found["gradient_share"] = mean(g[:, -1] / g[:, 0])
    return found | {"fall": mean((y @ x) / (x @ x))}


def constraint(trace: Trace, p: Params) -> dict[str, Number]:
    """How far F is above U on all pictures; slack, multiplier and penalty at both ends."""
    method = trace.config["algorithm"]["method"]
    level, few = method["levels"], min(p["patience"], p["rounds"])
    info = trace.info
    found = {
        "violation_end": mean(trace.metrics["cost_all"][:, -1] - level),
        "violation_patience": mean(at(trace, "cost_all", few) - level),
        "slack_first": mean(info["slack"][:, :few].mean(1)),
        "slack_end": mean(info["slack"][:, -few:].mean(1)),
        "nu_end": mean(info["nu"][:, -few:].mean(1)),
    }
    if "penalty" in info:
        found["penalty_end"] = mean(info["penalty"][:, -1])
    if p["rounds"] > EARLY:
        found["violation_early"] = mean(at(trace, "cost_all", EARLY) - level)
    return found
