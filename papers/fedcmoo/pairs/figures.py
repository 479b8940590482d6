"""Figures of the study of two tasks in one picture."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlib.core import Trace
from papers.fedcmoo.common import COLOR, GREY, METHODS
from papers.fedcmoo.pairs.claims import FIRST, TABLE_1, minus
from papers.fedcmoo.pairs.quantities import BLOCK, BLOCKS, END, PUBLIC, SOURCE
from papers.fedcmoo.pairs.runs import DATA, DEFAULTS, STEP_SIZES, STEPPED, stepped
from papers.fedcmoo.standin import noted
from papers.kit import plot
from papers.kit.panels import columns, grid, row
from papers.kit.quantities import Query, sweep
from papers.kit.rules import Numbers
from papers.kit.study import Traces

if TYPE_CHECKING:
    import pandas as pd

SINGLE = "#8c8c8c"  # of single-task training
SHOWN = 6  # pictures of a data set in the gallery
KINDS = {  # what the two labels of a picture are
    "multi_mnist": ("digit", "digit"),
    "mnist_fashion": ("digit", "item"),
    "cifar10_mnist": ("object", "digit"),
}
CLASSES = {
    "item": "T-shirt,trouser,pullover,dress,coat,sandal,shirt,sneaker,bag,boot",
    "object": "plane,car,bird,cat,deer,dog,frog,horse,ship,truck",
}
TASKS = {"multi_mnist": ("Digit 1", "Digit 2"), "mnist_fashion": ("digit", "item")}


def methods(traces: Traces, data: str, dropout: bool = True) -> dict[str, Trace]:
    """The runs of the three methods on a data set."""
    runs = sweep(traces, DEFAULTS, "method", data=data, dropout=dropout)
    return {text: percent(runs[method]) for method, text in METHODS.items()}


def percent(trace: Trace) -> Trace:
    scaled = {k: 100 * v if "accuracy" in k else v for k, v in trace.metrics.items()}
    return replace(trace, metrics=scaled)


def tasks(traces: Traces) -> plot.Drawing:
    """Accuracy of the first task above, of the second below; grey: trained in that task alone."""

    def fill(ax: plot.Axes, data: str, task: int) -> None:
        plot.bands(ax, methods(traces, data), f"accuracy_{task}")
        single = sweep(traces, DEFAULTS, "task", data=data, method="single")
        alone = {"that task alone": percent(single[task])}
        plot.bands(ax, alone, f"accuracy_{task}", colors=(SINGLE,))
        ax.lines[-1].set_linestyle("--")
        ax.text(0.04, 0.9, TASKS[data][task - 1], transform=ax.transAxes, style="italic")
        whole_rounds(ax)

    corner: Any = {"legend": {"loc": "lower right"}, "xlabel": ""}
    above = columns(partial(fill, task=1), GREY, ylabel="first task (%)", **corner)
    below = columns(partial(fill, task=2), dict.fromkeys(GREY, ""), ylabel="second task (%)")
    return grid(above, below, sharex="col")


def whole_rounds(ax: plot.Axes) -> None:
    ax.set_xlabel("round")
    ax.locator_params(axis="x", integer=True)


def dropout(traces: Traces) -> plot.Drawing:
    """The three methods with the dropout of the authors' code, dotted without; a column a set."""

    def fill(ax: plot.Axes, data: str) -> None:
        runs = methods(traces, data)
        plot.bands(ax, runs, "accuracy")
        last = max(run.rounds[-1] for run in runs.values())
        for text, plain in methods(traces, data, dropout=False).items():
            shown = plain.rounds <= last
            mean = plain.metrics["accuracy"].mean(0)
            ax.plot(plain.rounds[shown], mean[shown], ":", color=COLOR[text])
        if data == "multi_mnist":
            ax.plot([], [], ":", color=SINGLE, label="without dropout")
        whole_rounds(ax)

    label, corner = "mean test accuracy (%)", {"loc": "lower right"}
    return row(*columns(fill, GREY, ylabel=label, legend=corner), sharey=True)


def overlay(traces: Traces) -> plot.Drawing:
    """Curves of the stored runs with dropout, diamonds of the authors' code, a column a set."""

    def fill(ax: plot.Axes, data: str) -> None:
        runs = sweep(traces, DEFAULTS, "method", data=data, dropout=True)
        for m, text in METHODS.items():
            trace = runs[m]
            color, shown = COLOR[text], trace.rounds <= END
            x = 100 * trace.metrics["accuracy"][:, shown]
            ax.plot(trace.rounds[shown], x.mean(0), color=color, label=text)
            ax.fill_between(trace.rounds[shown], x.min(0), x.max(0), color=color, alpha=0.2, lw=0)
            if theirs := PUBLIC[data].get(m):
                middle = BLOCK * (np.arange(BLOCKS) + 0.5)
                ax.plot(middle, theirs, "D", color=color, markersize=4)
        ax.plot([], [], "D", color=SINGLE, markersize=4, label="the authors' code")

    frame: Any = {"ylim": (55, 96), "xlabel": "round", "legend": {"loc": "lower right"}}
    return row(*columns(fill, GREY, ylabel="mean test accuracy (%)", **frame), sharey=True)


def authors_table(numbers: Numbers) -> pd.DataFrame:
    """Mean accuracy of both tasks: the paper, its authors' code, the stored runs with dropout.

    Empty where no run is as long as the authors'.
    """
    import pandas as pd

    rows = {}
    for data, theirs in PUBLIC.items():
        for m, text in METHODS.items():
            read = partial(Query.of, data=data, method=m, dropout=True)
            if read(f"accuracy_{END}") not in numbers:
                continue
            apart = f"{numbers[read('from_authors')].value:.1f}" if m in theirs else ""
            rows[f"{DATA[data]}, {text}"] = {
                "the paper's Table 1": f"{np.mean(TABLE_1[data][m]):.1f}",
                "the authors' code": f"{theirs[m][-1]:.1f} ({SOURCE[data]})"
                if m in theirs
                else "nothing public",
                f"ours, {END} rounds": numbers[read(f"accuracy_{END}")].text(".1f"),
                "farthest apart": apart,
                "ours at the end": numbers[read("accuracy")].text(".1f"),
            }
    return pd.DataFrame.from_dict(rows, orient="index")


def gallery(traces: Traces) -> plot.Drawing:
    """Figures 5-7: the first test pictures of every data set, with both labels."""
    del traces

    def draw(fig: plot.Figure) -> None:
        axes = fig.subplots(len(DATA), SHOWN, squeeze=False)
        for line, data in zip(axes, DATA, strict=True):
            pictures, shown = first_pictures(data)
            for i, ax in enumerate(line):
                x = pictures[i].transpose(1, 2, 0)
                ax.imshow(x if x.shape[-1] == 3 else x[..., 0], cmap="gray", vmin=0, vmax=255)
                ax.set_title(shown[i], fontsize=8)
                ax.set(xticks=[], yticks=[])
                ax.grid(visible=False)
            line[0].set_ylabel(DATA[data].replace(" + ", " +\n"))

    return draw


def first_pictures(data: str) -> tuple[Any, list[str]]:
    """The first test pictures of a set and what they show.

    They are kept beside this file, so that the page can be made without the data.
    """
    with np.load(Path(__file__).with_name("pictures.npz")) as kept:
        return kept[data], [labels(KINDS[data], y) for y in kept[f"{data}_labels"].tolist()]


def labels(names: tuple[str, str], y: list[int]) -> str:
    words = [
        CLASSES[n].split(",")[k] if n in CLASSES else str(k) for n, k in zip(names, y, strict=True)
    ]
    return " and ".join(words)


def step_table(numbers: Numbers) -> pd.DataFrame:
    """Final mean accuracy of each method at the step sizes of each; empty without such runs."""
    import pandas as pd

    data = "mnist_fashion"
    rows = {}
    for server_lr, lr in STEP_SIZES:
        lead = minus("accuracy", data, FIRST, dropout=True, lr=lr)
        if lead not in numbers:
            continue
        cells = {}
        for method, text in STEPPED.items():
            cells[text] = numbers[Query.of("accuracy", **stepped(method, data, lr))].text(".1f")
        over_average = minus("accuracy", data, ("fedcmoo", "scalarized"), dropout=True, lr=lr)
        cells["FedCMOO - FSMGDA"] = numbers[lead].text(".1f")
        cells["FedCMOO - plain average"] = numbers[over_average].text(".1f")
        rows[f"server {server_lr:g}, clients {lr:g}"] = cells
    return pd.DataFrame.from_dict(rows, orient="index")


FIGURES = {**noted({"tasks": tasks, "dropout": dropout, "overlay": overlay}), "gallery": gallery}
