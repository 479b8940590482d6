"""Figures of the fairness study; each says so where the data are a generated stand-in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fedlib.core import Trace
from papers.fedsgm.curves import level, tolerance_of, tuned
from papers.kit import plot
from papers.kit.panels import Layer, grid, on, panel, row
from papers.kit.study import Traces, after, swept

TITLES = {"f": "training loss f", "g": "gap of mean outputs g"}
MODES = ("hard", "soft")


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


def penalties(traces: Traces, group: str) -> dict[str, str]:
    """Penalty as a text -> run, in increasing order."""
    return {f"{rho:g}": f"{group}_rho{rho:g}" for rho in swept(traces, f"{group}_rho")}


def best(traces: Traces, group: str) -> Traces:
    """The tuned penalty method: its label and its run."""
    runs = list(penalties(traces, group).values())
    name = tuned(traces, runs, tolerance_of(traces["hard"]))
    return {f"penalty {name.rpartition('rho')[2]}": traces[name]}


def duals(traces: Traces) -> Traces:
    return {f"IPP ConEx, dual step {x}": t for x, t in after(traces, "conex_dual").items()}


def hues(traces: Traces, labels: Iterable[str]) -> list[str]:
    """A colour for each label: a method has the same federated and centralized."""
    rhos = sorted({*penalties(traces, "penalty"), *penalties(traces, "central_penalty")}, key=float)
    kinds = [*MODES, *(f"penalty {rho}" for rho in rhos), *duals(traces)]
    hue = dict(zip(kinds, plot.COLORS, strict=False))
    return [hue.get(x.removeprefix("FedSGM ").removeprefix("centralized "), "gray") for x in labels]


def figure_7(traces: Traces) -> plot.Drawing:
    """Loss and gap against rounds: federated solid above, centralized dashed below."""
    above = {f"FedSGM {m}": traces[m] for m in MODES} | dict(best(traces, "penalty"))
    above["FedAvg, no constraint"] = traces["fedavg"]
    below = {m: traces[f"central_{m}"] for m in MODES} | dict(best(traces, "central_penalty"))
    below |= duals(traces)
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
    groups: dict[str, tuple[Trace, str]] = {f"FedSGM {m}": (traces[m], "o") for m in MODES}
    for rho, name in penalties(traces, "penalty").items():
        groups[f"penalty {rho}"] = traces[name], "X"
    for m in MODES:
        groups[f"centralized {m}"] = traces[f"central_{m}"], "s"
    for rho, name in penalties(traces, "central_penalty").items():
        groups[f"centralized penalty {rho}"] = traces[name], "D"
    groups |= {label: (trace, "^") for label, trace in duals(traces).items()}
    tolerance = tolerance_of(traces["hard"])
    near = [t.late("f") for t, _ in groups.values() if t.late("g").mean() <= 1.2 * tolerance]
    ends = [end for f in near or [traces["hard"].late("f")] for end in (f.min(), f.max())]

    def points(ax: plot.Axes) -> None:
        there = {k: (trace.late("f"), trace.late("g")) for k, (trace, _) in groups.items()}
        markers = [marker for _, marker in groups.values()]
        plot.points(ax, there, markers=markers, colors=hues(traces, there))

    shown = points, level(traces)
    xlabel = "late training loss f"
    return marked(
        traces,
        row(
            panel(*shown, title="all methods", xlabel=xlabel, ylabel="late gap g"),
            panel(
                *shown,
                title="methods that keep the level",
                xlabel=xlabel,
                xlim=(min(ends) - 0.003, max(ends) + 0.003),
                ylim=(0, 1.3 * tolerance),
                legend={"loc": "upper left", "bbox_to_anchor": (1, 1.05)},
            ),
        ),
    )


FIGURES = {"figure_7": figure_7, "trade_off": trade_off}
