"""Figures of study W."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedlib import plot
from fedlib.numbers import mean, ratio
from fedlib.studies.curves import violations
from fedlib.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

__all__ = ["FIGURES", "figure_1", "learning_rates", "sharpness"]


def figure_1(traces: Mapping[str, Trace]) -> plot.Draw:
    """Objective, constraint and running count of violations, hard against soft."""
    shown = {"hard": traces["hard"], "soft": traces["soft"]}
    tolerance = tolerance_of(traces["hard"])

    def draw(fig: Figure) -> None:
        left, middle, right = fig.subplots(1, 3)
        plot.bands(left, shown, "f", log=True)
        left.set_title("objective f (majority class)")
        plot.bands(middle, shown, "g", log=True)
        plot.level(middle, tolerance, f"level {tolerance:g}")
        middle.set_title("constraint g (minority class)")
        for (name, trace), color in zip(shown.items(), plot.COLORS, strict=False):
            count = (trace.of_rounds("g") > tolerance).cumsum(1)
            right.plot(trace.rounds[:-1], count.mean(0), color=color, label=name)
            low, high = count.min(0), count.max(0)
            right.fill_between(trace.rounds[:-1], low, high, color=color, alpha=0.18, linewidth=0)
        right.set_title("violating rounds so far")
        right.set_xlabel("round")
        left.legend()
        middle.legend()

    return draw


def learning_rates(traces: Mapping[str, Trace]) -> plot.Draw:
    """The violation counts and their ratio against the step size."""
    tolerance = tolerance_of(traces["hard"])
    rates = {rate_of(t): name for name, t in traces.items() if is_rate_run(name, "hard")}
    x = sorted(rates)
    count = {
        mode: [violations(traces[rates[r].replace("hard", mode)], tolerance) for r in x]
        for mode in ("hard", "soft")
    }

    def draw(fig: Figure) -> None:
        left, right = fig.subplots(1, 2)
        plot.dots(left, x, {m: [mean(c) for c in v] for m, v in count.items()})
        left.set_title("violating rounds of all")
        left.legend()
        pairs = [ratio(h, s) for h, s in zip(count["hard"], count["soft"], strict=True)]
        plot.dots(right, x, {"hard / soft": pairs})
        plot.level(right, 4.0, "the paper's 4")
        right.set_title("hard divided by soft")
        right.legend()
        for ax in (left, right):
            ax.set_xscale("log")
            ax.set_xlabel("step size")

    return draw


def sharpness(traces: Mapping[str, Trace]) -> plot.Draw:
    """Late objective and constraint against beta: what the sharpness does change."""
    soft = {beta_of(t): t for n, t in traces.items() if n == "soft" or n.startswith("soft_beta")}
    x = sorted(soft)
    tolerance = tolerance_of(traces["hard"])

    def draw(fig: Figure) -> None:
        axes = fig.subplots(1, 3)
        titles = ("late objective f", "late constraint g", "violating rounds")
        rows = (
            [mean(soft[b].late("f")) for b in x],
            [mean(soft[b].late("g")) for b in x],
            [mean(violations(soft[b], tolerance)) for b in x],
        )
        for ax, title, row in zip(axes, titles, rows, strict=True):
            plot.dots(ax, x, {"soft": row})
            ax.set_title(title)
            ax.set_xscale("log")
            ax.set_xlabel("sharpness beta")
        plot.level(axes[1], tolerance, f"level {tolerance:g}")
        axes[1].legend()
        axes[2].set_ylim(0, None)

    return draw


def tolerance_of(trace: Trace) -> float:
    """The threshold that a run was made with."""
    return float(trace.config["algorithm"]["tolerance"])


def rate_of(trace: Trace) -> float:
    """The step size that a run was made with."""
    return float(trace.config["algorithm"]["lr"])


def beta_of(trace: Trace) -> float:
    """The sharpness that a run was made with."""
    return float(np.float64(trace.config["algorithm"]["switch"]["beta"]))


def is_rate_run(name: str, mode: str) -> bool:
    """Whether a run belongs to the sweep over step sizes."""
    return name == mode or name.startswith(f"{mode}_lr")


FIGURES = {"figure_1": figure_1, "learning_rates": learning_rates, "sharpness": sharpness}
