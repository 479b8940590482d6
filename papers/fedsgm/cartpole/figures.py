"""Figures of study cartpole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from papers.fedsgm.cartpole.claims import TABLE_1
from papers.fedsgm.cartpole.quantities import BUDGET, around
from papers.fedsgm.curves import MODE_COLORS
from papers.kit import plot
from papers.kit.numbers import mean
from papers.kit.panels import on, panel, row
from papers.kit.quantities import labels_of, name_of, sweep
from papers.kit.study import Traces

WIDTH = 0.2  # the paper's bands: a fifth of a standard deviation
CURVES: dict[str, Any] = {
    "federated, soft": {"switch": "soft", "fraction": 0.5},
    "federated, hard": {"switch": "hard", "fraction": 0.5},
    "centralized, soft": {"switch": "soft", "training": "central"},
    "centralized, hard": {"switch": "hard", "training": "central"},
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


def reward_and_cost(shown: Traces) -> plot.Drawing:
    """Reward left, cost right, of some runs."""

    def legend(ax: plot.Axes) -> None:
        ax.legend(handles=ax.get_lines()[-1:])

    return row(
        panel(on(narrow, shown, "reward"), title="episodic reward", ylim=(0, 208), legend=True),
        panel(on(narrow, shown, "cost"), LEVEL, legend, title="episodic cost"),
    )


def usual(traces: Traces) -> dict[str, Any]:
    """The labels that a run has unless a figure varies them."""
    return {**labels_of(traces["soft"]), "switch": None}


def figure_3(traces: Traces) -> plot.Drawing:
    """Soft and hard switching, federated and centralized with the finer Fisher matrix."""
    shown = {}
    for text, labels in CURVES.items():
        by_states = sweep(traces, usual(traces), "states", **labels)
        shown[text] = by_states[max(by_states)]
    return reward_and_cost(shown)


def swarms(ax: plot.Axes, groups: Mapping[str, Any]) -> None:
    """Every seed of some groups as a dot, a row a group, with the mean and its 95 % interval."""
    import seaborn as sns

    def interval(values: Any) -> tuple[float, float]:
        number = mean(values)
        return number.low, number.high

    labels = np.repeat([*groups], [len(values) for values in groups.values()])
    common: Any = {"x": np.concatenate([*groups.values()]), "y": labels, "hue": labels, "ax": ax}
    common |= {"palette": [*plot.COLORS[: len(groups)]], "legend": False}
    sns.swarmplot(size=3.6, alpha=0.6, **common)  # the same places each time, unlike jitter
    line: Any = {"marker": "|", "markersize": 7, "linewidth": 1.8, "capsize": 0.25}
    sns.pointplot(errorbar=interval, **line, **common)


def table_1(traces: Traces) -> plot.Drawing:
    """Reward and cost around round 500 of every row of Table 1, seed by seed, and the paper's."""
    runs = {}
    printed = {"reward": [], "cost": []}
    for labels, text, *_, reward, cost in TABLE_1:
        name = name_of(labels, usual(traces))
        if name in traces:
            runs[text] = traces[name]
            printed["reward"].append(reward)
            printed["cost"].append(cost)

    def rows(ax: plot.Axes, metric: str) -> None:
        swarms(ax, {text: around(trace, metric, 500) for text, trace in runs.items()})
        look: Any = {"color": "none", "markeredgecolor": "#d62728", "ms": 7, "label": "the paper"}
        ax.plot(printed[metric], range(len(runs)), "D", **look)
        ax.set_title(f"{metric} around round 500")

    def draw(fig: plot.Figure) -> None:
        left, right = fig.subplots(1, 2, sharey=True)
        rows(left, "reward")
        rows(right, "cost")
        right.axvline(BUDGET, color="#d62728", linestyle=":", label="mean budget 30")
        fig.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=2)

    return draw


def participation(traces: Traces) -> plot.Drawing:
    """Figure 4: reward and cost for numbers of participants, soft switching, Top-K 0.5."""
    runs = sweep(traces, usual(traces), "participants", switch="soft", fraction=0.5)
    return reward_and_cost({f"{count} participants": trace for count, trace in runs.items()})


FIGURES: dict[str, Callable[[Traces], plot.Drawing]] = {
    "figure_3": figure_3,
    "table_1": table_1,
    "figure_4": participation,
}
