"""Figures of the QM9 study: losses against rounds and uploads, counted uploads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fedlib.core import Trace
from papers.fedcmoo.qm9.numbers import METHODS, TASKS, upload, uploaded
from papers.kit import plot
from papers.kit.panels import Layer, on, panel, row
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = {"fsmgda": "FSMGDA", "fedcmoo": "FedCMOO", "pref": "FedCMOO-Pref"}
MARKS = {"fsmgda": "o", "fedcmoo": "s", "pref": "^"}
COLOR = dict(zip(METHODS, plot.COLORS, strict=False))


def figure_3(traces: Traces) -> plot.Drawing:
    def against(x: Callable[[Trace], Any], **frame: Any) -> Layer:
        curves = []
        for m in METHODS:
            trace = traces[f"qm9_{m}"]
            style: Any = {"color": COLOR[m], "marker": MARKS[m], "markersize": 3}
            loss = trace.metrics["loss"]
            curves.append(on(plot.band, x(trace), loss, label=NAMES[m], **style))
        return panel(*curves, **frame)

    label = "mean test loss of 11 targets"
    return row(
        against(lambda t: t.rounds, xlabel="round", ylabel=label, legend=True),
        against(uploaded, xlabel="uploaded (model size x clients of a round)"),
        sharey=True,
    )


def uploads(traces: Traces) -> plot.Drawing:
    names = [n for n in traces if n.startswith("count_fsmgda_")]
    tasks = sorted(int(n.rpartition("_")[2]) for n in names)

    def draw(ax: Axes) -> None:
        for m in METHODS:
            y = [upload(traces[f"count_{m}_{k}"]) for k in tasks]
            line = "--" if m == "pref" else "-"  # it lies on FedCMOO's
            ax.plot(tasks, y, line, color=COLOR[m], marker=MARKS[m], label=NAMES[m])
            ring: dict[str, Any] = {"facecolors": "none", "edgecolors": COLOR[m], "s": 110}
            sent = [upload(traces[f"qm9_{m}"])]
            ax.scatter([len(TASKS)], sent, label=f"{NAMES[m]} on QM9", **ring)
        ax.set_yscale("log")
        ax.set_yticks([2, 5, 10, 20, 40], ["2", "5", "10", "20", "40"])
        plot.log_ticks(ax, tasks)

    label = "upload of a client and round (d)"
    return row(panel(draw, xlabel="objectives M", ylabel=label, legend=True))


FIGURES = {"figure_3": figure_3, "uploads": uploads}
