"""Figures of the study of SSCA's norm against cost and of Theorem 5."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlib.core import Trace
from papers.kit import plot
from papers.kit.panels import on, panel, row
from papers.kit.study import Traces
from papers.ssca.common import SPLITS
from papers.ssca.tradeoff.numbers import relative_gradient, sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMS = {"ssca": ("Algorithm {}, by λ", "o"), "limit": ("Algorithm {}, by U", "s")}
NUMBERS = {"samples": (1, 2), "features": (3, 4)}


def figure_4(traces: Traces) -> plot.Drawing:
    """|w|^2 against the training cost, a panel for each split."""

    def curves(split: str, ax: Axes) -> None:
        for i, (kind, number) in enumerate(zip(FORMS, NUMBERS[split], strict=True)):
            text, marker = FORMS[kind]
            curve(ax, sweep(traces, split, kind), text.format(number), plot.COLORS[i], marker)
        plot.plain_log(ax)

    first, second = (
        panel(partial(curves, split), title=split, xlabel="training cost F", legend=True)
        for split in SPLITS
    )
    return row(panel(first, ylabel="squared norm |w|²"), second, sharey=True, sharex=True)


def curve(ax: Axes, runs: Mapping[float, Trace], label: str, color: str, marker: str) -> None:
    """Means joined by a line with bars of one standard deviation both ways, a faint dot a seed."""
    ends = [(t.metrics["cost"][:, -1], t.metrics["norm"][:, -1]) for t in runs.values()]
    for cost, norm in ends:
        ax.scatter(cost, norm, s=6, color=color, alpha=0.35, linewidths=0)
    x, y = (np.array([e[k].mean() for e in ends]) for k in (0, 1))
    dx, dy = (np.array([e[k].std() for e in ends]) for k in (0, 1))
    look: Any = {"marker": marker, "markersize": 4, "linewidth": 1.3, "elinewidth": 0.9}
    below = np.minimum(dy, 0.99 * y)
    ax.errorbar(x, y, xerr=dx, yerr=below, color=color, label=label, **look)


def theorem_5(traces: Traces) -> plot.Drawing:
    """The gradient of (27) and the cost, by level."""
    start = "theorem_U"
    runs = {"U = " + n[len(start) :]: t for n, t in traces.items() if n.startswith(start)}
    top = max(float(t.metrics["cost"][:, len(t.rounds) // 10 :].max()) for t in runs.values())

    def gradients(ax: Axes) -> None:
        for (label, trace), color in zip(runs.items(), plot.COLORS, strict=False):
            rounds, gradient = relative_gradient(trace)
            ax.plot(rounds, gradient.mean(0), color=color, label=label)
            ax.plot(rounds, gradient.T, color=color, linewidth=0.5, alpha=0.5)
        plot.plain_log(ax)

    return row(
        panel(gradients, ylabel="|∇(27)| / |∇F|", xlabel="round", legend=True),
        panel(
            on(plot.bands, runs, "cost", each=True), ylim=(0, 1.2 * top), ylabel="training cost F"
        ),
    )


FIGURES = {"figure_4": figure_4, "theorem_5": theorem_5}
