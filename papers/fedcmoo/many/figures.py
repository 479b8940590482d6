"""The figure of the study of many objectives."""

from __future__ import annotations

from papers.fedcmoo.common import COLOR, TWO
from papers.fedcmoo.many.runs import DEFAULTS, SETS
from papers.fedcmoo.standin import noted
from papers.kit import plot
from papers.kit.panels import columns, row
from papers.kit.quantities import run_of
from papers.kit.study import Traces


def progress(traces: Traces) -> plot.Drawing:
    """Mean test accuracy over the rounds, a panel for every number of tasks."""

    def fill(ax: plot.Axes, tasks: str) -> None:
        for method, label in TWO.items():
            trace = run_of(traces, DEFAULTS, tasks=tasks, method=method)
            accuracy = 100 * trace.metrics["accuracy"]
            plot.band(ax, trace.rounds, accuracy, color=COLOR[label], label=label)
        majority = 100 * float(trace.config["problem"]["majority"])
        ax.axhline(majority, color="#7d6bb0", linestyle="--", lw=1, label="always the majority")

    titles = {tasks: f"{count} tasks" for tasks, count in SETS.items()}
    label = "mean test accuracy (%)"
    return row(*columns(fill, titles, ylabel=label, xlabel="round", legend=True), sharey=True)


FIGURES = noted({"progress": progress})
