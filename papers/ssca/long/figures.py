"""Figures of the study of longer SSCA runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedlib.core import Trace
from papers.kit import plot
from papers.kit.panels import columns, grid, row
from papers.kit.quantities import labels_of, run_of, sweep
from papers.kit.study import Traces
from papers.ssca.long.claims import TENTH
from papers.ssca.long.runs import DEFAULTS

STEPS = {"paper": "the paper's steps", "valid": "valid steps"}
FLOOR = 1e-5  # slacks below are drawn here


def levels(traces: Traces) -> list[float]:
    """The levels U, ascending."""
    return [*sweep(traces, DEFAULTS, "U", method="limit", steps="paper")]


def growing(traces: Traces, level: float) -> dict[float, Trace]:
    """The runs in which the penalty grows, by the first one, ascending."""
    return sweep(traces, DEFAULTS, "c", method="limit", U=level)


def violation(traces: Traces) -> plot.Drawing:
    """F - U on all training pictures over the rounds, a panel for each level."""

    def fill(ax: plot.Axes, level: float) -> None:
        forms = {
            text: run_of(traces, DEFAULTS, method="limit", steps=steps, U=level)
            for steps, text in STEPS.items()
        }
        for c, trace in growing(traces, level).items():
            forms[f"c growing from {c:g}"] = trace
        for (text, trace), color in zip(forms.items(), plot.COLORS, strict=False):
            above = trace.metrics["cost_all"] - level
            plot.band(ax, trace.rounds, above, color=color, label=text)
        plot.level(ax, 0, "F = U")
        ax.set_yscale("symlog", linthresh=0.01)
        ax.yaxis.set_major_formatter("{x:g}")

    titles = {level: f"U = {level:g}" for level in levels(traces)}
    panels = columns(fill, titles, ylabel="F - U", legend=True, at=-1, xlabel="round")
    return row(*panels, sharey=True)


def penalty(traces: Traces) -> plot.Drawing:
    """Slack above, penalty and multiplier below, for growing penalties; a column for each level."""

    def slacks(ax: plot.Axes, level: float) -> None:
        for color, (c, trace) in zip(plot.COLORS, growing(traces, level).items(), strict=False):
            slack = np.maximum(trace.info["slack"], FLOOR)
            rounds = 1 + np.arange(slack.shape[1])
            ax.plot(rounds, slack.T, color=color, linewidth=0.3, alpha=0.3)
            ax.plot(rounds, np.median(slack, 0), color=color, label=f"c from {c:g}")
        tolerance = float(trace.config["algorithm"]["method"]["tolerance"])
        plot.level(ax, tolerance, "tolerance")

    def multipliers(ax: plot.Axes, level: float) -> None:
        for color, (c, trace) in zip(plot.COLORS, growing(traces, level).items(), strict=False):
            penalty, nu = (np.median(trace.info[name], 0) for name in ("penalty", "nu"))
            rounds = 1 + np.arange(len(nu))
            ax.plot(rounds, penalty, "--", color=color, label=f"c from {c:g}")
            ax.plot(rounds, nu, color=color, linewidth=1, label="its ν")

    titles = {level: f"U = {level:g}" for level in levels(traces)}
    aside: Any = {
        "yscale": "log",
        "legend": {"loc": "upper left", "bbox_to_anchor": (1, 1.03)},
        "at": -1,
    }
    above = columns(slacks, titles, ylabel="slack s", **aside)
    untitled = dict.fromkeys(titles, "")
    label = "penalty c, multiplier ν"
    below = columns(multipliers, untitled, ylabel=label, xlabel="round", **aside)
    return grid(above, below, sharex=True, sharey="row")


def gradient(traces: Traces) -> plot.Drawing:
    """The norm of the gradient over the rounds, both axes logarithmic, a panel for each batch."""
    printed = sweep(traces, DEFAULTS, "B", method="ssca", steps="paper")
    valid = sweep(traces, DEFAULTS, "B", method="ssca", steps="valid")

    def curves(ax: plot.Axes, size: float) -> None:
        runs = [printed[size], valid[size]]
        for trace, color in zip(runs, plot.COLORS, strict=False):
            log_log(ax, trace, STEPS[str(labels_of(trace)["steps"])], color)
        start = float(runs[0].metrics["gradient"][:, 0].mean())
        plot.level(ax, TENTH * start, "a tenth of the start")

    titles = {size: f"batch {size:g}" for size in reversed(printed)}
    panels = columns(curves, titles, ylabel="|∇F₀|", legend=True, xlabel="round")
    return row(*panels, sharey=True)


def log_log(ax: plot.Axes, trace: Trace, label: str, color: str) -> None:
    """Mean and single seeds of the gradient from the first evaluation after the start on."""
    rounds = trace.rounds[1:]
    norms = trace.metrics["gradient"][:, 1:]
    ax.plot(rounds, norms.T, color=color, linewidth=0.5, alpha=0.5)
    ax.plot(rounds, norms.mean(0), color=color, label=label)
    ax.set_xscale("log")
    plot.plain_log(ax)


FIGURES = {"violation": violation, "penalty": penalty, "gradient": gradient}
