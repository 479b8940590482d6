"""Derived numbers of study cartpole: what is read off the evaluations of every run."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedsgm.curves import mean_change, second_half
from papers.kit.numbers import Number, exact, measured
from papers.kit.study import Params, Traces

BUDGET = 30.0  # mean of the clients' budgets, the line drawn in the paper
SUCCESS = 190.0  # reward from which a run has learned to balance
WINDOW = 2  # evaluations before and after the round that is reported
PAIRS = (("soft_top0.5", "hard_top0.5"), ("central_fine_soft", "central_fine_hard"))


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    """Rewards and costs around three rounds, successes and violations of every run."""
    numbers = {k: x for name, t in traces.items() for k, x in measures(name, t).items()}
    numbers["control.one"] = exact(1.0)
    return numbers | {"soft_level.predicted": exact(BUDGET + p["tolerance"] - 0.5 / p["beta"])}


def measures(name: str, trace: Trace) -> dict[str, Number]:
    """What is measured of a run; late in rounds it does not have, nothing."""
    found: dict[str, Any] = {
        "reward": partial(last, name="reward"),
        "cost": partial(last, name="cost"),
        "success": succeeds,
        "first": (first_success, "rounds"),
        "area": lambda t: t.metrics["reward"].mean(1),  # larger is faster
        "violating": lambda t: (second_half(t.info["g_hat"]) > 0).mean(1),
        "cost_scatter": lambda t: mean_change(second_half(t.metrics["cost"])),
    }
    for at in (100, 250, 500):
        if trace.rounds[-1] >= at or at == 100:
            for k in ("reward", "cost"):
                found[f"{k}{at}"] = partial(around, name=k, round_=at)
    return measured({name: trace}, found)


def around(trace: Trace, name: str, round_: int) -> Array:
    """Per seed the mean of a metric over the five evaluations around a round (fewer at the end)."""
    at = int(np.abs(trace.rounds - round_).argmin())
    return np.asarray(trace.metrics[name][:, max(0, at - WINDOW) : at + WINDOW + 1].mean(1))


def last(trace: Trace, name: str) -> Array:
    """Per seed the mean of a metric over the last five evaluations."""
    return np.asarray(trace.metrics[name][:, -2 * WINDOW - 1 :].mean(1))


def succeeds(trace: Trace) -> NDArray[np.bool_]:
    """Per seed whether it ends with a reward of at least 190 at a cost of at most 30."""
    return (last(trace, "reward") >= SUCCESS) & (last(trace, "cost") <= BUDGET)


def first_success(trace: Trace) -> Array:
    """Per seed the first evaluated round with reward >= 190 within the budget; T if none."""
    good = (trace.metrics["reward"] >= SUCCESS) & (trace.metrics["cost"] <= BUDGET)
    return np.asarray(np.where(good.any(1), trace.rounds[good.argmax(1)], trace.rounds[-1]), float)
