"""Figures of the study of SSCA's Figures 2 and 3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlib.core import Trace
from papers.kit import plot
from papers.kit.panels import panel, row
from papers.kit.study import Traces
from papers.ssca.common import SPLITS, rows
from papers.ssca.convergence.counts import between
from papers.ssca.convergence.numbers import CRITERIA, at, chosen, kinds, look, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES = ("-", "--", ":", "-.")
GREY = "#8c8c8c"
LEAST = 0.9  # of the lowest mean, where an axis of costs begins
TOP = 3.0  # of the axes of costs; SGD with a large step goes far beyond
METRICS = {"cost": "training cost", "accuracy": "test accuracy (%)"}
TITLES = {"sgd": "E = 1", "sgd2": "E = 2"}


def batches(traces: Traces) -> list[int]:
    names = [n.split("_") for n in traces if n.startswith("samples_ssca")]
    return sorted({int(parts[2].removeprefix("B")) for parts in names})


def colors(traces: Traces) -> dict[int, str]:
    return dict(zip(batches(traces), plot.COLORS, strict=False))


def levels(traces: Traces) -> list[float]:
    return sorted({float(n.rpartition("_U")[2]) for n in traces if "_limit_" in n})


def curve(
    ax: Axes, trace: Trace, metric: str, color: str, style: str = "-", label: str = ""
) -> None:
    """One curve with its band, accuracies in %."""
    scale = 100 if metric == "accuracy" else 1
    shown = {metric: scale * trace.metrics[metric]}
    plot.bands(ax, {label: replace(trace, metrics=shown)}, metric, colors=(color,))
    ax.lines[-1].set(linestyle=style, label=label or "_")  # no entry without a label


def costs(axes: Sequence[Axes]) -> None:
    """One logarithmic axis, from below the lowest mean to a little above the cost of the start."""
    plot.plain_log(axes[0])
    drawn = [np.asarray(line.get_ydata(), float) for ax in axes for line in ax.lines]
    lowest = min(np.nanmin(y) for y in drawn if len(y))
    axes[0].set_ylim(LEAST * lowest, TOP)


def clients(traces: Traces) -> int:
    return int(next(iter(traces.values())).config["problem"]["clients"])


def free(traces: Traces, split: str, criterion: str, ax: Axes, metric: str) -> None:
    """Algorithm 1 or 3, and SGD with the step sizes that a criterion chooses."""
    first = "Algorithm 1" if split == "samples" else "Algorithm 3"
    n, hues = clients(traces), colors(traces)
    for b, color in hues.items():
        label = f"{first}, B = {rows(split, b, n)}"
        curve(ax, traces[f"{split}_ssca_B{b}"], metric, color, label=label)
    for b, color in hues.items():
        run = traces[chosen(traces, f"{split}_sgd_B{b}", criterion)]
        curve(ax, run, metric, color, "--", f"SGD, B = {rows(split, b, n)}")
    for b, color in hues.items():
        half = f"{split}_sgd2_B{b // 2}"
        if points(traces, half):
            run = traces[chosen(traces, half, criterion)]
            curve(ax, run, metric, color, ":", f"SGD, B = {b // 2}, E = 2")


def limited(traces: Traces, split: str, ax: Axes, metric: str) -> None:
    """Algorithm 2 or 4, one line style a level."""
    for b, color in colors(traces).items():
        for level, style in zip(levels(traces), STYLES, strict=False):
            curve(ax, traces[f"{split}_limit_B{b}_U{level:g}"], metric, color, style)
    for level, style in zip(levels(traces), STYLES, strict=False):
        ax.plot([], [], style, color=GREY, label=f"U = {level:g}")
        if metric == "cost":
            ax.axhline(level, color=GREY, linestyle=style, linewidth=0.8)


def convergence(split: str, traces: Traces) -> plot.Drawing:
    """Figure 2 or 3: cost above, accuracy below; SGD by both criteria, and the constrained ones."""
    some = next(iter(traces.values()))
    panels: dict[str, Callable[[Axes, str], None]] = {
        f"SGD best at round {look(some, c):.0f}": partial(free, traces, split, c) for c in CRITERIA
    }
    second = "Algorithm 2" if split == "samples" else "Algorithm 4"
    panels[f"{second}, constrained"] = partial(limited, traces, split)

    def draw(fig: Figure) -> None:
        axes = fig.subplots(2, len(panels), sharex=True, sharey="row")
        for line, (metric, label) in zip(axes, METRICS.items(), strict=True):
            for ax, (title, fill) in zip(line, panels.items(), strict=True):
                fill(ax, metric)
                ax.set_xlabel("" if metric == "cost" else "round")
                if metric == "cost":
                    ax.set_title(title)
            line[0].set_ylabel(label)
        costs(axes[0])
        axes[0, -1].legend(loc="upper right")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        across = -(-len(labels) // len(batches(traces)))  # a line a batch
        fig.legend(handles, labels, loc="outside lower center", ncols=across)

    return draw


def grid(traces: Traces) -> plot.Drawing:
    """SGD's mean cost at the end for every point of every grid, the choices framed."""
    everything = kinds(traces)

    def draw(fig: Figure) -> None:
        columns = -(-len(everything) // 2)
        axes = fig.subplots(2, columns, squeeze=False).flatten()
        for ax in axes[len(everything) :]:
            ax.set_axis_off()
        for ax, kind in zip(axes, everything, strict=False):
            heat(ax, traces, kind)
        for ax in axes[::columns]:
            ax.set_ylabel("first step a")
        for ax in axes[len(everything) - columns : len(everything)]:
            ax.set_xlabel("exponent p")

    return draw


def heat(ax: Axes, traces: Traces, kind: str) -> None:
    """One grid: a first step a row, an exponent a column."""
    import pandas as pd  # here alone: the study is imported without it

    runs = {place(traces[name]): traces[name] for name in points(traces, kind)}
    rates, falls = (sorted({spot[k] for spot in runs}) for k in (0, 1))
    value = np.full((len(rates), len(falls)), np.nan)
    for (a, p), run in runs.items():
        value[rates.index(a), falls.index(p)] = at(run, run.rounds[-1]).mean()
    table = pd.DataFrame(value, [f"{a:g}" for a in rates], [f"{p:g}" for p in falls])
    plot.cells(ax, table, cmap="viridis_r", norm="log")
    ax.invert_yaxis()
    ax.tick_params("y", rotation=0)
    for criterion, half, style in (("last", 0.46, "-"), ("early", 0.38, ":")):
        a, p = place(traces[chosen(traces, kind, criterion)])
        i, j = rates.index(a), falls.index(p)
        x, y = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)]).T * half
        ax.plot(j + 0.5 + x, i + 0.5 + y, style, color="#d62728", linewidth=1.8)
    split, name, batch = kind.split("_")
    shown = rows(split, int(batch.removeprefix("B")), clients(traces))
    steps = f", {TITLES[name]}" if split == "samples" else ""
    ax.set_title(f"{split}, B = {shown}{steps}", fontsize=9)


def place(trace: Trace) -> tuple[float, float]:
    lr = trace.config["algorithm"]["lr"]
    return lr["scale"], lr["exponent"]


def uploads(trace: Trace, split: str) -> float:
    """What all clients send in a round, to the server and to one another, in 10^6 bytes."""
    bits = float(trace.config["bits"]["bits_up"])
    if split == "features":
        known = trace.config["problem"]
        rows = trace.config["algorithm"]["batch_size"]
        bits += between(int(known["clients"]), int(rows), int(known["hidden"]))
    return bits / 8e6


def sent(traces: Traces) -> plot.Drawing:
    """Cost against what the clients have sent, samples solid, features dashed."""

    def curves(ax: Axes) -> None:
        for split, style in zip(SPLITS, STYLES, strict=False):
            for b, color in colors(traces).items():
                trace = traces[f"{split}_ssca_B{b}"]
                x = uploads(trace, split) * trace.rounds[1:]
                drawn: Any = {"label": f"{split}, B = {rows(split, b, clients(traces))}"}
                y = trace.metrics["cost"][:, 1:]
                plot.band(ax, x, y, color=color, shade=0.12, linestyle=style, **drawn)
        ax.set_xscale("log")
        costs([ax])
        ax.figure.legend(*ax.get_legend_handles_labels(), loc="outside right center")

    xlabel = "sent by all clients since the start (10$^6$ bytes)"
    return row(panel(curves, xlabel=xlabel, ylabel=METRICS["cost"]))


def debiased(traces: Traces) -> plot.Drawing:
    """Cost of Algorithms 1 and 3 as in the paper, solid, and without their bias, dashed."""

    def both(split: str, ax: Axes) -> None:
        for b, color in colors(traces).items():
            label = f"B = {rows(split, b, clients(traces))}"
            curve(ax, traces[f"{split}_ssca_B{b}"], "cost", color, label=label)
            curve(ax, traces[f"{split}_ssca_B{b}_debiased"], "cost", color, "--")
        ax.plot([], [], "--", color=GREY, label="debiased")

    def align_costs(ax: Axes) -> None:
        first, second = ax.figure.axes
        costs([first, second])

    one, two = (partial(both, split) for split in SPLITS)
    legend = {"loc": "upper right"}
    return row(
        panel(one, title="samples split", legend=legend, ylabel=METRICS["cost"]),
        panel(two, align_costs, title="features split", legend=legend),
        sharey=True,
    )


FIGURES: dict[str, Callable[[Traces], plot.Drawing]] = {
    "figure_2": partial(convergence, "samples"),
    "figure_3": partial(convergence, "features"),
    "grid": grid,
    "sent": sent,
    "debiased": debiased,
}
