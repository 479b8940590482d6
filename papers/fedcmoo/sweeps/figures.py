"""The figures of the study of local steps and preferences."""

from __future__ import annotations

from typing import Any

from fedlib.core import Trace
from papers.fedcmoo.common import COLOR, GREY, TWO
from papers.fedcmoo.standin import noted
from papers.fedcmoo.sweeps.quantities import final, ratios_of
from papers.fedcmoo.sweeps.runs import DEFAULTS
from papers.kit import plot
from papers.kit.numbers import mean
from papers.kit.panels import columns, row
from papers.kit.quantities import sweep
from papers.kit.study import Traces

AXES = {
    "multi_mnist": ("F₁, first digit", "F₂, second digit"),
    "mnist_fashion": ("F₁, digit", "F₂, item"),
}


def figure_2(traces: Traces) -> plot.Drawing:
    """Final accuracy of both methods by the number of local steps."""

    def fill(ax: plot.Axes, data: str) -> None:
        accuracies = {}
        for method, label in TWO.items():
            runs = sweep(traces, DEFAULTS, "steps", data=data, method=method)
            accuracies[label] = [mean(final(trace, "accuracy")) for trace in runs.values()]
        plot.dots(ax, [*runs], accuracies, colors=[COLOR[label] for label in accuracies])
        plot.log_ticks(ax, [*runs])

    frame: Any = {"ylabel": "final mean test accuracy", "xlabel": "local steps"}
    return row(*columns(fill, GREY, legend=True, **frame), sharey=True)


def figure_4(traces: Traces) -> plot.Drawing:
    """Final test losses for every preference, with its ray r1 F1 = r2 F2."""

    def fill(ax: plot.Axes, data: str) -> None:
        runs = sweep(traces, DEFAULTS, "ratio", data=data).values()
        top = max(final(trace, loss).max() for trace in runs for loss in ("loss_1", "loss_2"))
        for trace, color in zip(runs, plot.COLORS, strict=False):
            preferred(ax, trace, color, 1.25 * top)
        xlabel, ylabel = (f"test loss {text}" for text in AXES[data])
        limits = (0, 1.25 * top)
        ax.set(xlim=limits, ylim=limits, aspect="equal", xlabel=xlabel, ylabel=ylabel)

    outside = {"title": "r₁ : r₂", "loc": "upper left", "bbox_to_anchor": (1, 1.03)}
    return row(*columns(fill, GREY, legend=outside, at=-1))


def preferred(ax: plot.Axes, trace: Trace, color: str, top: float) -> None:
    """One preference: its ray, the path of the test losses, and where it ends."""
    r_1, r_2 = ratios_of(trace)
    ax.plot([0, top], [0, top * r_1 / r_2], "--", color=color, linewidth=1)
    x, y = (trace.metrics[loss].mean(0) for loss in ("loss_1", "loss_2"))
    ax.plot(x, y, color=color, linewidth=1, alpha=0.7)
    x, y = (final(trace, loss) for loss in ("loss_1", "loss_2"))
    ax.scatter(x, y, color=color, label=f"{r_1:g} : {r_2:g}", zorder=3)


FIGURES = noted({"figure_2": figure_2, "figure_4": figure_4})
