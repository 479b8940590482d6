"""The figure of the study of many objectives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from papers.fedcmoo.many.numbers import SETS
from papers.kit import plot
from papers.kit.panels import columns, row
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS = {"fedcmoo": "FedCMOO", "fsmgda": "FSMGDA"}


def progress(traces: Traces) -> plot.Drawing:
    """Mean test accuracy over the rounds, a panel for every number of tasks."""
    majority = 100 * float(traces["halves_fedcmoo"].config["problem"]["majority"])

    def fill(ax: Axes, tasks: str) -> None:
        for (name, label), color in zip(LABELS.items(), plot.COLORS, strict=False):
            trace = traces[f"{tasks}_{name}"]
            plot.band(ax, trace.rounds, 100 * trace.metrics["accuracy"], color=color, label=label)
        ax.axhline(majority, color="#7d6bb0", linestyle="--", lw=1, label="always the majority")

    titles = {tasks: f"{count} tasks" for tasks, count in SETS.items()}
    label = "mean test accuracy (%)"
    return row(*columns(fill, titles, ylabel=label, xlabel="round", legend=True), sharey=True)


FIGURES = {"progress": progress}
