"""Figures of study cartpole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from fedlib import plot
from fedlib.numbers import mean
from fedlib.studies.cartpole_claims import TABLE_1
from fedlib.studies.cartpole_numbers import BUDGET, around, succeeds
from fedlib.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["FIGURES"]

Traces = Mapping[str, Trace]
WIDTH = 0.2  # the paper's bands: a fifth of a standard deviation
CURVES = {
    "federated, soft": "soft_top0.5",
    "federated, hard": "hard_top0.5",
    "centralized, soft": "central_fine_soft",
    "centralized, hard": "central_fine_hard",
}


def narrow(ax: Axes, traces: Traces, metric: str) -> None:
    """Mean and a fifth of a standard deviation, as the paper draws; centralized runs dashed."""
    for (label, trace), color in zip(traces.items(), plot.COLORS, strict=False):
        x = trace.metrics[metric]
        middle, half = x.mean(0), WIDTH * x.std(0)
        style = "--" if label.startswith("centralized") else "-"
        ax.plot(trace.rounds, middle, style, color=color, label=label, linewidth=1.5)
        ax.fill_between(
            trace.rounds, middle - half, middle + half, color=color, alpha=0.18, linewidth=0
        )
    ax.set_xlabel("round")


def reward_and_cost(shown: Mapping[str, str]) -> Callable[[Traces], plot.Drawing]:
    """Reward left, cost right, of some runs; labels -> names."""

    def figure(traces: Traces) -> plot.Drawing:
        def draw(fig: Figure) -> None:
            left, right = fig.subplots(1, 2)
            there = {label: traces[name] for label, name in shown.items() if name in traces}
            narrow(left, there, "reward")
            narrow(right, there, "cost")
            left.set_title("episodic reward")
            left.set_ylim(0, 208)
            right.set_title("episodic cost")
            plot.level(right, BUDGET, "mean budget 30")
            left.legend()
            right.legend(handles=right.get_lines()[-1:])

        return draw

    return figure


def every_seed(traces: Traces) -> plot.Drawing:
    """Reward of every seed of the four curves, and of the run without compression."""
    shown = {**CURVES, "federated, soft, no compression": "soft_none"}

    def draw(fig: Figure) -> None:
        axes = fig.subplots(1, len(shown), sharey=True)
        for ax, (label, name), color in zip(axes, shown.items(), plot.COLORS, strict=False):
            trace = traces[name]
            ax.plot(trace.rounds, trace.metrics["reward"].T, color=color, linewidth=0.7, alpha=0.8)
            won = int(succeeds(trace).sum())
            ax.set_title(
                label.replace(", ", "\n", 1) + f"\n{won} of {len(trace.seeds)} succeed", fontsize=9
            )
            ax.set_xlabel("round")
        axes[0].set_ylabel("reward")
        axes[0].set_ylim(0, 208)

    return draw


def table_1(traces: Traces) -> plot.Drawing:
    """Reward and cost around round 500 of every row of Table 1, seed by seed, and the paper's."""
    table = [entry for entry in TABLE_1 if entry[0] in traces]

    def draw(fig: Figure) -> None:
        for ax, metric, column, title in zip(
            fig.subplots(1, 2, sharey=True),
            ("reward", "cost"),
            (4, 5),
            ("reward around round 500", "cost around round 500"),
            strict=True,
        ):
            for row, entry in enumerate(table):
                seeds = around(traces[entry[0]], metric, 500)
                color = plot.COLORS[row % len(plot.COLORS)]
                spread = row + 0.28 * np.linspace(-1, 1, len(seeds))
                ax.plot(seeds, spread, "o", color=color, markersize=3.5, alpha=0.75)
                number = mean(seeds)
                ax.plot([number.low, number.high], [row, row], color=color, linewidth=2)
                ax.plot(
                    entry[column],
                    row,
                    "D",
                    color="none",
                    markeredgecolor="#d62728",
                    markersize=7,
                    label="the paper" if row == 0 else None,
                )
            ax.set_title(title)
            ax.set_yticks(range(len(table)), [entry[1] for entry in table])
            if metric == "cost":
                ax.axvline(BUDGET, color="#d62728", linestyle=":", label="mean budget 30")
        ax.invert_yaxis()
        fig.legend(*ax.get_legend_handles_labels(), loc="outside lower center", ncols=2)

    return draw


def endings(traces: Traces) -> plot.Drawing:
    """How the episodes of every seed end, over the rounds: a success ends by time."""
    trace = traces["soft_none"]
    kinds = {"time": "balanced to the end", "position": "ran off the track", "angle": "pole fell"}

    def draw(fig: Figure) -> None:
        count = len(trace.seeds)
        columns = min(5, count)
        axes = np.atleast_1d(
            fig.subplots(-(-count // columns), columns, sharex=True, sharey=True)
        ).ravel()
        for ax, seed, k in zip(axes, trace.seeds, range(count), strict=False):
            parts = [trace.metrics[name][k] for name in kinds]
            ax.stackplot(
                trace.rounds, parts, labels=kinds.values(), colors=plot.COLORS[:3], alpha=0.85
            )
            ax.set_title(f"seed {seed}", fontsize=9)
            ax.set_ylim(0, 1)
            ax.margins(x=0)
        for ax in axes[count:]:
            ax.set_visible(False)
        handles, labels = axes[0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside upper center", ncols=3)
        fig.supxlabel("round", fontsize=9)
        fig.supylabel("share of episodes", fontsize=9)

    return draw


def choices(traces: Traces) -> plot.Drawing:
    """Reward and cost at the end of the sweeps over what the paper leaves open, seed by seed."""
    base = traces["soft_none"]
    groups = {
        "damping": _values(traces, "damping", base.config["algorithm"]["damping"]),
        "sharpness beta": _values(traces, "beta", base.config["algorithm"]["switch"]["beta"]),
        "threshold epsilon": _values(traces, "tolerance", base.config["algorithm"]["tolerance"]),
    }

    def draw(fig: Figure) -> None:
        axes = fig.subplots(2, len(groups), sharex="col", sharey="row")
        for column, (title, runs) in zip(axes.T, groups.items(), strict=True):
            for ax, metric in zip(column, ("reward", "cost"), strict=True):
                for i, (_, trace) in enumerate(runs):
                    x = around(trace, metric, SWEEP_END)
                    number = mean(x)
                    ax.plot(np.full(len(x), i), x, "o", color=plot.COLORS[0], alpha=0.45, ms=4)
                    ax.errorbar(
                        i,
                        number.value,
                        [[number.value - number.low], [number.high - number.value]],
                        color=plot.COLORS[1],
                        marker="_",
                        capsize=4,
                    )
                ax.set_ylabel(metric)
            plot.level(column[1], BUDGET, "mean budget 30")
            column[0].set_title(title)
            column[1].set_xticks(range(len(runs)), [f"{v:g}" for v, _ in runs])
        axes[1, 0].legend()
        for ax in axes[:, 1:].flat:
            ax.set_ylabel("")

    return draw


SWEEP_END = 300


def _values(traces: Traces, prefix: str, base: float) -> list[tuple[float, Trace]]:
    """The runs of a sweep and the main run, by value."""
    found = {float(n.removeprefix(prefix)): t for n, t in traces.items() if n.startswith(prefix)}
    return sorted({**found, float(base): traces["soft_none"]}.items())


def steps_per_client(traces: Traces) -> dict[str, str]:
    """Labels of the participation sweep, in order."""
    counts = sorted(int(n.removeprefix("half_n")) for n in traces if n.startswith("half_n"))
    return {f"{n} participants": f"half_n{n}" for n in counts}


def participation(traces: Traces) -> plot.Drawing:
    """Figure 4: reward and cost for numbers of participants, soft switching, Top-K 0.5."""
    main = traces["soft_top0.5"].config["algorithm"]["participants"]
    shown = {**steps_per_client(traces), f"{main} participants": "soft_top0.5"}
    ordered = dict(sorted(shown.items(), key=lambda item: int(item[0].split()[0])))
    end = traces[next(iter(steps_per_client(traces).values()))].rounds[-1]
    inner = reward_and_cost(ordered)(traces)

    def draw(fig: Figure) -> None:
        inner(fig)
        for ax in fig.axes:
            ax.set_xlim(0, end)

    return draw


FIGURES: dict[str, Callable[[Traces], plot.Drawing]] = {
    "figure_3": reward_and_cost(CURVES),
    "every_seed": every_seed,
    "table_1": table_1,
    "figure_4": participation,
    "endings": endings,
    "choices": choices,
}
