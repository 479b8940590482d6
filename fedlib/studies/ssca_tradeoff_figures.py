"""Figures of the study of SSCA's norm against cost and of Theorem 5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from fedlib import plot
from fedlib.studies.ssca_common import SPLITS
from fedlib.studies.ssca_tradeoff_numbers import relative_gradient, sweep
from fedlib.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIGURES"]

Traces = Mapping[str, Trace]
FORMS = {"ssca": ("Algorithm {}, by λ", "o"), "limit": ("Algorithm {}, by U", "s")}
GREY = "#888888"
NUMBERS = {"samples": (1, 2), "features": (3, 4)}


def figure_4(traces: Traces) -> plot.Drawing:
    """|w|^2 against the training cost, a panel for each split."""

    def draw(fig: Figure) -> None:
        axes = fig.subplots(1, 2, sharey=True, sharex=True)
        for ax, split in zip(axes, SPLITS, strict=True):
            for i, (kind, number) in enumerate(zip(FORMS, NUMBERS[split], strict=True)):
                text, marker = FORMS[kind]
                curve(ax, sweep(traces, split, kind), text.format(number), plot.COLORS[i], marker)
            plot.plain_log(ax)
            ax.set_title(split)
            ax.set_xlabel("training cost F")
            ax.legend()
        axes[0].set_ylabel("squared norm |w|²")

    return draw


def curve(ax: Axes, runs: Mapping[float, Trace], label: str, color: str, marker: str) -> None:
    """Means joined by a line with bars of one standard deviation both ways, a faint dot a seed."""
    ends = [(t.metrics["cost"][:, -1], t.metrics["norm"][:, -1]) for t in runs.values()]
    for cost, norm in ends:
        ax.scatter(cost, norm, s=6, color=color, alpha=0.35, linewidths=0)
    x, y = (np.array([e[k].mean() for e in ends]) for k in (0, 1))
    dx, dy = (np.array([e[k].std() for e in ends]) for k in (0, 1))
    ax.errorbar(
        x,
        y,
        xerr=dx,
        yerr=np.minimum(dy, 0.99 * y),
        color=color,
        label=label,
        marker=marker,
        markersize=4,
        linewidth=1.3,
        elinewidth=0.9,
    )


def levels(traces: Traces) -> plot.Drawing:
    """What U sets: the final cost and the test accuracy."""

    def draw(fig: Figure) -> None:
        axes = fig.subplots(1, 2)
        for i, split in enumerate(SPLITS):
            runs = sweep(traces, split, "limit")
            for ax, metric in zip(axes, ("cost", "accuracy"), strict=True):
                each = np.array([t.metrics[metric][:, -1] for t in runs.values()])
                ax.errorbar(
                    [*runs],
                    each.mean(1),
                    each.std(1),
                    color=plot.COLORS[i],
                    label=f"Algorithm {NUMBERS[split][1]}, {split}",
                    marker="os"[i],
                    markersize=4,
                    linestyle=("-", "--")[i],
                    capsize=3,
                )
            axes[0].plot([*runs], [*runs], ":", color="#d62728", label="F = U" if i else None)
        axes[0].set_ylabel("training cost F")
        axes[1].set_ylabel("test accuracy")
        for ax in axes:
            ax.set_xlabel("level U")
        axes[0].legend()

    return draw


def theorem_5(traces: Traces) -> plot.Drawing:
    """The gradient of (27), the cost, and the way after the handover, by level."""

    def draw(fig: Figure) -> None:
        axes = fig.subplots(1, 3)
        runs = {n: t for n, t in traces.items() if n.startswith("theorem_")}
        for i, (name, trace) in enumerate(runs.items()):
            label, color = "U = " + name.removeprefix("theorem_U"), plot.COLORS[i]
            rounds, gradient = relative_gradient(trace)
            axes[0].plot(rounds, gradient.mean(0), color=color, label=label)
            axes[0].plot(rounds, gradient.T, color=color, linewidth=0.5, alpha=0.5)
            plot.bands(axes[1], {label: trace}, "cost", each=True, colors=[color])
            plot.bands(axes[2], {label: trace}, "moved", each=True, colors=[color])
            for ax in axes:
                ax.axvline(handed(trace), color=GREY, linestyle="--", linewidth=1)
        plot.plain_log(axes[0])
        tops = [float(t.metrics["cost"][:, len(t.rounds) // 10 :].max()) for t in runs.values()]
        axes[1].set_ylim(0, 1.2 * max(tops))
        axes[0].set_ylabel("|∇(27)| / |∇F|")
        axes[1].set_ylabel("training cost F")
        axes[2].set_ylabel("way since the handover / |w|")
        for ax in axes:
            ax.set_xlabel("round")
        axes[0].legend()

    return draw


def handed(trace: Trace) -> int:
    """The round of the handover."""
    return int(trace.config["algorithm"]["rounds"])


FIGURES = {"figure_4": figure_4, "levels": levels, "theorem_5": theorem_5}
