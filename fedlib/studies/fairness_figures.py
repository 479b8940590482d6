"""Figures of the fairness study; each says so where the data are a generated stand-in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fedlib import plot
from fedlib.numbers import Number, mean
from fedlib.studies.fairness_numbers import tuned
from fedlib.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES", "source"]

Traces = Mapping[str, Trace]
TITLES = {"f": "training loss f", "g": "gap of mean outputs g", "test_accuracy": "test accuracy"}


def source(traces: Traces) -> str:
    """Where the rows come from, in words."""
    config = traces["hard"].config["problem"]
    rows = f"{config['train_rows']} training and {config['test_rows']} test rows"
    if config["data"] == "adult":
        return f"UCI Adult, official files: {rows}"
    return f"generated stand-in, not Adult: {rows}"


def marked(fig: Figure, traces: Traces) -> None:
    """The warning on the picture itself."""
    if traces["hard"].config["problem"]["data"] != "adult":
        fig.suptitle("generated stand-in, not Adult", fontsize=9, style="italic")


def tolerance_of(traces: Traces) -> float:
    """The threshold that the study was made with."""
    return float(traces["hard"].config["algorithm"]["tolerance"])


def penalties(traces: Traces, group: str) -> dict[str, str]:
    """Penalty as a text -> run, in increasing order."""
    found = {n.rpartition("rho")[2]: n for n in traces if n.startswith(f"{group}_rho")}
    return dict(sorted(found.items(), key=lambda item: float(item[0])))


def best(traces: Traces, group: str) -> tuple[str, Trace]:
    """The tuned penalty method: its label and its run."""
    runs = penalties(traces, group)
    name = tuned(traces, list(runs.values()), tolerance_of(traces))
    return f"penalty {name.rpartition('rho')[2]}", traces[name]


def figure_7(traces: Traces) -> plot.Drawing:
    """Loss and gap against rounds: federated solid above, centralized dashed below."""
    label, run = best(traces, "penalty")
    above = {"FedSGM hard": traces["hard"], "FedSGM soft": traces["soft"], label: run}
    above["FedAvg, no constraint"] = traces["fedavg"]
    label, run = best(traces, "central_penalty")
    below = {"hard": traces["central_hard"], "soft": traces["central_soft"], label: run}
    duals = [n for n in traces if n.startswith("conex_dual")]
    below |= {f"IPP ConEx, dual step {n.removeprefix('conex_dual')}": traces[n] for n in duals}

    def draw(fig: Figure) -> None:
        axes = fig.subplots(2, 2, sharex=True, sharey="col")
        for row, (shown, where) in enumerate(((above, "federated"), (below, "centralized"))):
            for column, metric in enumerate(("f", "g")):
                ax = axes[row, column]
                plot.bands(ax, shown, metric)
                ax.set_title(f"{where}: {TITLES[metric]}")
                for line in ax.lines if row else ():
                    line.set_linestyle("--")
                ax.set_xlabel("round" if row else "")
            plot.level(axes[row, 1], tolerance_of(traces), "level")
            axes[row, 0].legend()
        axes[0, 0].set_ylim(0.3, 0.6)
        axes[0, 1].set_ylim(0, 2.4 * tolerance_of(traces))  # without constraint it leaves the frame
        marked(fig, traces)

    return draw


def trade_off(traces: Traces) -> plot.Drawing:
    """Late loss against late gap, a point a seed: penalties as crosses, centralized hollow."""
    groups: dict[str, tuple[Trace, str, bool]] = {}
    for m in ("hard", "soft"):
        groups[f"FedSGM {m}"] = traces[m], "o", True
    for rho, name in penalties(traces, "penalty").items():
        groups[f"penalty {rho}"] = traces[name], "x", True
    for m in ("hard", "soft"):
        groups[f"centralized {m}"] = traces[f"central_{m}"], "s", False
    for rho, name in penalties(traces, "central_penalty").items():
        groups[f"centralized penalty {rho}"] = traces[name], "D", False
    for name in [n for n in traces if n.startswith("conex_dual")]:
        groups[f"IPP ConEx, dual step {name.removeprefix('conex_dual')}"] = traces[name], "^", False

    near = [t for t, _, _ in groups.values() if t.late("g").mean() <= 1.2 * tolerance_of(traces)]

    def draw(fig: Figure) -> None:
        axes = fig.subplots(1, 2)
        for ax in axes:
            for i, (label, (trace, marker, full)) in enumerate(groups.items()):
                color = plot.COLORS[i % len(plot.COLORS)]
                face: dict[str, Any] = {"color": color}
                if not full:
                    face = {"edgecolors": color, "facecolors": "none"}
                f, g = trace.late("f"), trace.late("g")
                ax.scatter(f, g, marker=marker, s=28, label=label, **face)
            plot.level(ax, tolerance_of(traces), "level")
            ax.set_xlabel("late training loss f")
        ends = [end for t in near for end in (t.late("f").min(), t.late("f").max())]
        axes[1].set_xlim(min(ends) - 0.003, max(ends) + 0.003)
        axes[1].set_ylim(0, 1.3 * tolerance_of(traces))
        axes[0].set_title("all methods")
        axes[1].set_title("those that keep the level")
        axes[0].set_ylabel("late gap g")
        axes[1].legend(loc="upper left", bbox_to_anchor=(1, 1.05))
        marked(fig, traces)

    return draw


def readings(traces: Traces) -> plot.Drawing:
    """Late loss, gap and test accuracy against the step size, with the majority's accuracy."""
    groups = {"hard": "hard", "soft": "soft", "fedavg": "no constraint"}
    majority = float(traces["hard"].config["problem"]["majority"])

    def draw(fig: Figure) -> None:
        axes = fig.subplots(1, 3)
        for ax, metric in zip(axes, TITLES, strict=True):
            rows = {text: rates(traces, name, metric) for name, text in groups.items()}
            x = [rate for rate, _ in rates_of(traces, "hard")]
            plot.dots(ax, x, rows)
            ax.set_title(f"late {TITLES[metric]}")
            ax.set_xscale("log")
            ax.set_xlabel("step size")
        plot.level(axes[1], tolerance_of(traces), "level")
        axes[2].axhline(majority, color="#7d6bb0", linestyle="--", label="majority class")
        axes[0].legend()
        axes[2].legend(loc="lower right")
        marked(fig, traces)

    return draw


def rates_of(traces: Traces, name: str) -> list[tuple[float, Trace]]:
    """The sweep over step sizes, in increasing order, on the seeds that all have."""
    runs = [t for n, t in traces.items() if n == name or n.startswith(f"{name}_lr")]
    return sorted(((float(t.config["algorithm"]["lr"]), t) for t in runs), key=lambda x: x[0])


def rates(traces: Traces, name: str, metric: str) -> list[Number]:
    """Late means of a metric over the sweep of step sizes."""
    return [mean(t.late(metric)) for _, t in rates_of(traces, name)]


FIGURES = {"figure_7": figure_7, "trade_off": trade_off, "readings": readings}
