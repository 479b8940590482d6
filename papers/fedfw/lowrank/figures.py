"""The figure of the study of the low-rank case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from papers.kit import plot
from papers.kit.panels import panel, row
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
            color = plot.COLORS[i]
            ax.plot(sides, np.median(each, 0), "o-", color=color, label=text)
            ax.fill_between(sides, each.min(0), each.max(0), color=color, alpha=0.18, linewidth=0)

    def bits(ax: Axes) -> None:
        for i, (text, each) in enumerate((("rank one", 64 * sides), ("dense", 32 * sides**2))):
            ax.plot(sides, each / 1e6, "o-", color=plot.COLORS[i], label=text)

    frame: Any = {"xlabel": "side of the square matrix", "legend": True}
    return row(
        panel(seconds, by_side, ylabel="CPU time in ms", **frame),
        panel(bits, by_side, ylabel="message in Mbit", **frame),
    )


FIGURES = {"clock": clock}
