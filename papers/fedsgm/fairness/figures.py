"""Figures of the fairness study; each says so where the data are a generated stand-in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fedlib.core import Trace
from papers.fedsgm.curves import level, tolerance_of, tuned
from papers.fedsgm.fairness.runs import MODES
from papers.kit import plot
from papers.kit.panels import Layer, grid, on, panel, row
from papers.kit.quantities import labels_of, run_of, sweep
from papers.kit.study import Traces

TITLES = {"f": "training loss f", "g": "gap of mean outputs g"}


def source(traces: Traces) -> str:
    config = traces["hard"].config["problem"]
    rows = f"{config['train_rows']} training and {config['test_rows']} test rows"
    if config["data"] == "adult":
        return f"UCI Adult, official files: {rows}"
    return f"generated stand-in, not Adult: {rows}"


def marked(traces: Traces, draw: plot.Drawing) -> plot.Drawing:
    """The figure with the warning on the picture itself, where the rows are not Adult's."""

    def warned(fig: plot.Figure) -> None:
        draw(fig)
        fig.suptitle("generated stand-in, not Adult", fontsize=9, style="italic")

    return draw if traces["hard"].config["problem"]["data"] == "adult" else warned


def usual(traces: Traces) -> dict[str, Any]:
    """The labels that a run has unless a figure varies them."""
    return {**labels_of(traces["soft"]), "method": None}


def penalties(traces: Traces, training: str) -> dict[str, Trace]:
    """The penalty method with each penalty, increasing."""
    runs = sweep(traces, usual(traces), "rho", method="penalty", training=training)
    return {f"penalty {rho:g}": trace for rho, trace in runs.items()}


def best_penalty(traces: Traces, training: str) -> dict[str, Trace]:
    """The tuned penalty method: its label and its run."""
    runs = penalties(traces, training)
    label = tuned(runs, tolerance_of(traces["hard"]))
    return {label: runs[label]}


def modes(traces: Traces, training: str) -> dict[str, Trace]:
    """Hard and soft switching."""
    return {mode: run_of(traces, usual(traces), training=training, method=mode) for mode in MODES}


def duals(traces: Traces) -> dict[str, Trace]:
    """IPP ConEx at the step size of the other methods, by its dual step."""
    runs = sweep(traces, usual(traces), "dual", method="conex", training="central")
    return {f"IPP ConEx, dual step {dual:g}": trace for dual, trace in runs.items()}


def prefixed(start: str, runs: Traces) -> dict[str, Trace]:
    """Runs with a word before each label."""
    return {f"{start} {label}": trace for label, trace in runs.items()}


def hues(traces: Traces, labels: Iterable[str]) -> list[str]:
    """A colour for each label: a method has the same federated and centralized."""
    methods = [*MODES, *penalties(traces, "federated"), *duals(traces)]
    hue = dict(zip(methods, plot.COLORS, strict=False))
    plain = (label.removeprefix("FedSGM ").removeprefix("centralized ") for label in labels)
    return [hue.get(label, "gray") for label in plain]


def figure_7(traces: Traces) -> plot.Drawing:
    """Loss and gap against rounds: federated solid above, centralized dashed below."""
    above = prefixed("FedSGM", modes(traces, "federated")) | best_penalty(traces, "federated")
    above["FedAvg, no constraint"] = traces["fedavg"]
    below = modes(traces, "central") | best_penalty(traces, "central") | duals(traces)
    top = 2.4 * tolerance_of(traces["hard"])  # without constraint it leaves the frame

    def dashed(ax: plot.Axes) -> None:
        for line in ax.lines:
            line.set_linestyle("--")

    def pair(shown: Traces, where: str, *style: Layer, **frame: Any) -> list[Layer]:
        colors = hues(traces, shown)
        f, g = (on(plot.bands, shown, metric, colors=colors) for metric in "fg")
        titles = [f"{where}: {TITLES[metric]}" for metric in "fg"]
        return [
            panel(f, *style, title=titles[0], ylim=(0.3, 0.6), legend=True, **frame),
            panel(g, *style, level(traces), title=titles[1], ylim=(0, top), **frame),
        ]

    rows = pair(above, "federated", xlabel=""), pair(below, "centralized", dashed)
    return marked(traces, grid(*rows, sharex=True, sharey="col"))


def trade_off(traces: Traces) -> plot.Drawing:
    """Late loss against late gap, a point a seed, a marker for every kind of method."""
    groups = {
        "o": prefixed("FedSGM", modes(traces, "federated")),
        "X": penalties(traces, "federated"),
        "s": prefixed("centralized", modes(traces, "central")),
        "D": prefixed("centralized", penalties(traces, "central")),
        "^": duals(traces),
    }
    late = {}
    markers = []
    for marker, runs in groups.items():
        for label, trace in runs.items():
            late[label] = trace.late("f"), trace.late("g")
            markers.append(marker)
    tolerance = tolerance_of(traces["hard"])
    near = [f for f, g in late.values() if g.mean() <= 1.2 * tolerance]
    ends = np.concatenate(near or [traces["hard"].late("f")])
    points = on(plot.points, late, markers=markers, colors=hues(traces, late))
    xlabel = "late training loss f"
    return marked(
        traces,
        row(
            panel(points, level(traces), title="all methods", xlabel=xlabel, ylabel="late gap g"),
            panel(
                points,
                level(traces),
                title="methods that keep the level",
                xlabel=xlabel,
                xlim=(ends.min() - 0.003, ends.max() + 0.003),
                ylim=(0, 1.3 * tolerance),
                legend={"loc": "upper left", "bbox_to_anchor": (1, 1.05)},
            ),
        ),
    )


FIGURES = {"figure_7": figure_7, "trade_off": trade_off}
