"""Figures of study F."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fedlib import plot
from fedlib.numbers import Number, mean
from fedlib.studies.np_unified_numbers import tuned
from fedlib.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES"]

Traces = Mapping[str, Trace]
MODES = ("hard", "soft")


def tolerance_of(traces: Traces) -> float:
    """The threshold that the study was made with."""
    return float(traces["hard"].config["algorithm"]["tolerance"])


def figure_1(traces: Traces) -> plot.Drawing:
    """Objective and constraint of both modes, with 10 clients, all clients, and centralized."""
    shown = {
        f"{mode}, {label}": traces[f"{mode}{suffix}"]
        for suffix, label in (
            ("", "10 of 20"),
            ("_all", "all clients"),
            ("_central", "centralized"),
        )
        for mode in MODES
    }

    def draw(fig: Figure) -> None:
        left, right = fig.subplots(1, 2)
        for ax, metric, title in ((left, "f", "objective f"), (right, "g", "constraint g")):
            plot.bands(ax, shown, metric, log=True)
            ax.set_title(title)
        plot.level(right, tolerance_of(traces), "level")
        right.set_ylim(0.02, 0.8)
        left.legend()

    return draw


def sweep(names: Mapping[str, str]) -> Callable[[Traces], plot.Drawing]:
    """Figure 2's rows: objective above, feasibility below, hard left, soft right.

    `names` maps a label to the suffix of the runs, the same for both modes.
    """

    def figure(traces: Traces) -> plot.Drawing:
        def draw(fig: Figure) -> None:
            axes = fig.subplots(2, 2, sharex=True, sharey="row")
            for column, mode in enumerate(MODES):
                shown = {
                    k: traces[f"{mode}{v}"] for k, v in names.items() if f"{mode}{v}" in traces
                }
                for row, metric in enumerate(("f", "g")):
                    plot.bands(axes[row, column], shown, metric, log=True)
                    axes[row, column].set_xlabel("round" if row else "")
                plot.level(axes[1, column], tolerance_of(traces), "level")
                axes[0, column].set_title(f"{mode} switching")
            axes[0, 0].set_ylabel("objective f")
            axes[1, 0].set_ylabel("constraint g")
            axes[1, 0].set_ylim(0.02, 0.8)
            axes[0, 1].legend()

        return draw

    return figure


def figure_5(traces: Traces) -> plot.Drawing:
    """The constraint under soft switching for several sharpnesses, and hard."""
    shown = {f"beta = {b:g}": traces[n] for b, n in sharpness_runs(traces)} | {
        "hard": traces["hard"]
    }

    def draw(fig: Figure) -> None:
        left, right = fig.subplots(1, 2)
        for ax, metric, title in ((left, "f", "objective f"), (right, "g", "constraint g")):
            plot.bands(ax, shown, metric, log=True)
            ax.set_title(title)
        plot.level(right, tolerance_of(traces), "level")
        right.set_ylim(0.02, 0.8)
        left.legend()

    return draw


def sharpness_runs(traces: Traces) -> list[tuple[float, str]]:
    """The sharpnesses that the paper's figure shows, with their runs, in order."""
    names = [n for n in traces if n == "soft" or n.startswith("soft_beta")]
    beta = {n: float(traces[n].config["algorithm"]["switch"]["beta"]) for n in names}
    return sorted((b, n) for n, b in beta.items() if b <= 400)


def figure_6(traces: Traces) -> plot.Drawing:
    """Late objective against late constraint, a point a seed, every method at its tuned rate."""
    tolerance = tolerance_of(traces)
    groups = {
        f"FedSGM {m}": [n for n in traces if n == m or n.startswith(f"{m}_lr")] for m in MODES
    }
    rhos: dict[str, list[str]] = {}
    for name in traces:
        if name.startswith("penalty_rho"):
            rhos.setdefault(name.split("_")[1], []).append(name)
    groups |= {f"penalty {k.removeprefix('rho')}": v for k, v in rhos.items()}

    def draw(fig: Figure) -> None:
        ax = fig.subplots()
        for i, (label, names) in enumerate(groups.items()):
            trace = traces[tuned(traces, names, tolerance)]
            style = {"marker": "o"} if label.startswith("FedSGM") else {"marker": "x"}
            rate = trace.config["algorithm"]["lr"]
            ax.scatter(
                trace.late("f"),
                trace.late("g"),
                color=plot.COLORS[i % len(plot.COLORS)],
                label=f"{label} (step {rate:g})",
                s=28,
                **style,  # type: ignore[arg-type]
            )
        plot.level(ax, tolerance, "level")
        ax.set_xscale("log")
        ax.set_xlabel("late objective f")
        ax.set_ylabel("late constraint g")
        ax.legend(loc="upper left", bbox_to_anchor=(1, 1))

    return draw


def splits(traces: Traces) -> plot.Drawing:
    """Late constraint of every split: 10 of 20 clients against all, hard and soft."""

    def draw(fig: Figure) -> None:
        left, right = fig.subplots(1, 2, sharey=True)
        for ax, mode in ((left, "hard"), (right, "soft")):
            some, everyone = traces[mode].late("g"), traces[f"{mode}_all"].late("g")
            order = np.argsort(some)
            x = np.arange(len(order))
            ax.plot(x, some[order], "o", color=plot.COLORS[0], label="10 of 20 clients a round")
            ax.plot(x, everyone[order], "s", color=plot.COLORS[1], label="all clients")
            plot.level(ax, tolerance_of(traces), "level")
            seeds = [str(traces[mode].seeds[i]) for i in order]
            ax.set_xticks(x, seeds)
            ax.set_xlabel("seed (split), sorted")
            ax.set_title(f"{mode} switching")
        left.set_ylabel("late constraint g")
        left.legend()

    return draw


def learning_rates(traces: Traces) -> plot.Drawing:
    """Late objective and constraint against the step size, 10 clients and all."""
    groups = {f"{m}{s}": f"{m}, {t}" for s, t in (("", "10 of 20"), ("_all", "all")) for m in MODES}

    def draw(fig: Figure) -> None:
        axes = fig.subplots(1, 2)
        for ax, metric, title in zip(
            axes, "fg", ("late objective f", "late constraint g"), strict=True
        ):
            rows = {label: rates(traces, name, metric) for name, label in groups.items()}
            x = rate_values(traces, "hard")
            plot.dots(ax, x, rows)
            ax.set_title(title)
            ax.set_xscale("log")
            plot.plain_log(ax)
            ax.set_xlabel("step size")
        plot.level(axes[1], tolerance_of(traces), "level")
        axes[0].legend()

    return draw


def rates(traces: Traces, name: str, metric: str) -> Sequence[Number]:
    """Late means of a metric over the sweep of step sizes."""
    runs = {n: t for n, t in traces.items() if n == name or n.startswith(f"{name}_lr")}
    ordered = sorted(runs.values(), key=lambda t: float(t.config["algorithm"]["lr"]))
    return [mean(t.late(metric)) for t in ordered]


def rate_values(traces: Traces, name: str) -> list[float]:
    """The step sizes of the sweep."""
    runs = [t for n, t in traces.items() if n == name or n.startswith(f"{name}_lr")]
    return sorted(float(t.config["algorithm"]["lr"]) for t in runs)


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
