"""Figures of the study on FedCMOO's toys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from papers.fedcmoo.toy.numbers import end, rate_squares, runs_of
from papers.kit import plot
from papers.kit.numbers import mean
from papers.kit.panels import columns, on, panel, row
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes


NAMES = {"fedcmoo": "FedCMOO", "fsmgda": "FSMGDA"}


def drift_figure(traces: Traces) -> plot.Drawing:
    """Stationarity at the end against local steps, a panel for every spread."""
    runs = runs_of(traces, "drift")
    spreads = sorted({n.split("_")[1] for n in runs}, key=lambda s: float(s[6:]))
    steps = sorted({int(n.rpartition("E")[2]) for n in runs})

    def fill(ax: Axes, spread: str) -> None:
        rows = {
            label: [mean(end(runs[f"{m}_{spread}_E{E}"], "stationarity")) for E in steps]
            for m, label in NAMES.items()
        }
        plot.dots(ax, steps, rows)
        plot.log_ticks(ax, steps)

    titles = {s: f"client optima spread by {s[6:]}" for s in spreads}
    label = "least norm at the end"
    return row(*columns(fill, titles, ylabel=label, xlabel="local steps E", legend=True))


def rate_figure(traces: Traces) -> plot.Drawing:
    """The mean square against T, both axes logarithmic, and a line of slope -1/2."""
    labels = {"exact": "uncompressed", "randk": "Rand-K, half of the entries"}
    names = {key: runs_of(traces, f"rate_{key}") for key in labels}
    horizons = sorted(int(n[1:]) for n in names["exact"])
    rows = {
        label: [mean(rate_squares(names[key][f"T{T}"])) for T in horizons]
        for key, label in labels.items()
    }

    def slope(ax: Axes) -> None:
        first = rows["uncompressed"][0].value
        line = [0.7 * first * (T / horizons[0]) ** -0.5 for T in horizons]
        ax.plot(horizons, line, color="gray", linestyle="--", label="slope -1/2")
        plot.log_ticks(ax, horizons)
        plot.plain_log(ax)

    frame = {"xlabel": "rounds T", "ylabel": r"mean of $|\nabla F\,w|^2$"}
    return row(panel(on(plot.dots, horizons, rows), slope, legend=True, **frame))


FIGURES = {"drift": drift_figure, "rate": rate_figure}
