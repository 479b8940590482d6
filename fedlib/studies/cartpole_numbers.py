"""Derived numbers of study cartpole: what is read off the evaluations of every run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedlib.numbers import Number, mean, ratio
from fedlib.studies.base import Params, Traces
from fedlib.trace import Trace

__all__ = ["BUDGET", "SUCCESS", "around", "derive", "first_success", "succeeds"]

Array = NDArray[np.float64]

BUDGET = 30.0  # mean of the clients' budgets, the line drawn in the paper
SUCCESS = 190.0  # reward from which a run has learned to balance
WINDOW = 2  # evaluations before and after the round that is reported
ENDINGS = ("position", "angle", "time")


def around(trace: Trace, name: str, round_: int) -> Array:
    """Per seed the mean of a metric over the five evaluations around a round (fewer at the end)."""
    at = int(np.abs(trace.rounds - round_).argmin())
    return np.asarray(trace.metrics[name][:, max(0, at - WINDOW) : at + WINDOW + 1].mean(1))


def last(trace: Trace, name: str) -> Array:
    """Per seed the mean of a metric over the last five evaluations."""
    return np.asarray(trace.metrics[name][:, -2 * WINDOW - 1 :].mean(1))


def succeeds(trace: Trace) -> Array:
    """Per seed 1 if it ends with a reward of at least 190 at a cost of at most 30, else 0."""
    good = (last(trace, "reward") >= SUCCESS) & (last(trace, "cost") <= BUDGET)
    return np.asarray(good, float)


def first_success(trace: Trace) -> Array:
    """Per seed the first evaluated round with reward >= 190 and cost <= 30; T if there is none."""
    good = (trace.metrics["reward"] >= SUCCESS) & (trace.metrics["cost"] <= BUDGET)
    return np.asarray(np.where(good.any(1), trace.rounds[good.argmax(1)], trace.rounds[-1]), float)


def first_balanced(trace: Trace) -> Array:
    """Per seed the first evaluated round with reward >= 190, whatever the cost; T if none."""
    good = trace.metrics["reward"] >= SUCCESS
    return np.asarray(np.where(good.any(1), trace.rounds[good.argmax(1)], trace.rounds[-1]), float)


def violating(trace: Trace) -> Array:
    """Per seed the share of the second half's rounds whose estimate of g is positive."""
    g = trace.info["g_hat"]
    return np.asarray((g[:, g.shape[1] // 2 :] > 0).mean(1))


def scatter(trace: Trace, name: str) -> Array:
    """Per seed the mean absolute change of a metric between evaluations in the second half."""
    x = trace.metrics[name]
    return np.asarray(np.abs(np.diff(x[:, x.shape[1] // 2 :], axis=1)).mean(1))


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Rewards and costs around rounds 100, 300 and 500, successes, violations, endings; ratios."""
    numbers: dict[str, Number] = {}
    for name, trace in traces.items():
        numbers |= {f"{name}.{k}": v for k, v in _measures(trace).items()}
    for a, b in (("soft_top0.5", "hard_top0.5"), ("central_fine_soft", "central_fine_hard")):
        numbers[f"{a}/{b}.first"] = ratio(first_success(traces[a]), first_success(traces[b]))
        numbers[f"{a}/{b}.area"] = ratio(area(traces[a]), area(traces[b]))
    for at in (100, 250, 500):
        federated, central = (
            around(traces[n], "reward", at) for n in ("hard_top0.5", "central_fine_hard")
        )
        numbers[f"hard_top0.5/central_fine_hard.reward{at}"] = ratio(federated, central)
    few, all_ = (traces[f"half_n{n}"] for n in _ends(p["sweep_participants"]))
    numbers["few/all.area"] = ratio(area(few), area(all_))
    numbers["few/all.cost_scatter"] = ratio(scatter(few, "cost"), scatter(all_, "cost"))
    half, none = traces["soft_top0.5"], traces["soft_none"]
    numbers["top0.5/none.area"] = ratio(area(half), area(none))
    numbers["soft_level.predicted"] = mean([BUDGET + p["tolerance"] - 0.5 / p["beta"]])
    return numbers


def area(trace: Trace) -> Array:
    """Per seed the mean reward over all evaluations: larger is faster."""
    return np.asarray(trace.metrics["reward"].mean(1))


def _ends(values: tuple[int, ...]) -> tuple[int, int]:
    return min(values), max(values)


def _measures(trace: Trace) -> dict[str, Number]:
    found = {
        "reward": mean(last(trace, "reward")),
        "cost": mean(last(trace, "cost")),
        "success": mean(succeeds(trace)),
        "first": mean(first_success(trace), "rounds"),
        "balanced": mean(first_balanced(trace), "rounds"),
        "best": mean(trace.metrics["reward"].max(1)),
        "area": mean(area(trace)),
        "violating": mean(violating(trace)),
        "cost_scatter": mean(scatter(trace, "cost")),
        "sigma": mean(trace.info["sigma"][:, trace.info["sigma"].shape[1] // 2 :].mean(1)),
    }
    for at in (100, 300, 500):
        if trace.rounds[-1] >= at or at == 100:
            found[f"reward{at}"] = mean(around(trace, "reward", at))
            found[f"cost{at}"] = mean(around(trace, "cost", at))
    for ending in ENDINGS:
        found[f"by_{ending}"] = mean(last(trace, ending))
    return found
