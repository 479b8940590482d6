"""The quantities of the study of longer SSCA runs."""

from functools import partial

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.kit import quantities as kit
from papers.kit.numbers import Number, mean
from papers.kit.quantities import Quantities
from papers.kit.study import Params, Traces
from papers.ssca.long.claims import THIRDS
from papers.ssca.long.runs import DEFAULTS

METRICS = ("cost", "accuracy", "norm", "cost_all", "gradient")
EARLY = 100  # the paper's number of rounds


def derive(traces: Traces, p: Params) -> Quantities:
    """Where every run ends, violations, slacks and gradients."""
    return Quantities.of([kit.of_runs(traces, partial(measures, p=p))], DEFAULTS)


def measures(trace: Trace, p: Params) -> dict[str, Number]:
    """What a run is measured by."""
    curves = trace.metrics
    ends = {name: mean(curves[name][:, -1]) for name in METRICS if name in curves}
    if "gradient" in curves:
        return ends | stationarity(trace)
    return ends | constraint(trace, p)


def stationarity(trace: Trace) -> dict[str, Number]:
    """The gradient at the end as a share of that at the start, and how it falls on the way.

    `gradient_first`, `_middle`, `_last` are its means over the thirds of the run, without the
    start; `fall` is the slope of log |gradient| over log t from T / 2 on, at most two points apart.
    """
    gradient = trace.metrics["gradient"]
    rounds = trace.rounds
    numbers = {}
    third = np.ceil(3 * rounds / rounds[-1])  # 1, 2, 3; 0 is the start
    for number, name in enumerate(THIRDS, 1):
        if (third == number).any():
            numbers[f"gradient_{name}"] = mean(gradient[:, third == number].mean(1))
    late = rounds >= rounds[-1] / 2
    log_rounds = np.log(rounds[late])
    x = log_rounds - log_rounds.mean()
    numbers["gradient_share"] = mean(gradient[:, -1] / gradient[:, 0])
    numbers["fall"] = mean((np.log(gradient[:, late]) @ x) / (x @ x))
    return numbers


def constraint(trace: Trace, p: Params) -> dict[str, Number]:
    """How far F is above U on all pictures; slack, multiplier and penalty at both ends."""
    level = trace.config["algorithm"]["method"]["levels"]
    patience = min(p["patience"], p["rounds"])
    slack = trace.info["slack"]
    numbers = {
        "violation_end": mean(trace.metrics["cost_all"][:, -1] - level),
        "violation_patience": mean(cost_at(trace, patience) - level),
        "slack_first": mean(slack[:, :patience].mean(1)),
        "slack_end": mean(slack[:, -patience:].mean(1)),
        "nu_end": mean(trace.info["nu"][:, -patience:].mean(1)),
    }
    if "penalty" in trace.info:
        numbers["penalty_end"] = mean(trace.info["penalty"][:, -1])
    if p["rounds"] > EARLY:
        numbers["violation_early"] = mean(cost_at(trace, EARLY) - level)
    return numbers


def cost_at(trace: Trace, end: int) -> Array:
    """Per seed the whole cost at the last evaluation up to a round."""
    column = int(np.searchsorted(trace.rounds, end, side="right")) - 1
    return np.asarray(trace.metrics["cost_all"][:, column])
