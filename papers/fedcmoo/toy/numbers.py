"""The derived numbers of the study on FedCMOO's toys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import scipy
from numpy.typing import ArrayLike

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedcmoo.common import COLOR, TWO
from papers.fedcmoo.pref_checks import balance
from papers.kit import plot
from papers.kit.numbers import Number, exact, mean, over_seeds, ratio
from papers.kit.panels import columns, on, panel, row
from papers.kit.study import Params, Traces, after, swept


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    found = drift(traces) | rate(traces) | each(traces, "probe", probe)
    found |= each(traces, "edge", edge) | allowed(p)
    return found | each(traces, "scale", partial(scale, factor=float(p["scale"])))


def each(
    traces: Traces, part: str, measures: Callable[[str, Trace], Mapping[str, ArrayLike]]
) -> dict[str, Number]:
    """The measures of every run of a part, by the rest of its name and its trace."""
    return {
        f"{part}_{name}.{k}": over_seeds(x)
        for name, trace in after(traces, f"{part}_").items()
        for k, x in measures(name, trace).items()
    }


def end(trace: Trace, name: str) -> Array:
    """Per seed a metric of the final model, or the last value of an info."""
    values = trace.metrics if name in trace.metrics else trace.info
    return np.asarray(values[name][:, -1])


def edge_ratios(tasks: int) -> tuple[float, ...]:
    """The preferences of the sweep over tolerances, evenly from 1 to 2."""
    return tuple(1 + k / (tasks - 1) for k in range(tasks))


def tolerated(epsilon: float) -> float:
    """The largest ratio of two losses whose imbalance is `epsilon`; the least is its inverse."""
    both = np.ones(2)

    def excess(x: float) -> float:
        return float(balance(both, np.array([np.exp(x), 1.0]))[0]) - epsilon

    return float(np.exp(scipy.optimize.brentq(excess, 0, 100)))


def drift(traces: Traces) -> dict[str, Number]:
    """Stationarity at the end, and FSMGDA's over FedCMOO's on the same instances."""
    runs = after(traces, "drift_")
    found = {f"drift_{n}.stationarity": mean(end(t, "stationarity")) for n, t in runs.items()}
    for name, trace in runs.items():
        method, setting = name.split("_", 1)
        if method == "fedcmoo" and not setting.endswith("_E1"):  # exact, both, with a single step
            other = end(runs[f"fsmgda_{setting}"], "stationarity")
            found[f"drift_gain_{setting}.stationarity"] = ratio(other, end(trace, "stationarity"))
    return found


def rate_squares(trace: Trace) -> Array:
    """Per seed the mean over the rounds of `|grad F(x) w|^2`, w from before the round."""
    G = {k: trace.of_rounds(k) for k in ("g_11", "g_12", "g_22")}
    later = trace.info["weight_1"]
    before = np.concatenate([np.full((len(later), 1), 0.5), later[:, :-1]], 1)
    a = before[:, trace.rounds[:-1] - trace.rounds[0]]
    b = 1 - a
    return np.asarray((a * a * G["g_11"] + 2 * a * b * G["g_12"] + b * b * G["g_22"]).mean(1))


def rate(traces: Traces) -> dict[str, Number]:
    """Mean squares by T, with exact messages and with Rand-K, and their log-log slopes."""
    found: dict[str, Number] = {}
    for name in ("exact", "randk", "plain"):
        squares = {T: rate_squares(t) for T, t in swept(traces, f"rate_{name}_T").items()}
        found |= {f"rate_{name}_T{T:g}.square": mean(x) for T, x in squares.items()}
        if len(squares) > 1:
            logs = np.log(np.stack(list(squares.values())))
            found[f"rate_{name}.slope"] = mean(np.polyfit(np.log(list(squares)), logs, 1)[0])
    return found


def edge(_: str, trace: Trace) -> dict[str, Array]:
    """Where FedCMOO-Pref stops."""
    count = sum(k.startswith("f_") for k in trace.metrics)
    losses = np.stack([end(trace, f"f_{k + 1}") for k in range(count)], -1)
    scaled = losses * edge_ratios(count)
    return {
        "mu": balance(np.array(edge_ratios(count)), losses)[0],
        "spread": scaled.max(-1) / scaled.min(-1),
        "stationarity": end(trace, "stationarity"),
        "fallback": trace.info["fallback"].mean(1),
    }


def allowed(p: Params) -> dict[str, Number]:
    """The ratio of two losses that FedCMOO-Pref's epsilon allows."""
    bounded = [float(x) for x in p["tolerances"] if 0 < x < np.log(2)]
    return {f"edge_M2_eps{x:g}.allowed": exact(tolerated(x)) for x in bounded}


def scale(_: str, trace: Trace, factor: float) -> dict[str, Array]:
    weight = end(trace, "weight_1") if "weight_1" in trace.info else np.full(2, 0.5)
    return {"f_1": end(trace, "f_1") / factor, "f_2": end(trace, "f_2"), "weight_1": weight}


def probe(_: str, trace: Trace) -> dict[str, ArrayLike]:
    """The measured slope of mu against the formula, and how often mu falls, per seed."""
    error = trace.info["error"]
    falls = {f"falls{n}": (trace.info[f"change{n}"] < 0).mean(1) for n in ("", "_1", "_2", "_3")}
    return {"points": exact(error.size), "error": error.max(1), **falls}


def drift_figure(traces: Traces) -> plot.Drawing:
    """Stationarity at the end against local steps, a panel for every spread."""
    runs = after(traces, "drift_")
    spreads = sorted({n.split("_")[1] for n in runs}, key=lambda s: float(s[6:]))
    steps = sorted({int(n.rpartition("E")[2]) for n in runs})

    def fill(ax: plot.Axes, spread: str) -> None:
        rows = {
            label: [mean(end(runs[f"{m}_{spread}_E{E}"], "stationarity")) for E in steps]
            for m, label in TWO.items()
        }
        plot.dots(ax, steps, rows, colors=[COLOR[k] for k in rows])
        plot.log_ticks(ax, steps)

    titles = {s: f"client optima spread by {s[6:]}" for s in spreads}
    label = "least norm at the end"
    return row(*columns(fill, titles, ylabel=label, xlabel="local steps E", legend=True))


def rate_figure(traces: Traces) -> plot.Drawing:
    """The mean square against T, both axes logarithmic, and a line of slope -1/2."""
    labels = {"exact": "uncompressed", "randk": "Rand-K, half of the entries"}
    runs = {label: swept(traces, f"rate_{key}_T") for key, label in labels.items()}
    horizons = [*runs["uncompressed"]]
    rows = {label: [mean(rate_squares(t)) for t in own.values()] for label, own in runs.items()}

    def slope(ax: plot.Axes) -> None:
        first = rows["uncompressed"][0].value
        line = [0.7 * first * (T / horizons[0]) ** -0.5 for T in horizons]
        ax.plot(horizons, line, color="gray", linestyle="--", label="slope -1/2")
        plot.log_ticks(ax, horizons)
        plot.plain_log(ax)

    frame = {"xlabel": "rounds T", "ylabel": r"mean of $|\nabla F\,w|^2$"}
    colors = plot.COLORS[len(COLOR) :]  # the others are those of methods
    return row(panel(on(plot.dots, horizons, rows, colors=colors), slope, legend=True, **frame))


FIGURES = {"drift": drift_figure, "rate": rate_figure}
