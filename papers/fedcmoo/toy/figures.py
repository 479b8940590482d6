"""The figures of the study on quadratics."""

from __future__ import annotations

from papers.fedcmoo.common import COLOR, TWO
from papers.fedcmoo.toy.quantities import end, rate_squares
from papers.fedcmoo.toy.runs import DEFAULTS
from papers.kit import plot
from papers.kit.numbers import mean
from papers.kit.panels import columns, on, panel, row
from papers.kit.quantities import Labels, labels_of, sweep
from papers.kit.study import Traces


def drift_figure(traces: Traces) -> plot.Drawing:
    """Stationarity at the end against local steps, a panel for every spread."""

    def fill(ax: plot.Axes, spread: str) -> None:
        ends = {}
        for method, label in TWO.items():
            setting: Labels = {"part": "drift", "method": method, "spread": float(spread)}
            runs = sweep(traces, DEFAULTS, "E", **setting)
            ends[label] = [mean(end(trace, "stationarity")) for trace in runs.values()]
        plot.dots(ax, [*runs], ends, colors=[COLOR[label] for label in ends])
        plot.log_ticks(ax, [*runs])

    labels = [labels_of(trace) for trace in traces.values()]
    spreads = sorted({float(run["spread"]) for run in labels if run["part"] == "drift"})
    titles = {f"{spread:g}": f"client optima spread by {spread:g}" for spread in spreads}
    label = "least norm at the end"
    return row(*columns(fill, titles, ylabel=label, xlabel="local steps E", legend=True))


def rate_figure(traces: Traces) -> plot.Drawing:
    """The mean square against T, both axes logarithmic, and a line of slope -1/2."""
    squares = {}
    for method, label in {"exact": "uncompressed", "randk": "Rand-K, half of the entries"}.items():
        runs = sweep(traces, DEFAULTS, "T", part="rate", method=method)
        squares[label] = [mean(rate_squares(trace)) for trace in runs.values()]
    horizons = [*runs]

    def slope(ax: plot.Axes) -> None:
        start = squares["uncompressed"][0].value
        line = [0.7 * start * (T / horizons[0]) ** -0.5 for T in horizons]
        ax.plot(horizons, line, color="gray", linestyle="--", label="slope -1/2")
        plot.log_ticks(ax, horizons)
        plot.plain_log(ax)

    frame = {"xlabel": "rounds T", "ylabel": r"mean of $|\nabla F\,w|^2$"}
    colors = plot.COLORS[len(COLOR) :]  # the others are those of methods
    return row(panel(on(plot.dots, horizons, squares, colors=colors), slope, legend=True, **frame))


FIGURES = {"drift": drift_figure, "rate": rate_figure}
