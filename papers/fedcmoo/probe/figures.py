"""Figures of the study of Gram estimates and of local progress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from fedlib.core import Trace
from papers.fedcmoo.probe.claims import PAPER_VALUES
from papers.fedcmoo.probe.numbers import running
from papers.kit import plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIGURES"]

Traces = Mapping[str, Trace]

RUNS = {
    "gram_multi_mnist": "MultiMNIST",
    "gram_mnist_fashion": "MNIST+FMNIST",
    "gram_cifar10_mnist": "CIFAR-10+MNIST",
    "gram_attributes": "forty attributes",
}
ROWS = {
    "block": "low rank, blocks",
    "row": "low rank, rows",
    "column": "low rank, columns",
    "largest16": "largest, 16 bits",
    "largest": "largest, 32 bits",
    "masked": "random, scaled",
    "unscaled": "random, unscaled",
}
BELOW = 0.32  # of a row: how far the paper's values lie below ours
WAYS = {"two_way": "two-way", "one_way": "one-way"}
CURVES = {"block": "low rank", "largest16": "largest, 16 bits", "masked": "random, scaled"}
GREY = {"multi_mnist": "MultiMNIST", "mnist_fashion": "MNIST+FMNIST"}
TRAINED = {
    "method": "FedCMOO",
    "alone": "FSMGDA, each objective alone",
    "share": "FSMGDA, share of its step",
}
PAPER = {v.key: v.paper for v in PAPER_VALUES if v.paper is not None}


def errors(traces: Traces) -> plot.Drawing:
    """Mean error of every estimate, a panel a data set; two-way filled, one-way hollow."""
    there = {run: title for run, title in RUNS.items() if run in traces}

    def draw(fig: Figure) -> None:
        axes = fig.subplots(1, len(there), sharey=True, squeeze=False)[0]
        for ax, (run, title) in zip(axes, there.items(), strict=True):
            points(ax, traces[run], run)
            ax.set_xscale("log")
            if run == "gram_attributes":
                ax.set_xlim(10, 1000)
            ax.xaxis.set_major_formatter("{x:g}")
            ax.set_title(title)
            ax.set_xlabel("error of G in %")
        axes[0].set_yticks(range(len(ROWS) + 1), [*ROWS.values(), "clients' own, scaled"])
        axes[0].invert_yaxis()
        fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)

    return draw


def points(ax: Axes, trace: Trace, run: str) -> None:
    """The errors of one run, and a little below them those of the paper's table."""
    own = len(ROWS)
    for i, (way, label) in enumerate(WAYS.items()):
        color = plot.COLORS[i]
        x = [100 * trace.info[f"nrmse_{way}_{name}"].mean() for name in ROWS]
        face = color if i == 0 else "none"
        ax.scatter(x, range(own), s=34, edgecolors=color, facecolors=face, label=label, zorder=3)
    mean = 100 * trace.info["nrmse_own_grams_scaled"].mean()
    ax.scatter(
        [mean], [own], s=34, marker="D", color=plot.COLORS[2], label="clients' own Gram matrices"
    )
    ax.scatter([], [], marker="x", s=22, color="#888888", label="crosses: the paper")
    if run == "gram_attributes":  # the paper's forty tasks are other data
        return
    for i, way in enumerate(WAYS):
        printed = {y: PAPER.get(f"{run}.{way}_{name}") for y, name in enumerate(ROWS)}
        there = {y: x for y, x in printed.items() if x is not None}
        places = [y + BELOW for y in there]
        ax.scatter([*there.values()], places, marker="x", s=22, color=plot.COLORS[i])
    printed_own = PAPER[f"{run}.own_grams_scaled"]
    ax.scatter([printed_own], [own + BELOW], marker="x", s=22, color=plot.COLORS[2])


def errors_by_round(traces: Traces) -> plot.Drawing:
    """The error of the main estimates against the rounds, on both grey data sets."""

    def draw(fig: Figure) -> None:
        axes = fig.subplots(1, 2, sharey=True)
        for ax, (data, title) in zip(axes, GREY.items(), strict=True):
            info = traces[f"gram_{data}"].info
            for i, (name, label) in enumerate(CURVES.items()):
                for way, style in (("two_way", "-"), ("one_way", "--")):
                    x = 100 * info[f"nrmse_{way}_{name}"].mean(0)
                    text = f"{label}, {WAYS[way]}"
                    ax.plot(
                        x,
                        f".{style}",
                        markersize=3,
                        color=plot.COLORS[i],
                        label=text,
                        linewidth=1.5,
                    )
            own = 100 * info["nrmse_own_grams_scaled"].mean(0)
            ax.plot(own, ".:", markersize=3, color=plot.COLORS[3], label="clients' own, scaled")
            ax.set_yscale("log")
            ax.set_ylim(0.001, 100)  # the largest entries may be all that are not zero
            ax.set_title(title)
            ax.set_xlabel("round")
        axes[0].set_ylabel("error of G in %")
        axes[0].yaxis.set_major_formatter("{x:g}")
        axes[1].legend(loc="upper left", bbox_to_anchor=(1, 1.03))

    return draw


def figure_11(traces: Traces) -> plot.Drawing:
    """Gains of local training in loss and accuracy, running means, both data sets."""
    return gained(traces, "")


def equal_steps(traces: Traces) -> plot.Drawing:
    """The same with FedCMOO's step size in both local trainings, round by round."""
    return gained(traces, "_equal")


def gained(traces: Traces, suffix: str) -> plot.Drawing:
    """Two rows, loss and accuracy; a column a data set."""

    def draw(fig: Figure) -> None:
        axes = fig.subplots(2, 2, sharex=True, sharey="row")
        for column, (data, title) in enumerate(GREY.items()):
            info = traces[f"progress_{data}{suffix}"].info
            for row, (what, unit) in enumerate((("loss", 1), ("accuracy", 100))):
                ax = axes[row, column]
                for i, (who, label) in enumerate(TRAINED.items()):
                    each = info[f"{who}_{what}"]
                    mean = unit * (each if suffix else running(each)).mean(0)
                    last = np.arange(each.shape[1] - len(mean), each.shape[1])
                    ax.plot(last, mean, ".-", label=label, color=plot.COLORS[i], linewidth=1.2)
                ax.axhline(0, color="#888888", linewidth=0.8)
            axes[0, column].set_title(title)
            axes[1, column].set_xlabel("round")
        axes[0, 0].set_ylabel("own loss: fall")
        axes[1, 0].set_ylabel("own accuracy: rise, points")
        axes[0, 1].legend()

    return draw


FIGURES = {
    "errors": errors,
    "errors_by_round": errors_by_round,
    "figure_11": figure_11,
    "equal_steps": equal_steps,
}
