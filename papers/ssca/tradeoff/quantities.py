"""The quantities of the study of SSCA's Figure 4 and of Theorem 5."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import scipy
from numpy.typing import NDArray

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.kit import quantities as kit
from papers.kit.numbers import Number, exact, mean
from papers.kit.quantities import Quantities, Row, row, sweep
from papers.kit.study import Params, Traces
from papers.ssca.common import SPLITS
from papers.ssca.tradeoff.runs import DEFAULTS, METRICS

SWEPT = {"ssca": "ridge", "limit": "U"}  # what varies along the curve of a method


def derive(traces: Traces, _: Params) -> Quantities:
    """Where every run ends; the order along each curve; Theorem 5's gradients."""
    rows = [
        *kit.of_runs(traces, measures),
        *orders(traces),
        *below_limit(traces),
    ]
    return Quantities.of([rows], DEFAULTS)


def measures(trace: Trace) -> dict[str, Number]:
    """What holds after the last round of a run."""
    labels = kit.labels_of(trace)
    if labels["method"] == "theorem":
        return stationarity(trace)
    numbers = {metric: mean(final(trace, metric)) for metric in METRICS}
    if labels["method"] == "limit":
        share = final(trace, "cost") / float(labels["U"])
        numbers["excess"] = mean(100 * (share - 1), "%")
    return numbers


def below_limit(traces: Traces) -> Iterator[Row]:
    """How many of all final models with a limit U have a cost below it, and how many there are."""
    flags: list[bool] = []
    for trace in traces.values():
        labels = kit.labels_of(trace)
        if labels["method"] == "limit":
            below = final(trace, "cost") < float(labels["U"])
            flags += [*below]
    if flags:
        yield row("below", exact(sum(flags), "models"), models="all")
        yield row("models", exact(len(flags), "models"), models="all")


def final(trace: Trace, metric: str) -> Array:
    """A metric of the final models, by seed."""
    return np.asarray(trace.metrics[metric][:, -1])


def orders(traces: Traces) -> Iterator[Row]:
    """Rank correlations along the two curves of a split, and null data: `order` permuted."""
    for split, method in product(SPLITS, SWEPT):
        curve = {"split": split, "method": method}
        runs = sweep(traces, DEFAULTS, SWEPT[method], **curve)
        if len(runs) < 2:
            continue
        costs = finals(runs, "cost")
        norms = finals(runs, "norm")
        yield from along_curve("order", costs, norms, curve)
        if method == "limit":
            accuracies = finals(runs, "accuracy")
            limits = np.array([*runs])[:, None]
            levels = np.broadcast_to(limits, costs.shape)
            yield from along_curve("accuracy_order", accuracies, levels, curve)


def finals(runs: dict[float, Trace], metric: str) -> Array:
    """A metric of the final models of some runs, `[runs, S]`."""
    return np.array([final(run, metric) for run in runs.values()])


def along_curve(measure: str, values: Array, others: Array, curve: kit.Labels) -> Iterator[Row]:
    """The rank correlation of two arrays `[runs, S]`, and that with the first one permuted."""
    permuted = kit.permuted(values)
    yield row(measure, correlation(values, others), **curve)
    yield row(measure, correlation(permuted, others), **curve, order="permuted")


def correlation(x: Array, y: Array) -> Number:
    """Per seed the rank correlation of two arrays `[runs, S]`."""
    by_seed = []
    for a, b in zip(x.T, y.T, strict=True):
        result = scipy.stats.spearmanr(a, b)
        by_seed.append(result.statistic)
    return mean(by_seed)


def relative_gradient(trace: Trace) -> tuple[NDArray[np.int64], Array]:
    """Rounds, and |grad (27)| / |grad F| there with lambda = 1 / nu of that round, `[S, T]`.

    Infinite where nu is zero; the start, before which no round has given a nu, is left out.
    """
    rounds = trace.rounds[1:]
    later = {name: curve[:, 1:] for name, curve in trace.metrics.items()}
    multipliers = trace.info["nu"][:, rounds - 1]
    with np.errstate(divide="ignore"):
        ridge = 1 / multipliers
    along = later["along"] + 2 * ridge * np.sqrt(later["norm"])
    lengths = np.hypot(later["across"], along)
    return rounds, np.asarray(lengths / later["slope"])


def stationarity(trace: Trace) -> dict[str, Number]:
    """What holds after the last round, and the share of the gradient at half the rounds."""
    rounds, gradient = relative_gradient(trace)
    half = rounds[-1] // 2
    evaluations = np.searchsorted(rounds, half, side="right")
    multipliers = trace.info["nu"]
    return {
        "cost": mean(final(trace, "cost")),
        "nu": mean(multipliers[:, -1]),
        "slope": mean(final(trace, "slope")),
        "half_gradient": mean(gradient[:, evaluations - 1]),
        "gradient": mean(gradient[:, -1]),
    }
