"""The figures of the QM9 study."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fedlib.core import Trace
from papers.fedcmoo.common import COLOR, METHODS
from papers.fedcmoo.qm9.quantities import upload_of, uploaded
from papers.fedcmoo.qm9.runs import DEFAULTS, TASKS
from papers.fedcmoo.standin import noted
from papers.kit import plot
from papers.kit.panels import Layer, on, panel, row
from papers.kit.quantities import run_of, sweep
from papers.kit.study import Traces

MARKS = {"fsmgda": "o", "fedcmoo": "s", "pref": "^"}


def figure_3(traces: Traces) -> plot.Drawing:
    """The mean test loss against rounds, and against what was uploaded."""

    def against(x: Callable[[Trace], Any], **frame: Any) -> Layer:
        curves = []
        for method, label in METHODS.items():
            trace = run_of(traces, DEFAULTS, method=method)
            style: Any = {"color": COLOR[label], "marker": MARKS[method], "markersize": 3}
            curves.append(on(plot.band, x(trace), trace.metrics["loss"], label=label, **style))
        return panel(*curves, **frame)

    label = "mean test loss of 11 targets"
    return row(
        against(lambda trace: trace.rounds, xlabel="round", ylabel=label, legend=True),
        against(uploaded, xlabel="uploaded (model size x clients of a round)"),
        sharey=True,
    )


def uploads(traces: Traces) -> plot.Drawing:
    """The upload of a client against the number of objectives."""

    def draw(ax: plot.Axes) -> None:
        for method, label in METHODS.items():
            color = COLOR[label]
            runs = sweep(traces, DEFAULTS, "objectives", method=method)
            sizes = [upload_of(trace) for trace in runs.values()]
            line = "--" if method == "pref" else "-"  # it lies on FedCMOO's
            ax.plot([*runs], sizes, line, color=color, marker=MARKS[method], label=label)
            ring: dict[str, Any] = {"facecolors": "none", "edgecolors": color, "s": 110}
            on_qm9 = upload_of(run_of(traces, DEFAULTS, method=method))
            ax.scatter([len(TASKS)], [on_qm9], label=f"{label} on QM9", **ring)
        ax.set_yscale("log")
        ax.set_yticks([2, 5, 10, 20, 40], ["2", "5", "10", "20", "40"])
        plot.log_ticks(ax, [*runs])

    label = "upload of a client and round (d)"
    return row(panel(draw, xlabel="objectives M", ylabel=label, legend=True))


FIGURES = noted({"figure_3": figure_3, "uploads": uploads})
