"""The figure of the study of leakage: the pictures that attacks end with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedlib.core.trace import Array
from papers.fedfw.leakage.numbers import places
from papers.kit import plot
from papers.kit.panels import Layer, grid, on
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


def title(place: str) -> str:
    name, kind = place.rsplit("_", 1)
    return f"{NAMES[name]}, {NETWORKS[kind]}"


def figure_1(traces: Traces) -> plot.Drawing:
    """What the attacks on the first pictures end with, a column for each."""
    where = places(traces)

    def line(place: str, k: int) -> list[Layer]:
        layers = []
        for signal, label in LABELS.items():
            above = label.replace(", ", ",\n") if (place, k) == (where[0], 0) else ""
            left = title(place).replace(", ", "\n") if signal == "gradient" else ""
            found = np.asarray(traces[f"{place}_{signal}"].state)[k]
            layers.append(on(picture, found, above, left))
        return layers

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


FIGURES = {"figure_1": figure_1}
