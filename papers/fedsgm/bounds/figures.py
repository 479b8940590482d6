"""Figures of the study on bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedsgm.bounds.methods import METHODS
from papers.fedsgm.bounds.numbers import Reached, horizons, reached, slopes
from papers.fedsgm.bounds.runs import parts
from papers.kit import plot
from papers.kit.panels import grid, on, panel, row
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHADES = {"printed": 0, "corrected": 1, "ours": 2, "tenth": 3}
NAMES = {
    "printed": "as printed",
    "corrected": "corrected",
    "ours": "ours",
    "tenth": "printed step, a tenth of the threshold",
}
ACCURACY = "max(f gap, g)"


def sweep_rounds(traces: Traces) -> plot.Drawing:
    """Measured accuracy and bound against T, one panel a theorem, with the fitted slopes."""
    found = {n: reached(n, t) for n, t in traces.items() if parts(n)[2].startswith("T")}

    def theorem(ax: Axes, key: str) -> None:
        for i, version in enumerate((*METHODS[key].versions, *(["tenth"] * (key == "hard")))):
            runs = horizons(f"{key}_{version}", found)
            curve(ax, list(runs), [found[n] for n in runs.values()], version)
            if slope := slopes(f"{key}_{version}", found).get("slope"):
                ax.text(0.03, 0.03 + 0.1 * i, slope.text(".2f"), transform=ax.transAxes,
                        color=plot.COLORS[SHADES[version]], fontsize=7)  # fmt: skip
        first = horizons(f"{key}_printed", found)
        if key != "weak":  # whose distance is a square root, of slope -1/4
            half(ax, list(first), found[next(iter(first.values()))])
            start(ax, [traces[n] for n in first.values()])
        ax.set_title(METHODS[key].label, fontsize=9)
        frame(ax, [T for T in runs if str(T)[0] == "1"])
        ax.set_ylim(lowest(ax) / 4, None)

    panels = [
        panel(
            on(theorem, key),
            xlabel="rounds T" if i >= 6 else "",
            ylabel="distance to prox point" if key == "weak" else "" if i % 3 else ACCURACY,
        )
        for i, key in enumerate(METHODS)
    ]
    return with_legend(grid(panels[:3], panels[3:6], panels[6:]))


def scaled(traces: Traces) -> plot.Drawing:
    """The f gap, g and their maximum when threshold and step are not what the theorem says."""
    runs = {n: reached(n, t) for n, t in traces.items() if parts(n)[1] == "scaled"}
    pairs = {tuple(map(float, parts(n)[2][1:].split("s"))): r for n, r in runs.items()}
    factors, steps = (sorted({pair[i] for pair in pairs}) for i in (0, 1))

    def shares(ax: Axes, measure: str, title: str) -> None:
        for color, k in zip(plot.COLORS, steps, strict=False):
            values = [getattr(pairs[x, k], measure) / pairs[x, k].bound for x in factors]
            spread(ax, factors, values, color, f"{k:g} times the step")
        ax.set_title(f"{title} / bound", fontsize=9)
        ax.set_xscale("symlog", linthresh=0.03)
        ax.set_xticks(factors, [f"{x:g}" for x in factors])
        ax.minorticks_off()

    titles = {"gap": "f gap", "g": "g", "worst": ACCURACY}
    return row(
        *(
            panel(on(shares, *item), xlabel="threshold / bound", legend=item[0] == "gap")
            for item in titles.items()
        )
    )


def curve(ax: Axes, x: Sequence[float], row: Sequence[Reached], version: str) -> None:
    """Measured values with the range over the instances, and the bound as a dashed line."""
    color, width = plot.COLORS[SHADES[version]], 2.2 if version == "printed" else 1.2
    spread(ax, x, [r.plotted for r in row], color, f"reached, {NAMES[version]}", width)
    if version != "tenth":
        bounds = [r.gap_bound for r in row]
        ax.plot(x, bounds, "--", color=color, label=f"bound, {NAMES[version]}", linewidth=width)


def spread(
    ax: Axes,
    x: Sequence[float],
    values: Sequence[Array],
    color: str,
    label: str,
    width: float = 1.5,
) -> None:
    """Mean with dots, and a band from the smallest to the largest instance."""
    look: Any = {"marker": "o", "markersize": 3, "linewidth": width, "shade": 0.12}
    plot.band(ax, x, np.stack(values, 1), around=plot.RANGE, color=color, label=label, **look)


def half(ax: Axes, x: Sequence[float], first: Reached) -> None:
    """A line of slope -1/2, from a third of the first bound on."""
    top = first.gap_bound / 3
    line = [top * (T / x[0]) ** -0.5 for T in x]
    ax.plot(x, line, ":", color="gray", label="slope -1/2", linewidth=1.2)


def start(ax: Axes, runs: Sequence[Trace]) -> None:
    """Where the runs begin: the mean over the instances of max(f gap, g) at w0."""
    worst = np.maximum(runs[0].metrics["f_gap"][:, 0], runs[0].metrics["g"][:, 0]).mean()
    ax.axhline(worst, color="gray", linewidth=0.8, label="at the start")


def frame(ax: Axes, ticks: Sequence[float]) -> None:
    """Logarithmic axes with plain numbers, horizontal ticks at the given values."""
    plot.plain_log(ax)
    plot.log_ticks(ax, ticks)
    low, high = ax.get_ylim()
    decades = np.log10(high / low)
    steps = (1, 2, 5) if decades < 1.7 else (1,)
    marks = [m * 10.0**k for k in range(-5, 4) for m in steps]
    ax.set_yticks([m for m in marks if low <= m <= high])


def lowest(ax: Axes) -> float:
    return float(min(np.min(np.asarray(line.get_ydata(), float)) for line in ax.get_lines()))


def with_legend(draw: plot.Drawing) -> plot.Drawing:
    """The figure with one legend above all panels, every label once."""

    def drawn(fig: Figure) -> None:
        draw(fig)
        found: dict[str, Artist] = {}
        for ax in fig.axes:
            handles, labels = ax.get_legend_handles_labels()
            found |= dict(zip(labels, handles, strict=True))
        place: Any = {"loc": "outside upper center", "ncols": 4, "fontsize": 7.5}
        fig.legend(list(found.values()), list(found), **place)

    return drawn


FIGURES = {
    "rounds": sweep_rounds,
    "scaled": scaled,
}
