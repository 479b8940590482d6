"""Figures of the study on bounds: what was reached beside what was promised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedlib.core.trace import Array
from papers.fedsgm.bounds.methods import METHODS
from papers.fedsgm.bounds.quantities import Reached, reached, reached_slopes
from papers.fedsgm.bounds.runs import DEFAULTS, TENTH
from papers.kit import plot
from papers.kit.numbers import mean
from papers.kit.panels import grid, on, panel, row
from papers.kit.quantities import Label, labels_of, sweep
from papers.kit.study import Traces

SHADES = {"printed": 0, "corrected": 1, "ours": 2, "tenth": 3}
NAMES = {
    "printed": "as printed",
    "corrected": "corrected",
    "ours": "ours",
    "tenth": "printed step, a tenth of the threshold",
}
ACCURACY = "max(f gap, g)"


def along_rounds(traces: Traces, method: str, version: str) -> dict[int, Reached]:
    """What the runs of a theorem reached, by their number of rounds."""
    labels: dict[str, Label] = {"method": method, "version": version}
    if version == "tenth":
        labels = {"method": method, "version": "printed", "threshold": TENTH}
    runs = sweep(traces, DEFAULTS, "T", **labels)
    return {T: reached(trace) for T, trace in runs.items()}


def theorem(ax: plot.Axes, traces: Traces, key: str) -> None:
    """The panel of one theorem: every version of it, with the fitted slopes."""
    versions = (*METHODS[key].versions, *(["tenth"] if key == "hard" else []))
    for number, version in enumerate(versions):
        runs = along_rounds(traces, key, version)
        curve(ax, runs, version)
        by_instance = reached_slopes(runs) if len(runs) > 1 else ()
        if len(by_instance):
            text = mean(by_instance).text(".2f")
            look: Any = {"color": plot.COLORS[SHADES[version]], "fontsize": 7.5}
            ax.text(0.03, 0.03 + 0.1 * number, text, transform=ax.transAxes, **look)
    if key != "weak":  # whose distance is a square root, of slope -1/4
        references(ax, traces, key)
    ax.set_title(METHODS[key].label, fontsize=9)
    frame(ax, [T for T in runs if str(T)[0] == "1"])
    lowest = min(np.min(np.asarray(line.get_ydata(), float)) for line in ax.get_lines())
    ax.set_ylim(lowest / 4, None)


def references(ax: plot.Axes, traces: Traces, key: str) -> None:
    """A line of slope -1/2, and the accuracy at the start."""
    runs = sweep(traces, DEFAULTS, "T", method=key, version="printed")
    fewest = min(runs)
    top = reached(runs[fewest]).gap_bound / 3
    line = [top * (T / fewest) ** -0.5 for T in runs]
    ax.plot([*runs], line, ":", color="gray", label="slope -1/2", linewidth=1.2)
    start = runs[fewest].metrics
    worst = np.maximum(start["f_gap"][:, 0], start["g"][:, 0]).mean()
    ax.axhline(worst, color="gray", linewidth=0.8, label="at the start")


def sweep_rounds(traces: Traces) -> plot.Drawing:
    """Measured accuracy and bound against T, one panel a theorem, with the fitted slopes."""
    panels = []
    for number, key in enumerate(METHODS):
        ylabel = "distance to prox point" if key == "weak" else ""
        if number % 3 == 0 and not ylabel:
            ylabel = ACCURACY
        xlabel = "rounds T" if number >= 6 else ""
        panels.append(panel(on(theorem, traces, key), xlabel=xlabel, ylabel=ylabel))
    return with_legend(grid(panels[:3], panels[3:6], panels[6:]))


def scaled(traces: Traces) -> plot.Drawing:
    """The f gap, g and their maximum when threshold and step are not what the theorem says."""
    by_step: dict[float, dict[float, Reached]] = {}
    for trace in traces.values():
        labels: Mapping[str, Any] = labels_of(trace)
        if "step" in labels:
            by_step.setdefault(labels["step"], {})[labels["threshold"]] = reached(trace)

    def shares(ax: plot.Axes, measure: str, title: str) -> None:
        for color, step in zip(plot.COLORS, sorted(by_step), strict=False):
            runs = dict(sorted(by_step[step].items()))
            values = [getattr(run, measure) / run.bound for run in runs.values()]
            spread(ax, [*runs], values, color, f"{step:g} times the step")
        ax.set_title(f"{title} / bound", fontsize=9)
        ax.set_xscale("symlog", linthresh=0.03)
        ax.set_xticks([*runs], [f"{factor:g}" for factor in runs])
        ax.minorticks_off()

    xlabel = "threshold / bound"
    return row(
        panel(on(shares, "gap", "f gap"), xlabel=xlabel, legend=True),
        panel(on(shares, "g", "g"), xlabel=xlabel),
        panel(on(shares, "worst", ACCURACY), xlabel=xlabel),
    )


def curve(ax: plot.Axes, runs: Mapping[int, Reached], version: str) -> None:
    """Measured values with the range over the instances, and the bound as a dashed line."""
    color = plot.COLORS[SHADES[version]]
    width = 2.2 if version == "printed" else 1.2
    values = [run.plotted for run in runs.values()]
    spread(ax, [*runs], values, color, f"reached, {NAMES[version]}", width)
    if version != "tenth":
        bounds = [run.gap_bound for run in runs.values()]
        label = f"bound, {NAMES[version]}"
        ax.plot([*runs], bounds, "--", color=color, label=label, linewidth=width)


def spread(
    ax: plot.Axes,
    x: Sequence[float],
    values: Sequence[Array],
    color: str,
    label: str,
    width: float = 1.5,
) -> None:
    """Mean with dots, and a band from the smallest to the largest instance."""
    look: Any = {"marker": "o", "markersize": 3, "linewidth": width, "shade": 0.12}
    plot.band(ax, x, np.stack(values, 1), around=plot.RANGE, color=color, label=label, **look)


def frame(ax: plot.Axes, ticks: Sequence[float]) -> None:
    """Logarithmic axes with plain numbers, horizontal ticks at the given values."""
    plot.plain_log(ax)
    plot.log_ticks(ax, ticks)
    low, high = ax.get_ylim()
    decades = np.log10(high / low)
    steps = (1, 2, 5) if decades < 1.7 else (1,)
    marks = [m * 10.0**k for k in range(-5, 4) for m in steps]
    ax.set_yticks([m for m in marks if low <= m <= high])


def with_legend(draw: plot.Drawing) -> plot.Drawing:
    """The figure with one legend above all panels, every label once."""

    def drawn(fig: plot.Figure) -> None:
        draw(fig)
        entries: dict[str, Any] = {}
        for ax in fig.axes:
            handles, labels = ax.get_legend_handles_labels()
            entries |= dict(zip(labels, handles, strict=True))
        look: Any = {"loc": "outside upper center", "ncols": 4, "fontsize": 7.5}
        fig.legend([*entries.values()], [*entries], **look)

    return drawn


FIGURES = {"rounds": sweep_rounds, "scaled": scaled}
