"""Figures of study W."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fedlib.core import Trace
from papers.fedsgm.curves import MODE_COLORS, SWEEP_COLORS, tolerance_of, violations
from papers.fedsgm.np_workshop.runs import MODES
from papers.kit import plot
from papers.kit.numbers import mean, ratio
from papers.kit.panels import Layer, on, panel, row
from papers.kit.quantities import labels_of, sweep
from papers.kit.study import Traces


def figure_1(traces: Traces) -> plot.Drawing:
    """Objective, constraint and running count of violations, hard against soft."""
    shown = {"hard": traces["hard"], "soft": traces["soft"]}
    tolerance = tolerance_of(traces["hard"])
    f, g = (on(plot.bands, shown, metric, log=True) for metric in "fg")
    level = on(plot.level, tolerance, f"level {tolerance:g}")
    count = on(counts, shown, tolerance)
    return row(
        panel(f, title="objective f (majority class)", legend=True),
        panel(g, level, title="constraint g (minority class)", legend=True),
        panel(count, title="violating rounds so far", xlabel="round"),
    )


def counts(ax: plot.Axes, shown: Traces, tolerance: float) -> None:
    """Violating rounds so far: the mean over seeds, and the range."""
    for (name, trace), color in zip(shown.items(), plot.COLORS, strict=False):
        count = (trace.of_rounds("g") > tolerance).cumsum(1)
        plot.band(ax, trace.rounds[:-1], count, around=plot.RANGE, color=color, label=name)


def usual(traces: Traces) -> dict[str, Any]:
    """The labels that a run has unless a sweep varies them."""
    return {name: value for name, value in labels_of(traces["soft"]).items() if name != "switch"}


def learning_rates(traces: Traces) -> plot.Drawing:
    """The violation counts and their ratio against the step size."""
    tolerance = tolerance_of(traces["hard"])
    counted = {}
    means = {}
    for mode in MODES:
        runs = sweep(traces, usual(traces), "lr", switch=mode)
        counted[mode] = [violations(trace, tolerance) for trace in runs.values()]
        means[mode] = [mean(count) for count in counted[mode]]
    ratios = [ratio(*pair) for pair in zip(counted["hard"], counted["soft"], strict=True)]
    against: Any = {"xscale": "log", "xlabel": "step size", "legend": True}
    return row(
        panel(on(plot.dots, [*runs], means), title="violating rounds", **against),
        panel(
            on(plot.dots, [*runs], {"hard / soft": ratios}, colors=SWEEP_COLORS),
            on(plot.level, 4.0, "the paper's 4"),
            title="hard divided by soft",
            **against,
        ),
    )


def sharpness(traces: Traces) -> plot.Drawing:
    """Late objective and constraint against beta: what the sharpness does change."""
    runs = sweep(traces, usual(traces), "beta", switch="soft")
    tolerance = tolerance_of(traces["hard"])
    level = on(plot.level, tolerance, f"level {tolerance:g}")

    def against_beta(measure: Callable[[Trace], Any], *layers: Layer, **frame: Any) -> Layer:
        values = {"soft": [mean(measure(trace)) for trace in runs.values()]}
        dots = on(plot.dots, [*runs], values, colors=[MODE_COLORS["soft"]])
        return panel(dots, *layers, xscale="log", xlabel="sharpness beta", **frame)

    count = partial(violations, tolerance=tolerance)
    return row(
        against_beta(lambda trace: trace.late("f"), title="late objective f"),
        against_beta(lambda trace: trace.late("g"), level, title="late constraint g", legend=True),
        against_beta(count, title="violating rounds", ylim=(0, None)),
    )


FIGURES = {"figure_1": figure_1, "learning_rates": learning_rates, "sharpness": sharpness}
