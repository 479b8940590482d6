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
    settled = exact(BUDGET + p["tolerance"] - 0.5 / p["beta"])
    predicted = [row("predicted", settled, prediction="soft_level")]
    usual = defaults(p)
    hard = run_of(traces, usual, switch="hard", fraction=0.5)
    return Quantities.of([of_runs(traces, measures), predicted, null_data(hard)], usual)


def null_data(trace: Trace) -> Iterator[Row]:
    """The measures of a run on two disjoint halves of its seeds: between them is no effect."""
    for number, half in enumerate(disjoint(trace, 2)):
        for name, measured in measures(half).items():
            yield row(name, measured, half=number)


def measures(trace: Trace) -> dict[str, Number]:
    """What is measured of a run; late in rounds it does not have, nothing."""
    numbers = {
        "reward": mean(last(trace, "reward")),
        "cost": mean(last(trace, "cost")),
        "success": share(succeeds(trace), ""),
        "first": mean(first_success(trace), "rounds"),
        "area": mean(trace.metrics["reward"].mean(1)),  # larger is faster
        "violating": mean((second_half(trace.info["g_hat"]) > 0).mean(1)),
        "cost_scatter": mean(mean_change(second_half(trace.metrics["cost"]))),
    }
    for at in ROUNDS:
        if trace.rounds[-1] >= at or at == ROUNDS[0]:
            for curve in ("reward", "cost"):
                numbers[f"{curve}{at}"] = mean(around(trace, curve, at))
    return numbers


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
