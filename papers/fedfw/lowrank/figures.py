"""Figures of the study of the low-rank case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedlib.core import Trace
from papers.fedfw.lowrank.numbers import FRANK_WOLFE, TASKS, best_runs, excess
from papers.kit import plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIGURES"]

Traces = Mapping[str, Trace]
Array = NDArray[np.float64]
LABELS = {
    "fedfw": "FedFW",
    "plus": "FedFW+",
    "avg1": "FedAvg, E = 1",
    "avg5": "FedAvg, several steps",
    "dr": "FedDR",
}
LOWEST = 0.01  # %: below it a loss in float32 is exact


def seconds(traces: Traces, trace: Trace) -> tuple[float, float]:
    """Medians of the clock for a run's matrix."""
    ball = trace.config["problem"]["set"]
    info = traces[f"clock_{ball['rows']}x{ball['columns']}"].info
    return float(np.median(info["lmo"])), float(np.median(info["project"]))


def oracle_work(traces: Traces, trace: Trace, method: str) -> float:
    """Oracle seconds of a round, those of all clients together."""
    lmo, project = seconds(traces, trace)
    clients: int = trace.config["problem"]["clients"]
    return clients * lmo if method in FRANK_WOLFE else project


def loss(traces: Traces) -> plot.Drawing:
    """Excess loss against rounds, bits and oracle seconds, a row for each task."""

    def draw(fig: Figure) -> None:
        tasks = there(traces)
        axes = fig.subplots(len(tasks), 3, sharey=True, squeeze=False)
        for row, task in zip(axes, tasks, strict=True):
            for i, (method, trace) in enumerate(shown(traces, task).items()):
                y = np.maximum(excess(trace, traces[f"{task}_reference"]), LOWEST)
                bits = trace.config["bits"]["bits_up"] / 1e6
                steps = (1.0, bits, oracle_work(traces, trace, method))
                for ax, step in zip(row, steps, strict=True):
                    line(ax, step * trace.rounds, y, method, i)
            for ax, text in zip(row, ("rounds", "Mbit sent", "oracle seconds"), strict=True):
                ax.set_xscale("log")
                ax.set_xlabel(text)
                plot.plain_log(ax)
            row[0].set_ylabel(f"{task}: excess loss, %")
        below(fig, axes[0, 0])

    return draw


def truth(traces: Traces) -> plot.Drawing:
    """Error to the true matrix against rounds and bits, and the rank, a row for each task."""

    def draw(fig: Figure) -> None:
        tasks = there(traces)
        axes = fig.subplots(len(tasks), 3, squeeze=False)
        for row, task in zip(axes, tasks, strict=True):
            for i, (method, trace) in enumerate(shown(traces, task).items()):
                bits = trace.config["bits"]["bits_up"] / 1e6
                line(row[0], trace.rounds.astype(float), trace.metrics["error"], method, i)
                line(row[1], bits * trace.rounds, trace.metrics["error"], method, i)
                line(row[2], trace.rounds.astype(float), trace.metrics["rank"], method, i)
            for ax, text in zip(row, ("rounds", "Mbit sent", "rounds"), strict=True):
                ax.set_xscale("log")
                ax.set_xlabel(text)
            row[0].set_ylabel(f"{task}: error, relative")
            row[2].set_ylabel("rank")
            row[2].axhline(rank(traces, task), color="#d62728", linestyle=":", linewidth=1.3)
        below(fig, axes[0, 0])

    return draw


def below(fig: Figure, ax: Axes) -> None:
    """One legend for all panels, below them."""
    handles, labels = ax.get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=len(labels))


def there(traces: Traces) -> list[str]:
    """The tasks that have runs."""
    return [task for task in TASKS if f"{task}_reference" in traces]


def rank(traces: Traces, task: str) -> int:
    """The rank of the true matrix."""
    found: int = traces[f"{task}_reference"].config["problem"]["rank"]
    return found


def shown(traces: Traces, task: str) -> dict[str, Trace]:
    """The best run of every method that there is."""
    best = best_runs(traces)
    return {m: traces[best[f"{task}_{m}"]] for m in LABELS if f"{task}_{m}" in best}


def line(ax: Axes, x: Array, y: Array, method: str, i: int) -> None:
    """The mean with a band from the lowest to the highest seed, from the first step on."""
    x, y = np.asarray(x, float)[1:], y[:, 1:]
    style = "-" if method in FRANK_WOLFE else "--"
    ax.plot(x, y.mean(0), style, color=plot.COLORS[i], label=LABELS[method], linewidth=1.5)
    ax.fill_between(x, y.min(0), y.max(0), color=plot.COLORS[i], alpha=0.1, linewidth=0)


def clock(traces: Traces) -> plot.Drawing:
    """Seconds of the two oracles, and bits of the two messages, against the side of the matrix."""

    def draw(fig: Figure) -> None:
        axes = fig.subplots(1, 2)
        sides, runs = squares(traces)
        for i, (oracle, text) in enumerate((("lmo", "LMO"), ("project", "projection by SVD"))):
            each = [1e3 * t.info[oracle][0] for t in runs]
            axes[0].plot(
                sides, [np.median(x) for x in each], "o-", color=plot.COLORS[i], label=text
            )
            spread = [x.min() for x in each], [x.max() for x in each]
            axes[0].fill_between(sides, *spread, color=plot.COLORS[i], alpha=0.18, linewidth=0)
        for i, (text, bits) in enumerate((("rank one", 64 * sides), ("dense", 32 * sides**2))):
            axes[1].plot(sides, bits / 1e6, "o-", color=plot.COLORS[i], label=text)
        for ax, text in zip(axes, ("CPU time in ms", "message in Mbit"), strict=True):
            ax.set_xscale("log")
            ax.set_yscale("log")
            ax.set_xticks(sides, [f"{side:g}" for side in sides])
            ax.minorticks_off()
            ax.set_xlabel("side of the square matrix")
            ax.set_ylabel(text)
            ax.legend()

    return draw


def squares(traces: Traces) -> tuple[Array, list[Trace]]:
    """The clock's runs on square matrices, by side."""
    found = {}
    for name, trace in traces.items():
        if name.startswith("clock_"):
            m, n = map(int, name.removeprefix("clock_").split("x"))
            if m == n:
                found[m] = trace
    return np.array(sorted(found), float), [found[m] for m in sorted(found)]


FIGURES = {"loss": loss, "truth": truth, "clock": clock}
