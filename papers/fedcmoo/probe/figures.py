"""Figures of the study of Gram estimates and of local progress."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from fedlib.core import Trace
from papers.fedcmoo.common import COLOR, GREY
from papers.fedcmoo.probe.claims import PAPER_VALUES, error
from papers.fedcmoo.probe.quantities import EXCHANGES, running
from papers.fedcmoo.probe.quantities import error as error_of
from papers.fedcmoo.probe.runs import DEFAULTS, TRAINED
from papers.fedcmoo.standin import noted
from papers.kit import plot
from papers.kit.panels import columns, grid
from papers.kit.quantities import run_of, sweep
from papers.kit.study import Traces

COLUMNS = {
    "multi_mnist": "MultiMNIST",
    "mnist_fashion": "MNIST + Fashion-MNIST",
    "cifar10_mnist": "CIFAR-10+MNIST",
    "attributes": "forty attributes",
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
PAPER = {value.key: value.paper for value in PAPER_VALUES}


def errors(traces: Traces) -> plot.Drawing:
    """Table 3: the errors of the estimates, a panel for each data set."""
    runs = sweep(traces, DEFAULTS, "data", probe="gram")
    shown = {data: title for data, title in COLUMNS.items() if data in runs}

    def draw(fig: plot.Figure) -> None:
        axes = fig.subplots(1, len(shown), sharey=True, squeeze=False)[0]
        for ax, (data, title) in zip(axes, shown.items(), strict=True):
            ours(ax, runs[data])
            if data == "attributes":  # the paper's forty tasks are other data
                ax.set_xlim(10, 1000)
            else:
                theirs(ax, data)
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter("{x:g}")
            ax.set_title(title)
            ax.set_xlabel("error of G in %")
        axes[0].set_yticks(range(len(ROWS) + 1), [*ROWS.values(), "clients' own, scaled"])
        axes[0].invert_yaxis()
        labels = axes[0].get_legend_handles_labels()
        fig.legend(*labels, loc="outside lower center", ncols=4)

    return draw


def ours(ax: plot.Axes, trace: Trace) -> None:
    """The errors of one run."""
    faces = (plot.COLORS[0], "none")
    for (exchange, label), color, face in zip(EXCHANGES.items(), plot.COLORS, faces, strict=False):
        values = [error_of(trace, f"{exchange}_{sketch}").value for sketch in ROWS]
        style: Any = {"edgecolors": color, "facecolors": face, "label": label}
        ax.scatter(values, range(len(ROWS)), s=34, zorder=3, **style)
    scaled = error_of(trace, "own_grams_scaled").value
    style = {"marker": "D", "color": plot.COLORS[2], "label": "clients' own Gram matrices"}
    ax.scatter([scaled], [len(ROWS)], s=34, **style)
    ax.scatter([], [], marker="x", s=22, color="#888888", label="crosses: the paper")


def theirs(ax: plot.Axes, data: str) -> None:
    """The paper's values, a little below ours."""
    cross: Any = {"marker": "x", "s": 22}
    for exchange, color in zip(EXCHANGES, plot.COLORS, strict=False):
        queries = [error(data, exchange=exchange, sketch=sketch) for sketch in ROWS]
        places = [place + BELOW for place, query in enumerate(queries) if query in PAPER]
        ax.scatter([PAPER[q] for q in queries if q in PAPER], places, color=color, **cross)
    scaled = PAPER[error(data, sketch="own_grams_scaled")]
    ax.scatter([scaled], [len(ROWS) + BELOW], color=plot.COLORS[2], **cross)


def gained(traces: Traces, steps: str) -> plot.Drawing:
    """Gains of local training in loss and accuracy, both data sets; equal steps round by round."""

    def fill(ax: plot.Axes, data: str, curve: str, unit: float) -> None:
        trace = run_of(traces, DEFAULTS, probe="progress", data=data, steps=steps)
        for trained, label in TRAINED.items():
            gains = trace.info[f"{trained}_{curve}"]
            mean = unit * (gains if steps == "equal" else running(gains)).mean(0)
            rounds = np.arange(gains.shape[1] - len(mean), gains.shape[1])
            color = COLOR[label.partition(",")[0]]
            mark = "x" if trained == "share" else "."
            ax.plot(rounds, mean, f"{mark}-", label=label, color=color, linewidth=1.2)
        ax.axhline(0, color="#888888", linewidth=0.8)

    loss = partial(fill, curve="loss", unit=1)
    accuracy = partial(fill, curve="accuracy", unit=100)
    rise: Any = {"ylabel": "own accuracy: rise, points", "xlabel": "round"}
    return grid(
        columns(loss, GREY, ylabel="own loss: fall", legend=True, at=-1),
        columns(accuracy, dict.fromkeys(GREY, ""), **rise),
        sharex=True,
        sharey="row",
    )


FIGURES = noted(
    {
        "errors": errors,
        "figure_11": partial(gained, steps="printed"),
        "equal_steps": partial(gained, steps="equal"),
    }
)
