"""Figures of the study of longer SSCA runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedlib.core import Trace
from papers.kit import plot
from papers.kit.panels import columns, row
from papers.kit.study import Traces
from papers.ssca.long.claims import TENTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEPS = {"paper": "the paper's steps", "valid": "valid steps"}
FLOOR = 1e-5  # slacks below are drawn here


def batches(traces: Traces) -> list[int]:
    sizes = {int(n.rpartition("_B")[2]) for n in traces if n.startswith("ssca_")}
    return sorted(sizes, reverse=True)


def levels(traces: Traces) -> list[str]:
    """The levels U, ascending, as the runs are named."""
    return sorted({n.rpartition("_U")[2] for n in traces if n.startswith("limit_")}, key=float)


def firsts(traces: Traces) -> list[str]:
    """The first penalties of the runs in which they grow, ascending, as the runs are named."""
    names = {n.split("_")[1] for n in traces if n.startswith("limit_c")}
    return sorted((n.removeprefix("c") for n in names), key=float)


def violation(traces: Traces) -> plot.Drawing:
    """F - U on all training pictures over the rounds, a panel for each level."""
    forms = STEPS | {f"c{c}": f"c growing from {c}" for c in firsts(traces)}

    def fill(ax: Axes, level: str) -> None:
        for (name, text), color in zip(forms.items(), plot.COLORS, strict=False):
            trace = traces[f"limit_{name}_U{level}"]
            above = trace.metrics["cost_all"] - float(level)
            plot.band(ax, trace.rounds, above, color=color, label=text)
        plot.level(ax, 0, "F = U")
        ax.set_yscale("symlog", linthresh=0.01)
        ax.yaxis.set_major_formatter("{x:g}")

    titles = {level: f"U = {level}" for level in levels(traces)}
    return row(
        *columns(fill, titles, ylabel="F - U", legend=True, at=-1, xlabel="round"), sharey=True
    )


def penalty(traces: Traces) -> plot.Drawing:
    """Slack above, penalty and multiplier below, for growing penalties; a column for each level."""

    def draw(fig: Figure) -> None:
        found = levels(traces)
        rows = fig.subplots(2, len(found), sharex=True, sharey="row", squeeze=False)
        for (above, below), level in zip(rows.T, found, strict=True):
            for i, c in enumerate(firsts(traces)):
                trace, color = traces[f"limit_c{c}_U{level}"], plot.COLORS[i]
                t = 1 + np.arange(trace.info["slack"].shape[1])
                slack = np.maximum(trace.info["slack"], FLOOR)
                above.plot(t, slack.T, color=color, linewidth=0.3, alpha=0.3)
                above.plot(t, np.median(slack, 0), color=color, label=f"c from {c}")
                below.plot(t, middle(trace, "penalty"), "--", color=color, label=f"c from {c}")
                below.plot(t, middle(trace, "nu"), color=color, linewidth=1, label="its ν")
            tolerance = float(trace.config["algorithm"]["method"]["tolerance"])
            plot.level(above, tolerance, "tolerance")
            above.set_title(f"U = {level}")
            above.set_yscale("log")
            below.set_yscale("log")
            below.set_xlabel("round")
        rows[0, 0].set_ylabel("slack s")
        rows[1, 0].set_ylabel("penalty c, multiplier ν")
        for ax in rows[:, -1]:
            ax.legend(loc="upper left", bbox_to_anchor=(1, 1.03))

    return draw


def middle(trace: Trace, name: str) -> list[float]:
    """The median over seeds, for quantities that jump at a seed's own time."""
    found: list[float] = np.median(trace.info[name], axis=0).tolist()
    return found


def gradient(traces: Traces) -> plot.Drawing:
    """The norm of the gradient over the rounds, both axes logarithmic, a panel for each batch."""

    def curves(ax: Axes, size: str) -> None:
        for i, (name, text) in enumerate(STEPS.items()):
            log_log(ax, traces[f"ssca_{name}_B{size}"], text, plot.COLORS[i])
        start = float(traces[f"ssca_paper_B{size}"].metrics["gradient"][:, 0].mean())
        plot.level(ax, TENTH * start, "a tenth of the start's")

    titles = {f"{size}": f"batch {size}" for size in batches(traces)}
    return row(*columns(curves, titles, ylabel="|∇F₀|", legend=True, xlabel="round"), sharey=True)


def log_log(ax: Axes, trace: Trace, label: str, color: str) -> None:
    """Mean and single seeds of the gradient from the first evaluation after the start on."""
    t, g = trace.rounds[1:], trace.metrics["gradient"][:, 1:]
    ax.plot(t, g.T, color=color, linewidth=0.5, alpha=0.5)
    ax.plot(t, g.mean(0), color=color, label=label)
    ax.set_xscale("log")
    plot.plain_log(ax)


FIGURES = {"violation": violation, "penalty": penalty, "gradient": gradient}
