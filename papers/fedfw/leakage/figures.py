"""Figures of the study of leakage: PSNR by step, and the pictures themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fedlib.core.trace import Array
from papers.fedfw.leakage.numbers import CLEAR, places
from papers.kit import plot
from papers.kit.panels import Layer, grid, legend_below, on, panel
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS = {
    "gradient": "gradient",
    "l2": "ℓ2 oracle",
    "tensors": "ℓ2 oracle, each tensor",
    "l1": "ℓ1 oracle",
    "soft": "ℓ1 oracle, softened attack",
}
STYLES = {"gradient": "-", "l2": "--", "tensors": "-.", "l1": "-", "soft": ":"}
NAMES = {"digits": "digits 8 x 8", "mnist": "MNIST", "cifar10": "CIFAR-10, 16 x 16"}
NETWORKS = {"mlp": "one hidden layer", "lenet": "LeNet"}
ROWS = 2  # pictures shown of each data set and network
LOWEST = -20.0  # dB


def title(place: str) -> str:
    name, kind = place.rsplit("_", 1)
    return f"{NAMES[name]}, {NETWORKS[kind]}"


def psnr(traces: Traces) -> plot.Drawing:
    where = places(traces)
    width = min(2, len(where))

    def one(i: int) -> Layer:
        if i >= len(where):
            return lambda ax: ax.set_axis_off()
        frame = {"title": title(where[i]), "xlabel": "steps of L-BFGS"}
        ylabel = "" if i % width else "PSNR in dB"
        return panel(on(curves, traces, where[i]), ylabel=ylabel, legend=False, **frame)

    rows = ([one(i) for i in range(k, k + width)] for k in range(0, len(where), width))
    return legend_below(grid(*rows, sharey=True), 3)


def curves(ax: Axes, traces: Traces, place: str) -> None:
    """The median over the seeds, and from the lowest to the highest seed a band."""
    for i, (signal, label) in enumerate(LABELS.items()):
        trace, color = traces[f"{place}_{signal}"], plot.COLORS[i]
        t, x = trace.rounds, trace.metrics["psnr"]
        look: Any = {"linestyle": STYLES[signal], "label": label, "shade": 0.08}
        plot.band(ax, t, x, middle="median", around=plot.RANGE, color=color, **look)
    plot.level(ax, CLEAR, "60 dB")
    ax.set_ylim(bottom=LOWEST)
    ax.locator_params(axis="x", integer=True)


def figure_1(traces: Traces) -> plot.Drawing:
    where = places(traces)
    heads = ["client's picture", *LABELS.values()]

    def line(place: str, k: int) -> list[Layer]:
        name = place.rsplit("_", 1)[0]
        read = traces[f"{name}_read_gradient"]  # to rounding the client's own
        runs = [read, *(traces[f"{place}_{s}"] for s in LABELS)]
        top = [t.replace(", ", ",\n") if (place, k) == (where[0], 0) else "" for t in heads]
        side = [title(place).replace(", ", "\n"), *[""] * len(LABELS)]
        return [
            on(picture, np.asarray(trace.state)[k], above, left)
            for trace, above, left in zip(runs, top, side, strict=True)
        ]

    count = min(ROWS, len(traces[f"{where[0]}_gradient"].seeds))
    return grid(*(line(place, k) for place in where for k in range(count)))


def picture(ax: Axes, w: Array, above: str, left: str) -> None:
    grey = round(len(w) ** 0.5) ** 2 == len(w)
    channels = 1 if grey else 3
    side = round((len(w) / channels) ** 0.5)
    values = w.reshape(channels, side, side).transpose(1, 2, 0).clip(0, 1)
    ax.imshow(values[..., 0] if grey else values, cmap="gray", vmin=0, vmax=1)
    ax.set(xticks=[], yticks=[])
    ax.grid(visible=False)
    ax.set_title(above, fontsize=8)
    ax.set_ylabel(left, fontsize=6)


FIGURES = {"psnr": psnr, "figure_1": figure_1}
