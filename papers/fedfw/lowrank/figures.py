"""Figures of the study of the low-rank case."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedfw.lowrank.numbers import FRANK_WOLFE, TASKS, best_runs, excess
from papers.kit import plot
from papers.kit.panels import Layer, across, grid, legend_below, on, panel, row
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELS = {
    "fedfw": "FedFW",
    "plus": "FedFW+",
    "avg1": "FedAvg, E = 1",
    "avg5": "FedAvg, several steps",
    "dr": "FedDR",
}
LOWEST = 0.01  # %: below it a loss in float32 is exact


def pace(traces: Traces, trace: Trace, method: str, unit: str) -> float:
    """What a round costs: one round, its Mbit, or the oracle seconds of all clients together."""
    if unit == "rounds":
        return 1.0
    if unit == "Mbit sent":
        return float(trace.config["bits"]["bits_up"]) / 1e6
    problem = trace.config["problem"]
    info = traces[f"clock_{problem['set']['rows']}x{problem['set']['columns']}"].info
    if method in FRANK_WOLFE:
        return float(problem["clients"] * np.median(info["lmo"]))
    return float(np.median(info["project"]))


def race(ax: Axes, traces: Traces, task: str, unit: str, value: Callable[[Trace], Array]) -> None:
    """A curve a method: the mean, and a band from the lowest to the highest seed."""
    for i, (method, trace) in enumerate(shown(traces, task).items()):
        x = pace(traces, trace, method, unit) * trace.rounds[1:]
        y, color = value(trace)[:, 1:], plot.COLORS[i]
        style = "-" if method in FRANK_WOLFE else "--"
        look: Any = {"linestyle": style, "label": LABELS[method], "shade": 0.1}
        plot.band(ax, x, y, around=plot.RANGE, color=color, **look)


def loss(traces: Traces) -> plot.Drawing:
    """Excess loss against rounds, bits and oracle seconds, a row for each task."""

    def panels(task: str) -> list[Layer]:
        def above(trace: Trace) -> Array:
            return np.maximum(excess(trace, traces[f"{task}_reference"]), LOWEST)

        return [
            panel(
                on(race, traces, task, unit, above),
                on(plot.plain_log),
                xscale="log",
                xlabel=unit,
                ylabel=f"{task}: excess loss, %" if unit == "rounds" else "",
            )
            for unit in ("rounds", "Mbit sent", "oracle seconds")
        ]

    return together(traces, panels, sharey=True)


def truth(traces: Traces) -> plot.Drawing:
    """Error to the true matrix against rounds and bits, and the rank, a row for each task."""

    def panels(task: str) -> list[Layer]:
        rank = traces[f"{task}_reference"].config["problem"]["rank"]
        true_rank = across(rank, color="#d62728", linestyle=":", linewidth=1.3)

        def one(unit: str, metric: str, *more: Layer, ylabel: str = "") -> Layer:
            curves = on(race, traces, task, unit, lambda t: t.metrics[metric])
            return panel(curves, *more, xscale="log", xlabel=unit, ylabel=ylabel)

        return [
            one("rounds", "error", ylabel=f"{task}: error, relative"),
            one("Mbit sent", "error"),
            one("rounds", "rank", true_rank, ylabel="rank"),
        ]

    return together(traces, panels)


def together(traces: Traces, panels: Callable[[str], list[Layer]], **options: Any) -> plot.Drawing:
    tasks = there(traces)
    return legend_below(grid(*map(panels, tasks), **options), len(shown(traces, tasks[0])))


def there(traces: Traces) -> list[str]:
    return [task for task in TASKS if f"{task}_reference" in traces]


def shown(traces: Traces, task: str) -> dict[str, Trace]:
    best = best_runs(traces)
    return {m: traces[best[f"{task}_{m}"]] for m in LABELS if f"{task}_{m}" in best}


def clock(traces: Traces) -> plot.Drawing:
    """Seconds of the two oracles, and bits of the two messages, against the side of the matrix."""
    sides, runs = squares(traces)

    def by_side(ax: Axes) -> None:
        ax.set_yscale("log")
        plot.log_ticks(ax, [*sides])

    def seconds(ax: Axes) -> None:
        for i, (oracle, text) in enumerate((("lmo", "LMO"), ("project", "projection by SVD"))):
            each = np.stack([1e3 * t.info[oracle][0] for t in runs], 1)
            look: Any = {"middle": "median", "around": plot.RANGE, "marker": "o", "label": text}
            plot.band(ax, sides, each, color=plot.COLORS[i], **look)

    def bits(ax: Axes) -> None:
        for i, (text, each) in enumerate((("rank one", 64 * sides), ("dense", 32 * sides**2))):
            ax.plot(sides, each / 1e6, "o-", color=plot.COLORS[i], label=text)

    frame: Any = {"xlabel": "side of the square matrix", "legend": True}
    return row(
        panel(seconds, by_side, ylabel="CPU time in ms", **frame),
        panel(bits, by_side, ylabel="message in Mbit", **frame),
    )


def squares(traces: Traces) -> tuple[Array, list[Trace]]:
    found = {}
    for name, trace in traces.items():
        if name.startswith("clock_"):
            m, n = map(int, name.removeprefix("clock_").split("x"))
            if m == n:
                found[m] = trace
    return np.array(sorted(found), float), [found[m] for m in sorted(found)]


FIGURES = {"loss": loss, "truth": truth, "clock": clock}
