"""The quantities of the study of longer SSCA runs."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

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
    measures_of = partial(measures, p=p)
    rows = kit.of_runs(traces, measures_of)
    return Quantities.of([rows], DEFAULTS)


def measures(trace: Trace, p: Params) -> dict[str, Number]:
    """What a run is measured by."""
    ends = {}
    for name in METRICS:
        if name in trace.metrics:
            ends[name] = mean(trace.metrics[name][:, -1])
    if "gradient" in ends:
        return ends | stationarity(trace)
    return ends | constraint(trace, p)


def stationarity(trace: Trace) -> dict[str, Number]:
    """The gradient at the end as a share of that at the start, and how it falls on the way.

    `gradient_first`, `_middle`, `_last` are its means over the thirds of the run, without the
    start; `fall` is the slope of log |gradient| over log t from T / 2 on, at most two points apart.
    """
    gradient = trace.metrics["gradient"]
    rounds = trace.rounds
    late = rounds >= rounds[-1] / 2
    numbers = thirds(gradient, rounds)
    start = gradient[:, 0]
    end = gradient[:, -1]
    numbers["gradient_share"] = mean(end / start)
    numbers["fall"] = mean(log_slope(rounds[late], gradient[:, late]))
    return numbers


def thirds(gradient: Array, rounds: NDArray[np.int64]) -> dict[str, Number]:
    """The means of the gradient over the thirds of the run that have evaluations."""
    numbers = {}
    third = np.ceil(3 * rounds / rounds[-1])  # 1, 2, 3; 0 is the start
    for number, name in enumerate(THIRDS, 1):
        inside = third == number
        if inside.any():
            numbers[f"gradient_{name}"] = mean(gradient[:, inside].mean(1))
    return numbers


def log_slope(rounds: NDArray[np.int64], values: Array) -> Array:
    """Per seed the slope of the logarithm of values against log t: least squares."""
    log_rounds = np.log(rounds)
    x = log_rounds - log_rounds.mean()
    y = np.log(values)
    return np.asarray((y @ x) / (x @ x))


def constraint(trace: Trace, p: Params) -> dict[str, Number]:
    """How far F is above U on all pictures; slack, multiplier and penalty at both ends."""
    level = trace.config["algorithm"]["method"]["levels"]
    rounds = p["rounds"]
    patience = min(p["patience"], rounds)
    slack = trace.info["slack"]
    first_slacks = slack[:, :patience]
    last_slacks = slack[:, -patience:]
    last_multipliers = trace.info["nu"][:, -patience:]
    numbers = {
        "violation_end": mean(trace.metrics["cost_all"][:, -1] - level),
        "violation_patience": mean(cost_at(trace, patience) - level),
        "slack_first": mean(first_slacks.mean(1)),
        "slack_end": mean(last_slacks.mean(1)),
        "nu_end": mean(last_multipliers.mean(1)),
    }
    if "penalty" in trace.info:
        penalty = trace.info["penalty"]
        numbers["penalty_end"] = mean(penalty[:, -1])
    if rounds > EARLY:
        numbers["violation_early"] = mean(cost_at(trace, EARLY) - level)
    return numbers


def cost_at(trace: Trace, end: int) -> Array:
    """Per seed the whole cost at the last evaluation up to a round."""
    evaluations = np.searchsorted(trace.rounds, end, side="right")
    costs = trace.metrics["cost_all"]
    return np.asarray(costs[:, evaluations - 1])
