"""The quantities of study cartpole: what is read off the evaluations of every run."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedsgm.cartpole.runs import defaults
from papers.fedsgm.common import disjoint
from papers.fedsgm.curves import mean_change, second_half
from papers.kit.numbers import Number, exact, mean, share
from papers.kit.quantities import Quantities, Row, of_runs, row, run_of
from papers.kit.study import Params, Traces

BUDGET = 30.0  # mean of the clients' budgets, the line drawn in the paper
SUCCESS = 190.0  # reward from which a run has learned to balance
WINDOW = 2  # evaluations before and after the round that is reported
ROUNDS = (100, 250, 500)  # that are reported


def derive(traces: Traces, p: Params) -> Quantities:
    """The table of quantities: of every run, and the cost at which soft switching should settle."""
    usual = defaults(p)
    hard = run_of(traces, usual, switch="hard", fraction=0.5)
    settled = BUDGET + p["tolerance"] - 0.5 / p["beta"]
    predicted = row("predicted", exact(settled), prediction="soft_level")
    rows = [
        *of_runs(traces, measures),
        predicted,
        *null_data(hard),
    ]
    return Quantities.of([rows], usual)


def null_data(trace: Trace) -> Iterator[Row]:
    """The measures of a run on two disjoint halves of its seeds: between them is no effect."""
    for number, half in enumerate(disjoint(trace, 2)):
        for name, measured in measures(half).items():
            yield row(name, measured, half=number)


def measures(trace: Trace) -> dict[str, Number]:
    """What is measured of a run; late in rounds it does not have, nothing."""
    reward = last(trace, "reward")
    cost = last(trace, "cost")
    rewards = trace.metrics["reward"]
    costs = second_half(trace.metrics["cost"])
    violating = second_half(trace.info["g_hat"]) > 0
    numbers = {
        "reward": mean(reward),
        "cost": mean(cost),
        "success": share(is_good(reward, cost), ""),
        "first": mean(first_success(trace), "rounds"),
        "area": mean(rewards.mean(1)),  # larger is faster
        "violating": mean(violating.mean(1)),
        "cost_scatter": mean(mean_change(costs)),
    }
    for number in ROUNDS:
        if number > ROUNDS[0] and number > trace.rounds[-1]:
            continue
        for curve in ("reward", "cost"):
            numbers[f"{curve}{number}"] = mean(around(trace, curve, number))
    return numbers


def around(trace: Trace, name: str, number: int) -> Array:
    """Per seed the mean of a metric over the five evaluations around a round (fewer at the end)."""
    distances = np.abs(trace.rounds - number)
    middle = int(distances.argmin())
    start = max(0, middle - WINDOW)
    end = middle + WINDOW + 1
    window = trace.metrics[name][:, start:end]
    return np.asarray(window.mean(1))


def last(trace: Trace, name: str) -> Array:
    """Per seed the mean of a metric over the last five evaluations."""
    size = 2 * WINDOW + 1
    window = trace.metrics[name][:, -size:]
    return np.asarray(window.mean(1))


def first_success(trace: Trace) -> Array:
    """Per seed the first evaluated round with reward >= 190 within the budget; T if none."""
    good = is_good(trace.metrics["reward"], trace.metrics["cost"])
    first_good = trace.rounds[good.argmax(1)]
    rounds = np.where(good.any(1), first_good, trace.rounds[-1])
    return np.asarray(rounds, float)


def is_good(reward: Array, cost: Array) -> NDArray[np.bool_]:
    """Whether a reward is at least 190 and its cost at most 30."""
    balances = reward >= SUCCESS
    affordable = cost <= BUDGET
    return balances & affordable
