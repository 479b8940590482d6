"""Figures of the study of norm against cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from fedlib.core import Trace
from papers.kit import plot
from papers.kit.panels import on, panel, row
from papers.kit.quantities import sweep
from papers.kit.study import Traces
from papers.ssca.common import NUMBERS, SPLITS
from papers.ssca.tradeoff.quantities import SWEPT, final, relative_gradient
from papers.ssca.tradeoff.runs import DEFAULTS

FORMS = {"ssca": ("Algorithm {}, by λ", "o"), "limit": ("Algorithm {}, by U", "s")}


def figure_4(traces: Traces) -> plot.Drawing:
    """|w|^2 against the training cost, a panel for each split."""

    def curves(ax: plot.Axes, split: str) -> None:
        for color, number, (method, form) in zip(
            plot.COLORS, NUMBERS[split], FORMS.items(), strict=False
        ):
            text, marker = form
            runs = sweep(traces, DEFAULTS, SWEPT[method], split=split, method=method)
            curve(ax, runs, text.format(number), color, marker)
        plot.plain_log(ax)

    left, right = (
        panel(on(curves, split), title=split, xlabel="training cost F", legend=True)
        for split in SPLITS
    )
    return row(panel(left, ylabel="squared norm |w|²"), right, sharey=True, sharex=True)


def curve(ax: plot.Axes, runs: Mapping[float, Trace], label: str, color: str, marker: str) -> None:
    """Means joined by a line with bars of one standard deviation both ways, a faint dot a seed."""
    costs = np.array([final(run, "cost") for run in runs.values()])
    norms = np.array([final(run, "norm") for run in runs.values()])
    for cost, norm in zip(costs, norms, strict=True):
        ax.scatter(cost, norm, s=6, color=color, alpha=0.35, linewidths=0)
    mean = norms.mean(1)
    ax.errorbar(
        costs.mean(1),
        mean,
        xerr=costs.std(1),
        yerr=np.minimum(norms.std(1), 0.99 * mean),
        color=color,
        label=label,
        marker=marker,
        markersize=4,
        linewidth=1.3,
        elinewidth=0.9,
    )


def theorem_5(traces: Traces) -> plot.Drawing:
    """The gradient of (27) and the cost, by level."""
    runs = sweep(traces, DEFAULTS, "U", method="theorem")
    top = max(float(t.metrics["cost"][:, len(t.rounds) // 10 :].max()) for t in runs.values())

    def seeds(curves: Callable[[Trace], tuple[Any, Any]], ax: plot.Axes) -> None:
        for (level, trace), color in zip(runs.items(), plot.COLORS, strict=False):
            rounds, y = curves(trace)
            ax.plot(rounds, y.mean(0), color=color, label=f"U = {level:g}")
            ax.plot(rounds, y.T, color=color, linewidth=0.5, alpha=0.5)
        ax.set_xlabel("round")

    gradients = partial(seeds, relative_gradient)
    costs = partial(seeds, lambda trace: (trace.rounds, trace.metrics["cost"]))
    return row(
        panel(gradients, plot.plain_log, ylabel="|∇(27)| / |∇F|", legend=True),
        panel(costs, ylim=(0, 1.2 * top), ylabel="training cost F"),
    )


FIGURES = {"figure_4": figure_4, "theorem_5": theorem_5}
