"""Figures of study W."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fedlib.core import Trace
from papers.fedsgm.curves import MODE_COLORS, SWEEP_COLORS, tolerance_of, violations
from papers.kit import plot
from papers.kit.numbers import mean, ratio
from papers.kit.panels import Layer, on, panel, row
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


def learning_rates(traces: Traces) -> plot.Drawing:
    """The violation counts and their ratio against the step size."""
    tolerance = tolerance_of(traces["hard"])
    rates = {
        float(t.config["algorithm"]["lr"]): name
        for name, t in traces.items()
        if name == "hard" or name.startswith("hard_lr")
    }
    x = sorted(rates)
    count = {
        mode: [violations(traces[rates[r].replace("hard", mode)], tolerance) for r in x]
        for mode in ("hard", "soft")
    }
    pairs = [ratio(h, s) for h, s in zip(count["hard"], count["soft"], strict=True)]
    means = {mode: [mean(c) for c in each] for mode, each in count.items()}
    against: Any = {"xscale": "log", "xlabel": "step size", "legend": True}
    return row(
        panel(on(plot.dots, x, means), title="violating rounds", **against),
        panel(
            on(plot.dots, x, {"hard / soft": pairs}, colors=SWEEP_COLORS),
            on(plot.level, 4.0, "the paper's 4"),
            title="hard divided by soft",
            **against,
        ),
    )


def sharpness(traces: Traces) -> plot.Drawing:
    """Late objective and constraint against beta: what the sharpness does change."""
    runs = [t for n, t in traces.items() if n == "soft" or n.startswith("soft_beta")]
    soft = {float(t.config["algorithm"]["switch"]["beta"]): t for t in runs}
    x = sorted(soft)
    tolerance = tolerance_of(traces["hard"])
    level = on(plot.level, tolerance, f"level {tolerance:g}")

    def late(of: Callable[[Trace], Any], *more: Layer, **frame: Any) -> Layer:
        values = {"soft": [mean(of(soft[b])) for b in x]}
        frame |= {"xscale": "log", "xlabel": "sharpness beta"}
        return panel(on(plot.dots, x, values, colors=[MODE_COLORS["soft"]]), *more, **frame)

    return row(
        late(lambda t: t.late("f"), title="late objective f"),
        late(lambda t: t.late("g"), level, title="late constraint g", legend=True),
        late(lambda t: violations(t, tolerance), title="violating rounds", ylim=(0, None)),
    )


FIGURES = {"figure_1": figure_1, "learning_rates": learning_rates, "sharpness": sharpness}
