"""The quantities of the study on quadratics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedcmoo.theory.balancing import balance
from papers.fedcmoo.toy.runs import DEFAULTS, preferences
from papers.kit import quantities as kit
from papers.kit.numbers import Number, exact, mean, over_seeds, ratio
from papers.kit.quantities import Quantities, Row, row, run_of, sweep
from papers.kit.study import Params, Traces

#: What is measured of a run, by seed or once for all seeds.
Measures = Mapping[str, ArrayLike | Number]


def derive(traces: Traces, p: Params) -> Quantities:
    """The table of quantities: of every run, and what sweeps of runs give."""
    rows = [*gains(traces), *slopes(traces), *allowed(p)]
    return Quantities.of([kit.of_runs(traces, measures), rows], DEFAULTS)


def measures(trace: Trace) -> dict[str, Number]:
    """What is measured of a run, by its part of the study."""
    of_part: dict[str, Callable[[Trace], Measures]] = {
        "drift": drift,
        "rate": rate,
        "edge": edge,
        "scale": scale,
        "probe": probe,
    }
    values = of_part[str(kit.labels_of(trace)["part"])](trace)
    return {measure: over_seeds(of_seeds) for measure, of_seeds in values.items()}


def end(trace: Trace, curve: str) -> Array:
    """Per seed a metric of the final model, or the last value of an info."""
    values = trace.metrics if curve in trace.metrics else trace.info
    return np.asarray(values[curve][:, -1])


def drift(trace: Trace) -> Measures:
    """Stationarity at the end."""
    return {"stationarity": end(trace, "stationarity")}


def gains(traces: Traces) -> Iterator[Row]:
    """FSMGDA's stationarity at the end over FedCMOO's, on the same instances."""
    runs = kit.chosen(
        traces,
        ["spread", "E"],
        DEFAULTS,
        part="drift",
        method="fedcmoo",
    )
    for trace in runs.values():
        labels = kit.labels_of(trace)
        if labels["E"] == 1:
            continue  # with a single exact step both methods are the same
        setting = {"part": "drift", "spread": labels["spread"], "E": labels["E"]}
        fsmgda = run_of(traces, DEFAULTS, **setting, method="fsmgda")
        of_fsmgda = end(fsmgda, "stationarity")
        of_fedcmoo = end(trace, "stationarity")
        yield row("gain", ratio(of_fsmgda, of_fedcmoo), **setting)


def rate(trace: Trace) -> Measures:
    """The mean over the rounds of `|grad F(x) w|^2`."""
    return {"square": rate_squares(trace)}


def rate_squares(trace: Trace) -> Array:
    """Per seed the mean over the rounds of `|grad F(x) w|^2`, w from before the round."""
    later = trace.info["weight_1"]
    start = np.full((len(later), 1), 0.5)
    weights = np.concatenate([start, later[:, :-1]], axis=1)
    evaluated = trace.rounds[:-1] - trace.rounds[0]
    w_1 = weights[:, evaluated]
    w_2 = 1 - w_1
    of_first = w_1 * w_1 * trace.of_rounds("g_11")
    of_both = 2 * w_1 * w_2 * trace.of_rounds("g_12")
    of_second = w_2 * w_2 * trace.of_rounds("g_22")
    squares = of_first + of_both + of_second
    return np.asarray(squares.mean(1))


def slopes(traces: Traces) -> Iterator[Row]:
    """The log-log slopes of the mean squares in T."""
    for method in ("exact", "randk", "plain"):
        runs = sweep(
            traces,
            DEFAULTS,
            "T",
            part="rate",
            method=method,
        )
        if len(runs) > 1:
            log_T = np.log([*runs])
            log_squares = np.log([rate_squares(trace) for trace in runs.values()])
            slope, _ = np.polyfit(log_T, log_squares, 1)
            yield row("slope", mean(slope), part="rate", method=method)


def edge(trace: Trace) -> Measures:
    """Where FedCMOO-Pref stops."""
    count = int(kit.labels_of(trace)["M"])
    ratios = np.array(preferences(count))
    of_objectives = [end(trace, f"f_{k}") for k in range(1, count + 1)]
    losses = np.stack(of_objectives, -1)
    scaled = losses * ratios
    mu, _ = balance(ratios, losses)
    largest = scaled.max(-1)
    return {
        "mu": mu,
        "spread": largest / scaled.min(-1),
        "stationarity": end(trace, "stationarity"),
        "fallback": trace.info["fallback"].mean(1),
    }


def allowed(p: Params) -> Iterator[Row]:
    """The ratio of two losses that FedCMOO-Pref's epsilon allows."""
    for eps in map(float, p["tolerances"]):
        if 0 < eps < np.log(2):
            yield row(
                "allowed",
                exact(tolerated(eps)),
                part="edge",
                M=2,
                eps=eps,
            )


def tolerated(epsilon: float) -> float:
    """The largest ratio of two losses whose imbalance is `epsilon`; the least is its inverse."""

    def excess(x: float) -> float:
        losses = np.array([np.exp(x), 1.0])
        mu, _ = balance(np.ones(2), losses)
        return float(mu) - epsilon

    log_ratio = scipy.optimize.brentq(excess, 0, 100)
    return float(np.exp(log_ratio))


def scale(trace: Trace) -> Measures:
    """The losses at the end, the first without its factor, and the weight of the first."""
    factor = trace.config["problem"]["scale"]
    weight = np.full(2, 0.5)
    if "weight_1" in trace.info:
        weight = end(trace, "weight_1")
    return {
        "f_1": end(trace, "f_1") / factor,
        "f_2": end(trace, "f_2"),
        "weight_1": weight,
    }


def probe(trace: Trace) -> Measures:
    """The measured slope of mu against the formula, and how often mu falls, per seed."""
    error = trace.info["error"]
    measured: dict[str, Any] = {"error": error.max(1)}
    for step in ("", "_1", "_2", "_3"):
        falls = trace.info[f"change{step}"] < 0
        measured[f"falls{step}"] = falls.mean(1)
    return measured
