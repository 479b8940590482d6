"""Figures of study F."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from papers.fedsgm.curves import MODE_COLORS, SWEEP_COLORS, level, tolerance_of, tuned
from papers.fedsgm.np_unified.runs import CLIENTS, MODES
from papers.kit import plot
from papers.kit.panels import Layer, grid, on, panel, row
from papers.kit.quantities import labels_of, sweep
from papers.kit.study import Traces

HEIGHT = (0.02, 0.8)  # of the axes of g
ASIDE = {"loc": "upper left", "bbox_to_anchor": (1, 1)}  # a legend beside its panel
SHARPEST = 400  # that Figure 5 of the paper shows
DASHES: Any = ("-", "--", ":")


def both(shown: Traces, limit: Layer, *style: Layer, **look: Any) -> plot.Drawing:
    """Objective and constraint of some runs, side by side."""
    f, g = (on(plot.bands, shown, metric, log=True, **look) for metric in "fg")
    return row(
        panel(f, *style, title="objective f", legend=True),
        panel(g, *style, limit, title="constraint g", ylim=HEIGHT),
    )


def some_of(participants: Any) -> str:
    """How many clients of how many take part in a round."""
    return "all clients" if participants == CLIENTS else f"{participants:g} of {CLIENTS}"


def usual(traces: Traces) -> dict[str, Any]:
    """The labels that a run has unless a sweep varies them."""
    return {name: value for name, value in labels_of(traces["soft"]).items() if name != "switch"}


def figure_1(traces: Traces) -> plot.Drawing:
    """Objective and constraint of both modes, a colour each, a line style for who takes part."""
    shown = {}
    for participants in (usual(traces)["participants"], CLIENTS):
        for mode in MODES:
            runs = sweep(traces, usual(traces), "participants", method="FedSGM", switch=mode)
            shown[f"{mode}, {some_of(participants)}"] = runs[participants]
    for mode, run in sweep(traces, usual(traces), "switch", method="SGM").items():
        shown[f"{mode}, centralized"] = run

    def styled(ax: plot.Axes) -> None:
        for number, line in enumerate(ax.lines):
            line.set_linestyle(DASHES[number // len(MODES)])

    return both(shown, level(traces), styled, colors=plot.COLORS[: len(MODES)])


def rows_along(label: str, text: Callable[[Any], str]) -> Callable[..., plot.Drawing]:
    """Figure 2's rows: objective above, feasibility below, hard left, soft right.

    `label` varies from curve to curve, and `text` says what its values are.
    """

    def figure(traces: Traces) -> plot.Drawing:
        above, below = [], []
        for mode in MODES:
            runs = sweep(traces, usual(traces), label, method="FedSGM", switch=mode)
            shown = {text(value): trace for value, trace in runs.items()}
            if label == "fraction":
                bare = sweep(traces, usual(traces), "feedback", method="FedSGM", switch=mode)[False]
                shown[f"{text(usual(traces)['fraction'])}, no feedback"] = bare
            left = mode == MODES[0]
            objective = panel(
                on(plot.bands, shown, "f", log=True, colors=SWEEP_COLORS),
                title=f"{mode} switching",
                xlabel="",
                ylabel="objective f" if left else "",
                legend=False if left else ASIDE,
            )
            constraint = panel(
                on(plot.bands, shown, "g", log=True, colors=SWEEP_COLORS),
                level(traces),
                ylim=HEIGHT,
                ylabel="constraint g" if left else "",
            )
            above.append(objective)
            below.append(constraint)
        return grid(above, below, sharex=True, sharey="row")

    return figure


def figure_5(traces: Traces) -> plot.Drawing:
    """The constraint under soft switching for the sharpnesses that the paper shows, and hard."""
    runs = sweep(traces, usual(traces), "beta", method="FedSGM", switch="soft")
    shown = {f"beta = {beta:g}": run for beta, run in runs.items() if beta <= SHARPEST}
    colors = [*SWEEP_COLORS[: len(shown)], MODE_COLORS["hard"]]
    return both(shown | {"hard": traces["hard"]}, level(traces), colors=colors)


def figure_6(traces: Traces) -> plot.Drawing:
    """Late objective against late constraint, a point a seed, every method at its tuned rate."""
    labels = usual(traces)
    groups = {}
    for mode in MODES:
        groups[f"FedSGM {mode}"] = sweep(traces, labels, "lr", method="FedSGM", switch=mode)
    for rho in sweep(traces, usual(traces), "rho", method="Penalty-FedAvg"):
        groups[f"penalty {rho:g}"] = sweep(
            traces, usual(traces), "lr", method="Penalty-FedAvg", rho=rho
        )

    def points(ax: plot.Axes) -> None:
        tolerance = tolerance_of(traces["hard"])
        shown = {}
        for method, runs in groups.items():
            named = {f"{method} (step {lr:g})": run for lr, run in runs.items()}
            best = tuned(named, [*named], tolerance)
            shown[best] = named[best].late("f"), named[best].late("g")
        markers = ["o" if "FedSGM" in label else "X" for label in shown]
        plot.points(ax, shown, markers=markers)

    return row(
        panel(
            points,
            level(traces),
            xscale="log",
            xlabel="late objective f",
            ylabel="late constraint g",
            legend=ASIDE,
        )
    )


FIGURES = {
    "figure_1": figure_1,
    "local_steps": rows_along("local_steps", lambda steps: f"E = {steps:g}"),
    "participation": rows_along("participants", lambda n: f"{n:g} of {CLIENTS}"),
    "compression": rows_along("fraction", lambda fraction: f"K/d = {fraction:g}"),
    "figure_5": figure_5,
    "figure_6": figure_6,
}
