"""Figures of the study of two tasks in one picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fedlib import plot
from fedlib.studies.cmoo_common import test_pictures
from fedlib.studies.cmoo_pairs_numbers import DATA, GREY, METHODS, MIXED, VARIANTS
from fedlib.studies.cmoo_standin import standin_pairs, what
from fedlib.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIGURES", "gallery", "gallery_text"]

Traces = Mapping[str, Trace]
COLOR = dict(zip((*METHODS.values(), "Scalarized"), plot.COLORS, strict=False))
SINGLE = "#8c8c8c"  # of single-task training
SHOWN = 6  # pictures of a data set in the gallery
CLASSES = {
    "item": "T-shirt,trouser,pullover,dress,coat,sandal,shirt,sneaker,bag,boot",
    "object": "plane,car,bird,cat,deer,dog,frog,horse,ship,truck",
}
TASKS = {
    "multi_mnist": ("Digit 1", "Digit 2"),
    "mnist_fashion": ("digit", "item"),
    "cifar10_mnist": ("object", "digit"),
}


def methods(traces: Traces, data: str) -> dict[str, Trace]:
    """The three methods on one data set, accuracies in %."""
    return {text: percent(traces[f"{data}_{m}"]) for m, text in METHODS.items()}


def percent(trace: Trace) -> Trace:
    """The run with its accuracies in %."""
    scaled = {k: 100 * v if "accuracy" in k else v for k, v in trace.metrics.items()}
    return replace(trace, metrics=scaled)


def title(traces: Traces, data: str) -> str:
    """The data set's name; where it was shortened, how far it got."""
    run = traces[f"{data}_fedcmoo"]
    seeds = f"{len(run.seeds)} seeds" if len(run.seeds) > 1 else "one seed"
    rounds = "one round" if run.rounds[-1] == 1 else f"{run.rounds[-1]} rounds"
    short = "" if data in GREY else f"\n{rounds}, {seeds}"
    return DATA[data] + short


def curves(traces: Traces) -> plot.Drawing:
    """Figures 1, 8, 9: mean test accuracy above, mean test loss below, a column a data set."""
    rows = (("accuracy", "mean test accuracy (%)"), ("loss", "mean test loss"))
    return grid(traces, lambda ax, data, k: plot.bands(ax, methods(traces, data), rows[k][0]), rows)


def tasks(traces: Traces) -> plot.Drawing:
    """Accuracy of the first task above, of the second below; grey: trained in that task alone."""
    rows = (("accuracy_1", "first task (%)"), ("accuracy_2", "second task (%)"))

    def panel(ax: Axes, data: str, k: int) -> None:
        plot.bands(ax, methods(traces, data), rows[k][0])
        alone = f"{data}_single_{k + 1}"
        if alone in traces:
            run = {"that task alone": percent(traces[alone])}
            plot.bands(ax, run, rows[k][0], colors=(SINGLE,))
            ax.lines[-1].set_linestyle("--")
        task = task_names(traces, data)[k]
        ax.text(0.04, 0.9, task, transform=ax.transAxes, style="italic")

    return grid(traces, panel, rows)


def task_names(traces: Traces, data: str) -> tuple[str, str]:
    """What the two tasks of a data set name."""
    if what(traces) is None:
        return TASKS[data]
    first, second = traces[f"{data}_fedcmoo"].config["problem"]["tasks"]
    return str(first), str(second)


def grid(
    traces: Traces, panel: Callable[[Axes, str, int], None], rows: tuple[tuple[str, str], ...]
) -> plot.Drawing:
    """Two rows of panels, a column a data set; `panel(axes, data, row)` fills one."""

    def draw(fig: Figure) -> None:
        axes = fig.subplots(len(rows), len(DATA), sharex="col", squeeze=False)
        for k, (_, label) in enumerate(rows):
            for ax, data in zip(axes[k], DATA, strict=True):
                panel(ax, data, k)
                ax.set_xlabel("round" if k == len(rows) - 1 else "")
                ax.locator_params(axis="x", integer=True)
                if k == 0:
                    ax.set_title(title(traces, data))
            axes[k, 0].set_ylabel(label)
        axes[0, 0].legend(loc="lower right")

    return draw


def weights(traces: Traces) -> plot.Drawing:
    """The weight of the first task in every round, a dot a seed, a column a data set."""

    def draw(fig: Figure) -> None:
        axes = fig.subplots(1, len(DATA), sharey=True)
        for ax, data in zip(axes, DATA, strict=True):
            for text, run in methods(traces, data).items():
                w = run.info["weight_1"]
                ax.plot(np.arange(w.shape[1]), w.T, ".", color=COLOR[text], markersize=3)
                ax.plot([], [], "o", color=COLOR[text], label=text)
            ax.set_title(title(traces, data))
            ax.set_xlabel("round")
            ax.locator_params(axis="x", integer=True)
            ax.set_ylim(-0.03, 1.03)
        axes[0].set_ylabel("weight of the first task")
        fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)

    return draw


def mixed(traces: Traces) -> plot.Drawing:
    """Table 2's first half as curves: accuracy of both digits, and the first one's weight."""
    runs = {text: percent(traces[f"mixed_{m}"]) for m, text in MIXED.items()}
    shown = {"accuracy_1": "Digit 1, squared loss", "accuracy_2": "Digit 2, NLL"}

    def draw(fig: Figure) -> None:
        axes = fig.subplots(1, 3)
        for ax, (metric, text) in zip(axes, shown.items(), strict=False):
            plot.bands(ax, runs, metric, colors=[COLOR[t] for t in runs])
            ax.set_ylim(0, 100)
            ax.set_title(text)
        axes[0].set_ylabel("test accuracy (%)")
        weighted = {text: run for text, run in runs.items() if "weight_1" in run.info}
        plot.bands(axes[2], weighted, "weight_1", colors=[COLOR[t] for t in weighted])
        axes[2].axhline(0.5, color=COLOR["Scalarized"], linewidth=1.5)
        axes[2].set_ylim(-0.03, 1.03)
        axes[2].set_title("weight of Digit 1")
        fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)

    return draw


def variants(traces: Traces) -> plot.Drawing:
    """Ways to estimate the Gram matrix, and the least weight: one seed, mean accuracy."""
    runs = {text: f"mnist_fashion_{name}" for name, text in VARIANTS.items()}
    few = traces["mnist_fashion_fedcmoo_oneway"].seeds
    same = {text: of_seeds(percent(traces[run]), few) for text, run in runs.items()}
    panels = [("FedCMOO", "FedCMOO, one-way"), tuple(t for t in same if "Pref" in t)]

    def draw(fig: Figure) -> None:
        axes = fig.subplots(1, 2, sharey=True)
        for ax, names, used in zip(axes, panels, (plot.COLORS[1::4], plot.COLORS[2:]), strict=True):
            plot.bands(ax, {n: same[n] for n in names}, "accuracy", colors=used)
            for line, style in zip(ax.lines, ("-", "--", ":"), strict=False):
                line.set_linestyle(style)
            ax.legend(loc="lower right")
        axes[0].set_ylabel("mean test accuracy (%)")

    return draw


def dropout(traces: Traces) -> plot.Drawing:
    """The three methods with the dropout of the authors' code, dotted without; a column a set."""

    def draw(fig: Figure) -> None:
        axes = fig.subplots(1, len(GREY), sharey=True)
        for ax, data in zip(axes, GREY, strict=True):
            runs = {text: percent(traces[f"{data}_{m}_dropout"]) for m, text in METHODS.items()}
            plot.bands(ax, runs, "accuracy")
            last = max(run.rounds[-1] for run in runs.values())
            for m, text in METHODS.items():
                plain = percent(traces[f"{data}_{m}"])
                shown = plain.rounds <= last
                mean = plain.metrics["accuracy"].mean(0)
                ax.plot(plain.rounds[shown], mean[shown], ":", color=COLOR[text])
            ax.set(xlabel="round", title=DATA[data])
            ax.locator_params(axis="x", integer=True)
        axes[0].plot([], [], ":", color=SINGLE, label="without dropout")
        axes[0].set_ylabel("mean test accuracy (%)")
        axes[0].legend(loc="lower right")

    return draw


def of_seeds(trace: Trace, seeds: tuple[int, ...]) -> Trace:
    """Those of a run's seeds that are among `seeds`; all of them if none is."""
    rows = [i for i, s in enumerate(trace.seeds) if s in seeds] or [*range(len(trace.seeds))]
    return replace(
        trace,
        metrics={k: v[rows] for k, v in trace.metrics.items()},
        info={k: v[rows] for k, v in trace.info.items()},
        seeds=tuple(trace.seeds[i] for i in rows),
    )


def gallery(traces: Traces) -> plot.Drawing:
    """Figures 5-7: the first test pictures of every data set, with both labels."""
    there = [data for data in DATA if f"{data}_fedcmoo" in traces]
    if what(traces) is None:
        sets = {data: test_pictures(data) for data in there}
    else:
        sets = {data: standin_pairs(data, "test") for data in there}

    def draw(fig: Figure) -> None:
        axes = fig.subplots(len(sets), SHOWN, squeeze=False)
        for row, (data, pictures) in zip(axes, sets.items(), strict=True):
            for i, ax in enumerate(row):
                x = pictures.X[i].permute(1, 2, 0).numpy()
                ax.imshow(x if x.shape[-1] == 3 else x[..., 0], cmap="gray", vmin=0, vmax=255)
                ax.set_title(labels(pictures.names, pictures.y[i].tolist()), fontsize=8)
                ax.set_xticks([])
                ax.set_yticks([])
                ax.grid(visible=False)
            row[0].set_ylabel(DATA[data].replace(" + ", " +\n"))

    return draw


def gallery_text(traces: Traces) -> str:
    """What `gallery` shows, in words."""
    rows = "Three rows of six test pictures with their two labels: "
    if what(traces) is not None:
        return rows + (
            "two overlapping coarse digits in white on black; a digit at the top left and one with "
            "dim stripes at the bottom right; and large coloured digits with a pale one on top."
        )
    return rows + (
        "two overlapping handwritten digits in white on black; a digit at the top left and an item "
        "of clothing at the bottom right; and small colour photographs with a pale digit over "
        "their middle."
    )


def labels(names: tuple[str, str], y: list[int]) -> str:
    """Both labels of a picture in words; digits as digits."""
    words = [
        CLASSES[n].split(",")[k] if n in CLASSES else str(k) for n, k in zip(names, y, strict=True)
    ]
    return " and ".join(words)


FIGURES = {
    "curves": curves,
    "tasks": tasks,
    "weights": weights,
    "mixed": mixed,
    "variants": variants,
    "dropout": dropout,
    "gallery": gallery,
}
