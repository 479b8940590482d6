"""The pictures that attacks end with, and what they are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedlib.core.trace import Array
from papers.kit.quantities import labels_of
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


def places(traces: Traces) -> list[tuple[str, str]]:
    """Data set and network of all attacks."""
    names: dict[tuple[str, str], None] = {}
    for trace in traces.values():
        labels = labels_of(trace)
        names[str(labels["data"]), str(labels["network"])] = None
    return [*names]


def title(data: str, network: str) -> str:
    """A data set and a network in words."""
    return f"{NAMES[data]}, {NETWORKS[network]}"


def picture(ax: Axes, w: Array) -> None:
    """Show a picture that an attack ended with, values cut off at 0 and 1."""
    grey = round(len(w) ** 0.5) ** 2 == len(w)
    channels = 1 if grey else 3
    side = round((len(w) / channels) ** 0.5)
    values = w.reshape(channels, side, side).transpose(1, 2, 0).clip(0, 1)
    ax.imshow(values, cmap="gray", vmin=0, vmax=1)
    ax.set(xticks=[], yticks=[])
