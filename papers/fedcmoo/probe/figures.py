"""Figures of the study of Gram estimates and of local progress."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fedlib.core import Trace
from papers.fedcmoo.common import COLOR, GREY
from papers.fedcmoo.probe.claims import PAPER_VALUES
from papers.fedcmoo.probe.numbers import WAYS, running
from papers.kit import plot
from papers.kit.panels import columns, grid
from papers.kit.study import Traces

RUNS = {
    "gram_multi_mnist": "MultiMNIST",
    "gram_mnist_fashion": "MNIST + Fashion-MNIST",
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
TRAINED = {
    "method": "FedCMOO",
    "alone": "FSMGDA, each objective alone",
    "share": "FSMGDA, share of its step",
}
PAPER = {v.key: v.paper for v in PAPER_VALUES if v.paper is not None}


def errors(traces: Traces) -> plot.Drawing:
    there = {run: title for run, title in RUNS.items() if run in traces}

    def draw(fig: plot.Figure) -> None:
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
        labels = axes[0].get_legend_handles_labels()
        fig.legend(*labels, loc="outside lower center", ncols=4)

    return draw


def points(ax: plot.Axes, trace: Trace, run: str) -> None:
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


def gained(traces: Traces, suffix: str) -> plot.Drawing:
    """Gains of local training in loss and accuracy, both data sets; equal steps round by round."""

    def fill(ax: plot.Axes, data: str, what: str, unit: float) -> None:
        info = traces[f"progress_{data}{suffix}"].info
        for who, label in TRAINED.items():
            each = info[f"{who}_{what}"]
            mean = unit * (each if suffix else running(each)).mean(0)
            last = np.arange(each.shape[1] - len(mean), each.shape[1])
            color, mark = COLOR[label.partition(",")[0]], "x" if who == "share" else "."
            ax.plot(last, mean, f"{mark}-", label=label, color=color, linewidth=1.2)
        ax.axhline(0, color="#888888", linewidth=0.8)

    loss, accuracy = (
        partial(fill, what=what, unit=unit) for what, unit in (("loss", 1), ("accuracy", 100))
    )
    rise: Any = {"ylabel": "own accuracy: rise, points", "xlabel": "round"}
    return grid(
        columns(loss, GREY, ylabel="own loss: fall", legend=True, at=-1),
        columns(accuracy, dict.fromkeys(GREY, ""), **rise),
        sharex=True,
        sharey="row",
    )


FIGURES: dict[str, Callable[[Traces], plot.Drawing]] = {
    "errors": errors,
    "figure_11": partial(gained, suffix=""),
    "equal_steps": partial(gained, suffix="_equal"),
}
