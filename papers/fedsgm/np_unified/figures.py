"""Figures of study F."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from papers.fedsgm.curves import tolerance_of, tuned
from papers.kit import plot
from papers.kit.numbers import mean
from papers.kit.panels import Layer, grid, on, panel, row
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MODES = ("hard", "soft")
HEIGHT = (0.02, 0.8)  # of the axes of g


def level(traces: Traces) -> Layer:
    return on(plot.level, tolerance_of(traces["hard"]), "level")


def both(shown: Traces, limit: Layer) -> plot.Drawing:
    f, g = (on(plot.bands, shown, metric, log=True) for metric in "fg")
    return row(
        panel(f, title="objective f", legend=True),
        panel(g, limit, title="constraint g", ylim=HEIGHT),
    )


def figure_1(traces: Traces) -> plot.Drawing:
    """Objective and constraint of both modes, with 10 clients, all clients, and centralized."""
    groups = {"": "10 of 20", "_all": "all clients", "_central": "centralized"}
    shown = {f"{m}, {text}": traces[f"{m}{g}"] for g, text in groups.items() for m in MODES}
    return both(shown, level(traces))


def sweep(names: Mapping[str, str]) -> Callable[[Traces], plot.Drawing]:
    """Figure 2's rows: objective above, feasibility below, hard left, soft right.

    `names` maps a label to the suffix of the runs, the same for both modes.
    """

    def figure(traces: Traces) -> plot.Drawing:
        above, below = [], []
        for mode in MODES:
            runs = {label: f"{mode}{end}" for label, end in names.items()}
            shown = {label: traces[name] for label, name in runs.items() if name in traces}
            f, g = (on(plot.bands, shown, metric, log=True) for metric in "fg")
            first = mode == MODES[0]
            label = "objective f" if first else ""
            above.append(
                panel(f, title=f"{mode} switching", xlabel="", ylabel=label, legend=not first)
            )
            below.append(
                panel(g, level(traces), ylim=HEIGHT, ylabel="constraint g" if first else "")
            )
        return grid(above, below, sharex=True, sharey="row")

    return figure


def figure_5(traces: Traces) -> plot.Drawing:
    """The constraint under soft switching for the sharpnesses that the paper shows, and hard."""
    names = [n for n in traces if n == "soft" or n.startswith("soft_beta")]
    beta = {float(traces[n].config["algorithm"]["switch"]["beta"]): traces[n] for n in names}
    shown = {f"beta = {b:g}": trace for b, trace in sorted(beta.items()) if b <= 400}
    return both(shown | {"hard": traces["hard"]}, level(traces))


def figure_6(traces: Traces) -> plot.Drawing:
    """Late objective against late constraint, a point a seed, every method at its tuned rate."""
    groups = {f"FedSGM {m}": list(rates(traces, m).values()) for m in MODES}
    for name in traces:
        if name.startswith("penalty_rho"):
            rho = name.split("_")[1].removeprefix("rho")
            groups.setdefault(f"penalty {rho}", []).append(name)

    def points(ax: Axes) -> None:
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
            legend={"loc": "upper left", "bbox_to_anchor": (1, 1)},
        )
    )


def splits(traces: Traces) -> plot.Drawing:
    """Late constraint of every split: 10 of 20 clients against all, hard and soft."""

    def split(mode: str) -> Layer:
        some, everyone = traces[mode].late("g"), traces[f"{mode}_all"].late("g")
        order = np.argsort(some)

        def points(ax: Axes) -> None:
            x, seeds = np.arange(len(order)), [str(traces[mode].seeds[i]) for i in order]
            ax.plot(x, some[order], "o", color=plot.COLORS[0], label="10 of 20 clients a round")
            ax.plot(x, everyone[order], "s", color=plot.COLORS[1], label="all clients")
            ax.set_xticks(x, seeds)

        return panel(
            points,
            level(traces),
            title=f"{mode} switching",
            xlabel="seed (split), sorted",
            ylabel="late constraint g" if mode == "hard" else "",
            legend=mode == "hard",
        )

    return row(*map(split, MODES), sharey=True)


def learning_rates(traces: Traces) -> plot.Drawing:
    """Late objective and constraint against the step size, 10 clients and all."""
    groups = {"": "10 of 20", "_all": "all"}

    def late(metric: str, title: str, *more: Layer, legend: bool = False) -> Layer:
        shown = {
            f"{m}, {text}": [mean(traces[n].late(metric)) for n in rates(traces, m + g).values()]
            for g, text in groups.items()
            for m in MODES
        }
        dots = on(plot.dots, list(rates(traces, "hard")), shown)
        frame = {"title": title, "xscale": "log", "xlabel": "step size"}
        return panel(dots, on(plot.plain_log), *more, legend=legend, **frame)

    return row(
        late("f", "late objective f", legend=True), late("g", "late constraint g", level(traces))
    )


def rates(traces: Traces, name: str) -> dict[float, str]:
    """The step sizes of the sweep in increasing order, and their runs."""
    names = [n for n in traces if n == name or n.startswith(f"{name}_lr")]
    return dict(sorted((float(traces[n].config["algorithm"]["lr"]), n) for n in names))


FIGURES = {
    "figure_1": figure_1,
    "local_steps": sweep(
        {"E = 1": "_E1", "E = 2": "_E2", "E = 5": "", "E = 10": "_E10", "E = 20": "_E20"}
    ),
    "participation": sweep({"2": "_m2", "5": "_m5", "10": "", "15": "_m15", "all 20": "_all"}),
    "compression": sweep(
        {
            "K/d = 0.04": "_K0.04",
            "0.1": "",
            "0.25": "_K0.25",
            "0.5": "_K0.5",
            "1": "_K1",
            "0.1, no feedback": "_nofeedback",
        }
    ),
    "figure_5": figure_5,
    "figure_6": figure_6,
    "splits": splits,
    "learning_rates": learning_rates,
}
