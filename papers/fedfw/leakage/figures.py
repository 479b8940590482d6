"""Figures of the study of leakage: PSNR by step, and the pictures themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedlib.core import Trace
from papers.fedfw.leakage.numbers import CLEAR, places
from papers.kit import plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIGURES"]

Traces = Mapping[str, Trace]
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
    """Data set and network in words."""
    name, kind = place.rsplit("_", 1)
    return f"{NAMES[name]}, {NETWORKS[kind]}"


def psnr(traces: Traces) -> plot.Drawing:
    """PSNR against the steps, a panel for each data set and network."""

    def draw(fig: Figure) -> None:
        where = places(traces)
        columns = min(2, len(where))
        axes = fig.subplots(-(-len(where) // columns), columns, sharey=True, squeeze=False)
        for ax in axes.flat[len(where) :]:
            ax.set_axis_off()
        for ax, place in zip(axes.flat, where, strict=False):
            for i, (signal, label) in enumerate(LABELS.items()):
                curve(ax, traces[f"{place}_{signal}"], label, plot.COLORS[i], STYLES[signal])
            plot.level(ax, CLEAR, "60 dB")
            ax.set_ylim(bottom=LOWEST)
            ax.set_title(title(place))
            ax.set_xlabel("steps of L-BFGS")
            ax.locator_params(axis="x", integer=True)
        for row in axes:
            row[0].set_ylabel("PSNR in dB")
        lines, names = axes.flat[0].get_legend_handles_labels()
        fig.legend(lines, names, loc="outside lower center", ncols=3)

    return draw


def curve(ax: Axes, trace: Trace, label: str, color: str, style: str) -> None:
    """The median over the seeds, and from the lowest to the highest seed a band."""
    x = trace.metrics["psnr"]
    t = trace.rounds
    ax.plot(t, np.median(x, 0), style, color=color, label=label, linewidth=1.5)
    ax.fill_between(t, x.min(0), x.max(0), color=color, alpha=0.08, linewidth=0)


def figure_1(traces: Traces) -> plot.Drawing:
    """The pictures that the attacks end with, beside the client's."""

    def draw(fig: Figure) -> None:
        where = places(traces)
        count = min(ROWS, len(traces[f"{where[0]}_gradient"].seeds))
        axes = fig.subplots(len(where) * count, len(LABELS) + 1, squeeze=False)
        for i, place in enumerate(where):
            name = place.rsplit("_", 1)[0]
            shown = [traces[f"{name}_shown"], *(traces[f"{place}_{s}"] for s in LABELS)]
            for k in range(count):
                for ax, trace in zip(axes[i * count + k], shown, strict=True):
                    picture(ax, np.asarray(trace.state)[k])
                axes[i * count + k, 0].set_ylabel(title(place).replace(", ", "\n"), fontsize=6)
        for ax, text in zip(axes[0], ("client's picture", *LABELS.values()), strict=True):
            ax.set_title(text.replace(", ", ",\n"), fontsize=8)

    return draw


def picture(ax: Axes, w: NDArray[np.float64]) -> None:
    """One picture, its values cut off at 0 and 1."""
    grey = round(len(w) ** 0.5) ** 2 == len(w)
    channels = 1 if grey else 3
    side = round((len(w) / channels) ** 0.5)
    values = w.reshape(channels, side, side).transpose(1, 2, 0).clip(0, 1)
    ax.imshow(values[..., 0] if grey else values, cmap="gray", vmin=0, vmax=1)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.grid(visible=False)


FIGURES = {"psnr": psnr, "figure_1": figure_1}
