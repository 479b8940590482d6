"""Figures of the study of SSCA's convergence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fedlib.core import Trace
from papers.kit import plot
from papers.kit.panels import panel, row
from papers.kit.quantities import run_of, sweep
from papers.kit.study import Traces
from papers.ssca.common import NUMBERS, SPLITS, rows
from papers.ssca.convergence.quantities import shown
from papers.ssca.convergence.runs import DEFAULTS

LEVEL_STYLES = ("-", "-.", (0, (3, 1, 1, 1, 1, 1)), (0, (8, 2)))  # SGD is dashed and dotted
GREY = "#8c8c8c"
LEAST = 0.9  # of the lowest mean, where an axis of costs begins
TOP = 3.0  # of the axes of costs; SGD with a large step goes far beyond
METRICS = {"cost": "training cost", "accuracy": "test accuracy (%)"}


def colors(traces: Traces) -> dict[int, str]:
    """A colour for each batch, ascending."""
    batches = sweep(traces, DEFAULTS, "B", split="samples", method="ssca")
    return dict(zip(batches, plot.COLORS, strict=False))


def curve(
    ax: plot.Axes, trace: Trace, metric: str, color: str, style: Any = "-", label: str = ""
) -> None:
    """One curve with its band, accuracies in %."""
    scale = 100 if metric == "accuracy" else 1
    scaled = {metric: scale * trace.metrics[metric]}
    plot.bands(ax, {label: replace(trace, metrics=scaled)}, metric, colors=(color,))
    ax.lines[-1].set(linestyle=style, label=label or "_")  # no entry without a label


def costs(axes: Sequence[plot.Axes]) -> None:
    """One logarithmic axis, from below the lowest mean to a little above the cost of the start."""
    plot.plain_log(axes[0])
    drawn = [np.asarray(line.get_ydata(), float) for ax in axes for line in ax.lines]
    lowest = min(np.nanmin(y) for y in drawn if len(y))
    axes[0].set_ylim(LEAST * lowest, TOP)


def clients(traces: Traces) -> int:
    return int(next(iter(traces.values())).config["problem"]["clients"])


def unconstrained(traces: Traces, split: str, ax: plot.Axes, metric: str) -> None:
    """Algorithm 1 or 3, and SGD with the step sizes that are best over the rounds."""
    hues = colors(traces)
    names = {b: f"B = {rows(split, b, clients(traces))}" for b in hues}
    runs = partial(sweep, shown(traces), DEFAULTS, "B", split=split)
    for b, trace in runs(method="ssca").items():
        curve(ax, trace, metric, hues[b], label=f"Algorithm {NUMBERS[split][0]}, {names[b]}")
    for b, trace in runs(method="sgd").items():
        curve(ax, trace, metric, hues[b], "--", f"SGD, {names[b]}")
    for half, trace in runs(method="sgd2").items():
        curve(ax, trace, metric, hues[2 * half], ":", f"SGD, B = {half}, E = 2")


def limited(traces: Traces, split: str, ax: plot.Axes, metric: str) -> None:
    """Algorithm 2 or 4, one line style a level."""
    runs = {
        b: sweep(traces, DEFAULTS, "U", split=split, method="limit", B=b) for b in colors(traces)
    }
    for b, color in colors(traces).items():
        for trace, style in zip(runs[b].values(), LEVEL_STYLES, strict=False):
            curve(ax, trace, metric, color, style)
    for level, style in zip(next(iter(runs.values())), LEVEL_STYLES, strict=False):
        ax.plot([], [], linestyle=style, color=GREY, label=f"U = {level:g}")
        if metric == "cost":
            ax.axhline(level, color=GREY, linestyle=style, linewidth=0.8)


def convergence(split: str, traces: Traces) -> plot.Drawing:
    """Figure 2 or 3: cost above, accuracy below; beside SGD, and the constrained algorithm."""
    plain, constrained = (f"Algorithm {k}" for k in NUMBERS[split])
    panels: dict[str, Callable[[plot.Axes, str], None]] = {
        f"{plain} and SGD": partial(unconstrained, traces, split),
        f"{constrained}, constrained": partial(limited, traces, split),
    }

    def draw(fig: plot.Figure) -> None:
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
        across = -(-len(labels) // len(colors(traces)))  # a line a batch
        fig.legend(handles, labels, loc="outside lower center", ncols=across)

    return draw


def debiased(traces: Traces) -> plot.Drawing:
    """Cost of Algorithms 1 and 3 as in the paper, solid, and without their bias, dashed."""

    def both(split: str, ax: plot.Axes) -> None:
        for b, color in colors(traces).items():
            run = partial(run_of, traces, DEFAULTS, split=split, method="ssca", B=b)
            label = f"B = {rows(split, b, clients(traces))}"
            curve(ax, run(), "cost", color, label=label)
            curve(ax, run(debiased=True), "cost", color, "--")
        ax.plot([], [], "--", color=GREY, label="debiased")

    def align_costs(ax: plot.Axes) -> None:
        costs(ax.figure.axes)

    samples, features = (partial(both, split) for split in SPLITS)
    legend = {"loc": "upper right"}
    return row(
        panel(samples, title="samples split", legend=legend, ylabel=METRICS["cost"]),
        panel(features, align_costs, title="features split", legend=legend),
        sharey=True,
    )


FIGURES: dict[str, Callable[[Traces], plot.Drawing]] = {
    "figure_2": partial(convergence, "samples"),
    "figure_3": partial(convergence, "features"),
    "debiased": debiased,
}
