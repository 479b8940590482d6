"""Figures of the sweeps over local steps and over preferences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fedlib.core import Trace
from papers.fedcmoo.common import GREY
from papers.fedcmoo.sweeps.numbers import final, ratios_of
from papers.kit import plot
from papers.kit.numbers import mean
from papers.kit.panels import columns, row
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METHODS = {"fedcmoo": "FedCMOO", "fsmgda": "FSMGDA"}
AXES = {
    "multi_mnist": ("F₁, first digit", "F₂, second digit"),
    "mnist_fashion": ("F₁, digit", "F₂, item"),
}


def by_steps(traces: Traces, data: str, name: str) -> dict[int, Trace]:
    start = f"{data}_{name}_steps"
    found = {int(n.removeprefix(start)): t for n, t in traces.items() if n.startswith(start)}
    return dict(sorted(found.items()))


def by_preference(traces: Traces, data: str) -> dict[str, Trace]:
    """The runs with different preferences, as `r_1 : r_2`."""
    runs = [t for n, t in traces.items() if n.startswith(f"{data}_ratio")]
    ordered = sorted(runs, key=lambda t: ratios_of(t)[1] / ratios_of(t)[0])
    return {"{:g} : {:g}".format(*ratios_of(t)): t for t in ordered}


def figure_2(traces: Traces) -> plot.Drawing:
    def fill(ax: Axes, data: str) -> None:
        runs = {label: by_steps(traces, data, name) for name, label in METHODS.items()}
        steps = list(runs["FedCMOO"])
        rows = {k: [mean(final(t, "accuracy")) for t in v.values()] for k, v in runs.items()}
        plot.dots(ax, steps, rows)
        plot.log_ticks(ax, steps)

    frame: Any = {"ylabel": "final mean test accuracy", "xlabel": "local steps"}
    return row(*columns(fill, GREY, legend=True, **frame), sharey=True)


def figure_4(traces: Traces) -> plot.Drawing:
    """Final test losses for every preference, with its ray r1 F1 = r2 F2."""

    def fill(ax: Axes, data: str) -> None:
        runs = by_preference(traces, data)
        top = 1.25 * max(final(t, k).max() for t in runs.values() for k in ("loss_1", "loss_2"))
        for i, (label, trace) in enumerate(runs.items()):
            preferred(ax, trace, label, plot.COLORS[i], top)
        first, second = (f"test loss {text}" for text in AXES[data])
        ax.set(xlim=(0, top), ylim=(0, top), aspect="equal", xlabel=first, ylabel=second)

    outside = {"title": "r₁ : r₂", "loc": "upper left", "bbox_to_anchor": (1, 1.03)}
    return row(*columns(fill, GREY, legend=outside, at=-1))


def preferred(ax: Axes, trace: Trace, label: str, color: str, top: float) -> None:
    """One preference: its ray, the path of the test losses, and where it ends."""
    first, second = ratios_of(trace)
    ax.plot([0, top], [0, top * first / second], "--", color=color, linewidth=1)
    x, y = (trace.metrics[k].mean(0) for k in ("loss_1", "loss_2"))
    ax.plot(x, y, color=color, linewidth=1, alpha=0.7)
    ax.scatter(final(trace, "loss_1"), final(trace, "loss_2"), color=color, label=label, zorder=3)


FIGURES = {"figure_2": figure_2, "figure_4": figure_4}
