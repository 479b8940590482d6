"""The figure of the low-rank study."""

from __future__ import annotations

from typing import Any

import numpy as np

from papers.fedfw.lowrank.runs import DEFAULTS
from papers.kit import plot
from papers.kit.panels import panel, row
from papers.kit.quantities import sweep
from papers.kit.study import Traces

ORACLES = {"lmo": "LMO", "project": "projection by SVD"}


def clock(traces: Traces) -> plot.Drawing:
    """Seconds of the two oracles, and bits of the two messages, against the side of the matrix."""
    squares = {}
    for trace in sweep(traces, DEFAULTS, "shape", kind="clock").values():
        matrix = trace.config["problem"]["set"]
        if matrix["rows"] == matrix["columns"]:
            squares[matrix["rows"]] = trace
    sides = np.array(sorted(squares), float)

    def by_side(ax: plot.Axes) -> None:
        ax.set_yscale("log")
        plot.log_ticks(ax, [*sides])

    def seconds(ax: plot.Axes) -> None:
        for color, (oracle, text) in zip(plot.COLORS, ORACLES.items(), strict=False):
            times = np.stack([1e3 * squares[side].info[oracle][0] for side in sides], 1)
            ax.plot(sides, np.median(times, 0), "o-", color=color, label=text)
            ax.fill_between(sides, times.min(0), times.max(0), color=color, alpha=0.18, linewidth=0)

    def bits(ax: plot.Axes) -> None:
        lengths = {"rank one": 64 * sides, "dense": 32 * sides**2}
        for color, (text, length) in zip(plot.COLORS, lengths.items(), strict=False):
            ax.plot(sides, length / 1e6, "o-", color=color, label=text)

    frame: Any = {"xlabel": "side of the square matrix", "legend": True}
    return row(
        panel(seconds, by_side, ylabel="CPU time in ms", **frame),
        panel(bits, by_side, ylabel="message in Mbit", **frame),
    )


FIGURES = {"clock": clock}
