"""Figures of study cartpole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from papers.fedsgm.cartpole.claims import TABLE_1
from papers.fedsgm.cartpole.numbers import BUDGET, around
from papers.fedsgm.curves import MODE_COLORS
from papers.kit import plot
from papers.kit.numbers import mean
from papers.kit.panels import on, panel, row
from papers.kit.study import Traces, swept

WIDTH = 0.2  # the paper's bands: a fifth of a standard deviation
CURVES = {
    "federated, soft": "soft_top0.5",
    "federated, hard": "hard_top0.5",
    "centralized, soft": "central_fine_soft",
    "centralized, hard": "central_fine_hard",
}
LEVEL = on(plot.level, BUDGET, "mean budget 30")


def color_of(label: str, number: int) -> str:
    """The colour of hard or soft switching; of another curve, the one with this number."""
    for mode, color in MODE_COLORS.items():
        if label.endswith(mode):
            return color
    return plot.COLORS[len(MODE_COLORS) + number]


def narrow(ax: plot.Axes, traces: Traces, metric: str) -> None:
    """Mean and a fifth of a standard deviation, as the paper draws; centralized runs dashed."""
    for number, (label, trace) in enumerate(traces.items()):
        color = color_of(label, number)
        look: Any = {"around": ("sd", WIDTH), "shade": 0.07 if len(traces) > 3 else 0.18}
        look |= {"linestyle": "--" if label.startswith("centralized") else "-", "label": label}
        plot.band(ax, trace.rounds, trace.metrics[metric], color=color, **look)
    ax.set_xlabel("round")


def reward_and_cost(traces: Traces, shown: Mapping[str, str]) -> plot.Drawing:
    """Reward left, cost right, of some runs; labels -> names."""
    there = {label: traces[name] for label, name in shown.items() if name in traces}

    def legend(ax: plot.Axes) -> None:
        ax.legend(handles=ax.get_lines()[-1:])

    return row(
        panel(on(narrow, there, "reward"), title="episodic reward", ylim=(0, 208), legend=True),
        panel(on(narrow, there, "cost"), LEVEL, legend, title="episodic cost"),
    )


def figure_3(traces: Traces) -> plot.Drawing:
    return reward_and_cost(traces, CURVES)


def swarms(ax: plot.Axes, groups: Mapping[str, Any]) -> None:
    """Every seed of some groups as a dot, a row a group, with the mean and its 95 % interval."""
    import seaborn as sns

    def interval(values: Any) -> tuple[float, float]:
        found = mean(values)
        return found.low, found.high

    labels = np.repeat([*groups], [len(values) for values in groups.values()])
    common: Any = {"x": np.concatenate([*groups.values()]), "y": labels, "hue": labels, "ax": ax}
    common |= {"palette": [*plot.COLORS[: len(groups)]], "legend": False}
    sns.swarmplot(size=3.6, alpha=0.6, **common)  # the same places each time, unlike jitter
    line: Any = {"marker": "|", "markersize": 7, "linewidth": 1.8, "capsize": 0.25}
    sns.pointplot(errorbar=interval, **line, **common)


def table_1(traces: Traces) -> plot.Drawing:
    """Reward and cost around round 500 of every row of Table 1, seed by seed, and the paper's."""
    table = [entry for entry in TABLE_1 if entry[0] in traces]

    def rows(ax: plot.Axes, metric: str) -> None:
        values = {label: around(traces[run], metric, 500) for run, label, *_ in table}
        swarms(ax, values)
        printed = [reward if metric == "reward" else cost for *_, reward, cost in table]
        look: Any = {"color": "none", "markeredgecolor": "#d62728", "ms": 7, "label": "the paper"}
        ax.plot(printed, range(len(table)), "D", **look)
        ax.set_title(f"{metric} around round 500")

    def draw(fig: plot.Figure) -> None:
        left, right = fig.subplots(1, 2, sharey=True)
        rows(left, "reward")
        rows(right, "cost")
        right.axvline(BUDGET, color="#d62728", linestyle=":", label="mean budget 30")
        fig.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=2)

    return draw


def participation(traces: Traces) -> plot.Drawing:
    """plot.Figure 4: reward and cost for numbers of participants, soft switching, Top-K 0.5."""
    runs = {int(n): f"half_n{n:g}" for n in swept(traces, "half_n")}
    runs[int(traces["soft_top0.5"].config["algorithm"]["participants"])] = "soft_top0.5"
    shown = {f"{n} participants": runs[n] for n in sorted(runs)}
    return reward_and_cost(traces, shown)


FIGURES: dict[str, Callable[[Traces], plot.Drawing]] = {
    "figure_3": figure_3,
    "table_1": table_1,
    "figure_4": participation,
}
