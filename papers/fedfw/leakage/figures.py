"""The figure of the study of leakage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedlib.core.trace import Array
from papers.fedfw.leakage.runs import DEFAULTS
from papers.kit import plot
from papers.kit.panels import Layer, grid, on
from papers.kit.quantities import labels_of, run_of
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
NAMES = {"digits": "digits 8 x 8", "mnist": "MNIST", "cifar10": "CIFAR-10, 16 x 16"}
NETWORKS = {"mlp": "one hidden layer", "lenet": "LeNet"}
ROWS = 2  # pictures shown of each data set and network


def places(traces: Traces) -> list[tuple[str, str]]:
    """Data set and network of all attacks."""
    labels = map(labels_of, traces.values())
    return [*dict.fromkeys((str(of_run["data"]), str(of_run["network"])) for of_run in labels)]


def title(data: str, network: str) -> str:
    """A data set and a network in words."""
    return f"{NAMES[data]}, {NETWORKS[network]}"


def figure_1(traces: Traces) -> plot.Drawing:
    """What the attacks on the first pictures end with, a column for each."""
    rows: list[list[Layer]] = []
    for data, network in places(traces):
        runs = {
            signal: run_of(traces, DEFAULTS, data=data, network=network, signal=signal)
            for signal in LABELS
        }
        for number in range(min(ROWS, len(runs["gradient"].seeds))):
            left = title(data, network).replace(", ", "\n")
            layers = []
            for signal, label in LABELS.items():
                above = "" if rows else label.replace(", ", ",\n")
                model = np.asarray(runs[signal].state)[number]
                layers.append(on(picture, model, above, "" if layers else left))
            rows.append(layers)
    return grid(*rows)


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


FIGURES = {"figure_1": figure_1}
