"""Figures of the study of the low-rank case."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from papers.fedfw.lowrank.numbers import FRANK_WOLFE, best_runs, excess, pace
from papers.kit import plot
from papers.kit.panels import grid, legend_below, on, panel, row
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS = {
    "fedfw": "FedFW",
    "plus": "FedFW+",
    "avg1": "FedAvg, E = 1",
    "avg5": "FedAvg, several steps",
    "dr": "FedDR",
}
COSTS = {"rounds": "rounds", "mbit": "Mbit sent", "seconds": "oracle seconds"}
LOWEST = 0.01  # %: below it a loss in float32 is exact


def loss(traces: Traces) -> plot.Drawing:
    """Excess loss against rounds, bits and oracle seconds, a row for each task.

    The mean, and a band from the lowest to the highest seed.
    """
    best = best_runs(traces)
    tasks = dict.fromkeys(kind.split("_")[0] for kind in best)

    def curves(task: str, unit: str, ax: Axes) -> None:
        for i, (method, label) in enumerate(LABELS.items()):
            trace = traces[best[f"{task}_{method}"]]
            x = pace(traces, trace, method)[unit] * trace.rounds
            y = np.maximum(excess(trace, traces[f"{task}_reference"]), LOWEST)
            style = "-" if method in FRANK_WOLFE else "--"
            look: Any = {"linestyle": style, "label": label, "shade": 0.1}
            plot.band(ax, x[1:], y[:, 1:], around=plot.RANGE, color=plot.COLORS[i], **look)

    rows = (
        [
            panel(
                partial(curves, task, unit),
                on(plot.plain_log),
                xscale="log",
                xlabel=text,
                ylabel=f"{task}: excess loss, %" if unit == "rounds" else "",
            )
            for unit, text in COSTS.items()
        ]
        for task in tasks
    )
    return legend_below(grid(*rows, sharey=True), len(LABELS))


def clock(traces: Traces) -> plot.Drawing:
    """Seconds of the two oracles, and bits of the two messages, against the side of the matrix."""
    sizes = {n: n.removeprefix("clock_").split("x") for n in traces if n.startswith("clock_")}
    squares = {int(m): traces[name] for name, (m, n) in sizes.items() if m == n}
    sides = np.array(sorted(squares), float)

    def by_side(ax: Axes) -> None:
        ax.set_yscale("log")
        plot.log_ticks(ax, [*sides])

    def seconds(ax: Axes) -> None:
        for i, (oracle, text) in enumerate((("lmo", "LMO"), ("project", "projection by SVD"))):
            each = np.stack([1e3 * squares[m].info[oracle][0] for m in sorted(squares)], 1)
            look: Any = {"middle": "median", "around": plot.RANGE, "marker": "o", "label": text}
            plot.band(ax, sides, each, color=plot.COLORS[i], **look)

    def bits(ax: Axes) -> None:
        for i, (text, each) in enumerate((("rank one", 64 * sides), ("dense", 32 * sides**2))):
            ax.plot(sides, each / 1e6, "o-", color=plot.COLORS[i], label=text)

    frame: Any = {"xlabel": "side of the square matrix", "legend": True}
    return row(
        panel(seconds, by_side, ylabel="CPU time in ms", **frame),
        panel(bits, by_side, ylabel="message in Mbit", **frame),
    )


FIGURES = {"loss": loss, "clock": clock}
