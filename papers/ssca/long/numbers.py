"""The derived numbers of the study of longer SSCA runs."""

from __future__ import annotations

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.kit.numbers import Number, exact, mean
from papers.kit.study import Params, Traces
from papers.ssca.long.claims import THIRDS

METRICS = ("cost", "accuracy", "norm", "cost_all", "gradient")
REPORTS = ("nu", "slack", "penalty")
EARLY = 100  # the paper's number of rounds


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Where every run ends, differences by seed, violations, slacks and gradients."""
    numbers: dict[str, Number] = {}
    for name, trace in traces.items():
        found = {k: mean(v[:, -1]) for k, v in trace.metrics.items() if k in METRICS}
        if p["rounds"] > EARLY:
            found["early_cost"] = mean(at(trace, "cost", EARLY))
        if "gradient" in trace.metrics:
            found |= stationarity(trace)
        if name.startswith("limit_"):
            found |= constraint(trace, p)
        numbers |= {f"{name}.{k}": v for k, v in found.items()}
    for batch in p["batches"]:
        numbers |= compared(traces, batch)
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


def best_sgd(traces: Traces, batch: int) -> str:
    runs = [n for n in traces if n.startswith("sgd_") and n.endswith(f"_B{batch}")]
    return min(runs, key=lambda n: float(traces[n].metrics["cost"][:, -1].mean()))


def compared(traces: Traces, batch: int) -> dict[str, Number]:
    """Differences by seed in the final cost, of SSCA's variants and of them to the best SGD."""
    best = best_sgd(traces, batch)
    rule = traces[best].config["algorithm"]["lr"]
    found = {f"sgd_B{batch}.{k}": exact(float(rule[k])) for k in ("scale", "exponent")}
    plain = f"ssca_paper_B{batch}"
    pairs = {
        f"{name}_vs_sgd": (name, best)
        for name in (plain, f"ssca_paper_debiased_B{batch}", f"ssca_valid_B{batch}")
    }
    pairs[f"debiased_vs_plain_B{batch}"] = f"ssca_paper_debiased_B{batch}", plain
    pairs[f"valid_vs_paper_B{batch}"] = f"ssca_valid_B{batch}", plain
    for name, (a, b) in pairs.items():
        for metric in ("cost", "accuracy"):
            gap = traces[a].metrics[metric][:, -1] - traces[b].metrics[metric][:, -1]
            found[f"{name}.{metric}"] = mean(gap)
    return found
