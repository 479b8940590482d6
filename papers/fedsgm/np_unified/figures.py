"""Figures of study F."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from fedlib.core import Trace
from papers.fedsgm.curves import MODE_COLORS, SWEEP_COLORS, level, tolerance_of, tuned
from papers.kit import plot
from papers.kit.panels import Layer, grid, on, panel, row
from papers.kit.study import Traces

MODES = ("hard", "soft")
HEIGHT = (0.02, 0.8)  # of the axes of g
ASIDE = {"loc": "upper left", "bbox_to_anchor": (1, 1)}  # a legend beside its panel


def both(shown: Traces, limit: Layer, *style: Layer, **look: Any) -> plot.Drawing:
    f, g = (on(plot.bands, shown, metric, log=True, **look) for metric in "fg")
    return row(
        panel(f, *style, title="objective f", legend=True),
        panel(g, *style, limit, title="constraint g", ylim=HEIGHT),
    )


def some_of(trace: Trace) -> str:
    """How many clients of how many take part in a round."""
    config = trace.config
    return f"{config['algorithm']['participants']} of {config['problem']['clients']}"


def figure_1(traces: Traces) -> plot.Drawing:
    """Objective and constraint of both modes, a colour each, a line style for who takes part."""
    groups = {"": some_of(traces["hard"]), "_all": "all clients", "_central": "centralized"}
    shown = {f"{m}, {text}": traces[f"{m}{g}"] for g, text in groups.items() for m in MODES}

    def styled(ax: plot.Axes) -> None:
        for i, line in enumerate(ax.lines):
            line.set_linestyle(("-", "--", ":")[i // len(MODES)])

    return both(shown, level(traces), styled, colors=plot.COLORS[: len(MODES)])


def sweep(ends: str, label: Callable[[Trace], tuple[float, str]]) -> Callable[..., plot.Drawing]:
    """Figure 2's rows: objective above, feasibility below, hard left, soft right.

    `ends` is a pattern of how the runs' names go on behind their mode; `label` gives the value by
    which they are sorted, and its text.
    """

    def figure(traces: Traces) -> plot.Drawing:
        above, below = [], []
        for mode in MODES:
            runs = [t for n, t in traces.items() if re.fullmatch(f"{mode}({ends})?", n)]
            labelled = sorted(((*label(trace), trace) for trace in runs), key=lambda x: x[:2])
            shown = {text: trace for _, text, trace in labelled}
            f, g = (on(plot.bands, shown, metric, log=True, colors=SWEEP_COLORS) for metric in "fg")
            first = mode == MODES[0]
            ylabel = "objective f" if first else ""
            above.append(
                panel(
                    f,
                    title=f"{mode} switching",
                    xlabel="",
                    ylabel=ylabel,
                    legend=not first and ASIDE,
                )
            )
            below.append(
                panel(g, level(traces), ylim=HEIGHT, ylabel="constraint g" if first else "")
            )
        return grid(above, below, sharex=True, sharey="row")

    return figure


def local_steps(trace: Trace) -> tuple[float, str]:
    steps = trace.config["algorithm"]["local_steps"]
    return steps, f"E = {steps}"


def participants(trace: Trace) -> tuple[float, str]:
    return trace.config["algorithm"]["participants"], some_of(trace)


def compression(trace: Trace) -> tuple[float, str]:
    method = trace.config["algorithm"]
    fraction = method["uplink"].get("fraction", 1)
    text = f"K/d = {fraction:g}"
    return fraction, text if method["error_feedback"] else f"{text}, no feedback"


def figure_5(traces: Traces) -> plot.Drawing:
    """The constraint under soft switching for the sharpnesses that the paper shows, and hard."""
    names = [n for n in traces if n == "soft" or n.startswith("soft_beta")]
    beta = {float(traces[n].config["algorithm"]["switch"]["beta"]): traces[n] for n in names}
    shown = {f"beta = {b:g}": trace for b, trace in sorted(beta.items()) if b <= 400}
    colors = [*SWEEP_COLORS[: len(shown)], MODE_COLORS["hard"]]
    return both(shown | {"hard": traces["hard"]}, level(traces), colors=colors)


def figure_6(traces: Traces) -> plot.Drawing:
    """Late objective against late constraint, a point a seed, every method at its tuned rate."""
    groups = {f"FedSGM {m}": list(rates(traces, m).values()) for m in MODES}
    for name in traces:
        if name.startswith("penalty_rho"):
            rho = name.split("_")[1].removeprefix("rho")
            groups.setdefault(f"penalty {rho}", []).append(name)

    def points(ax: plot.Axes) -> None:
        there = {}
        for label, names in groups.items():
            trace = traces[tuned(traces, names, tolerance_of(traces["hard"]))]
            rate = trace.config["algorithm"]["lr"]
            there[f"{label} (step {rate:g})"] = trace.late("f"), trace.late("g")
        plot.points(ax, there, markers=["o" if "FedSGM" in label else "X" for label in there])

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


def rates(traces: Traces, name: str) -> dict[float, str]:
    """The step sizes of the sweep in increasing order, and their runs."""
    names = [n for n in traces if n == name or n.startswith(f"{name}_lr")]
    return dict(sorted((float(traces[n].config["algorithm"]["lr"]), n) for n in names))


FIGURES = {
    "figure_1": figure_1,
    "local_steps": sweep("_E.*", local_steps),
    "participation": sweep("_m.*|_all", participants),
    "compression": sweep("_K.*|_nofeedback", compression),
    "figure_5": figure_5,
    "figure_6": figure_6,
}
