"""Figures of the study of SSCA's Figures 2 and 3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fedlib.core import Trace
from papers.kit import plot
from papers.kit.panels import panel, row
from papers.kit.study import Traces
from papers.ssca.common import SPLITS, rows
from papers.ssca.convergence.numbers import chosen, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES = ("-", "--", ":", "-.")
GREY = "#8c8c8c"
LEAST = 0.9  # of the lowest mean, where an axis of costs begins
TOP = 3.0  # of the axes of costs; SGD with a large step goes far beyond
METRICS = {"cost": "training cost", "accuracy": "test accuracy (%)"}


def batches(traces: Traces) -> list[int]:
    names = [n.split("_") for n in traces if n.startswith("samples_ssca")]
    return sorted({int(parts[2].removeprefix("B")) for parts in names})


def colors(traces: Traces) -> dict[int, str]:
    return dict(zip(batches(traces), plot.COLORS, strict=False))


def levels(traces: Traces) -> list[float]:
    return sorted({float(n.rpartition("_U")[2]) for n in traces if "_limit_" in n})


def curve(
    ax: Axes, trace: Trace, metric: str, color: str, style: str = "-", label: str = ""
) -> None:
    """One curve with its band, accuracies in %."""
    scale = 100 if metric == "accuracy" else 1
    shown = {metric: scale * trace.metrics[metric]}
    plot.bands(ax, {label: replace(trace, metrics=shown)}, metric, colors=(color,))
    ax.lines[-1].set(linestyle=style, label=label or "_")  # no entry without a label


def costs(axes: Sequence[Axes]) -> None:
    """One logarithmic axis, from below the lowest mean to a little above the cost of the start."""
    plot.plain_log(axes[0])
    drawn = [np.asarray(line.get_ydata(), float) for ax in axes for line in ax.lines]
    lowest = min(np.nanmin(y) for y in drawn if len(y))
    axes[0].set_ylim(LEAST * lowest, TOP)


def clients(traces: Traces) -> int:
    return int(next(iter(traces.values())).config["problem"]["clients"])


def free(traces: Traces, split: str, ax: Axes, metric: str) -> None:
    """Algorithm 1 or 3, and SGD with the step sizes that are best over the rounds."""
    first = "Algorithm 1" if split == "samples" else "Algorithm 3"
    n, hues = clients(traces), colors(traces)
    for b, color in hues.items():
        label = f"{first}, B = {rows(split, b, n)}"
        curve(ax, traces[f"{split}_ssca_B{b}"], metric, color, label=label)
    for b, color in hues.items():
        run = traces[chosen(traces, f"{split}_sgd_B{b}")]
        curve(ax, run, metric, color, "--", f"SGD, B = {rows(split, b, n)}")
    for b, color in hues.items():
        half = f"{split}_sgd2_B{b // 2}"
        if points(traces, half):
            run = traces[chosen(traces, half)]
            curve(ax, run, metric, color, ":", f"SGD, B = {b // 2}, E = 2")


def limited(traces: Traces, split: str, ax: Axes, metric: str) -> None:
    """Algorithm 2 or 4, one line style a level."""
    for b, color in colors(traces).items():
        for level, style in zip(levels(traces), STYLES, strict=False):
            curve(ax, traces[f"{split}_limit_B{b}_U{level:g}"], metric, color, style)
    for level, style in zip(levels(traces), STYLES, strict=False):
        ax.plot([], [], style, color=GREY, label=f"U = {level:g}")
        if metric == "cost":
            ax.axhline(level, color=GREY, linestyle=style, linewidth=0.8)


def convergence(split: str, traces: Traces) -> plot.Drawing:
    """Figure 2 or 3: cost above, accuracy below; beside SGD, and the constrained algorithm."""
    second = "Algorithm 2" if split == "samples" else "Algorithm 4"
    panels: dict[str, Callable[[Axes, str], None]] = {
        "beside SGD": partial(free, traces, split),
        f"{second}, constrained": partial(limited, traces, split),
    }

    def draw(fig: Figure) -> None:
        axes = fig.subplots(2, len(panels), sharex=True, sharey="row")
        for line, (metric, label) in zip(axes, METRICS.items(), strict=True):
            for ax, (title, fill) in zip(line, panels.items(), strict=True):
                fill(ax, metric)
                ax.set_xlabel("" if metric == "cost" else "round")
                if metric == "cost":
                    ax.set_title(title)
            line[0].set_ylabel(label)
        costs(axes[0])
        axes[0, -1].legend(loc="upper right")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        across = -(-len(labels) // len(batches(traces)))  # a line a batch
        fig.legend(handles, labels, loc="outside lower center", ncols=across)

    return draw


def debiased(traces: Traces) -> plot.Drawing:
    """Cost of Algorithms 1 and 3 as in the paper, solid, and without their bias, dashed."""

    def both(split: str, ax: Axes) -> None:
        for b, color in colors(traces).items():
            label = f"B = {rows(split, b, clients(traces))}"
            curve(ax, traces[f"{split}_ssca_B{b}"], "cost", color, label=label)
            curve(ax, traces[f"{split}_ssca_B{b}_debiased"], "cost", color, "--")
        ax.plot([], [], "--", color=GREY, label="debiased")

    def align_costs(ax: Axes) -> None:
        first, second = ax.figure.axes
        costs([first, second])

    one, two = (partial(both, split) for split in SPLITS)
    legend = {"loc": "upper right"}
    return row(
        panel(one, title="samples split", legend=legend, ylabel=METRICS["cost"]),
        panel(two, align_costs, title="features split", legend=legend),
        sharey=True,
    )


FIGURES: dict[str, Callable[[Traces], plot.Drawing]] = {
    "figure_2": partial(convergence, "samples"),
    "figure_3": partial(convergence, "features"),
    "debiased": debiased,
}
