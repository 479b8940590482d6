"""Figures of the study of many objectives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlib.core import Trace
from papers.fedcmoo.many.numbers import SETS, STAND_IN, gaps, megabytes, per_task, steps
from papers.kit import plot
from papers.kit.numbers import Number, mean
from papers.kit.panels import Layer, across, columns, grid, legend_below, on, panel, row
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABELS = {"fedcmoo": "FedCMOO", "pref": "FedCMOO-Pref", "fsmgda": "FSMGDA"}
COLORS = dict(zip(LABELS, (plot.COLORS[0], plot.COLORS[2], plot.COLORS[1]), strict=True))
WORDS = {
    "mnist_fashion": "attributes of a digit and an item",
    "celeba": "attributes of CelebA's faces",
    STAND_IN: "attributes of pairs of scikit-learn's digits, a stand-in",
}
#: What a horizontal axis counts -> its label, and a round's share of it.
COSTS: dict[str, Any] = {
    "round": ("round", lambda _: 1.0),
    "upload": ("MB uploaded by one client", megabytes),
    "gradients": ("minibatch gradients of one client", steps),
}


def source_text(traces: Traces) -> str:
    config = traces["halves_fedcmoo"].config["problem"]
    count, held = config["pictures"], config["evaluate"]
    many = config["attributes"]
    return f"{many} {WORDS[config['data']]}: {count} training and {held} test pictures"


def figure_10(traces: Traces) -> plot.Drawing:
    """Final test loss of every task as a distance from the centre, five tasks and forty."""

    def draw(fig: Figure) -> None:
        axes: Any = fig.subplots(1, 2, subplot_kw={"projection": "polar"})
        engine: Any = fig.get_layout_engine()
        engine.set(rect=(0, 0, 1, 0.95))  # it does not make room for the titles of polar axes
        for ax, tasks in zip(axes, ("groups", "attributes"), strict=True):
            count = SETS[tasks]
            angle = 2 * np.pi * np.arange(count + 1) / count
            for name, label in LABELS.items():
                loss = per_task(traces[f"{tasks}_{name}"], "loss").mean(0)
                closed = np.append(loss, loss[0])
                size = 1.5 if count > 10 else 4
                ax.plot(
                    angle, closed, "o-", markersize=size, lw=1.2, color=COLORS[name], label=label
                )
            ax.set_theta_zero_location("N")
            ax.set_theta_direction(-1)
            ax.set_xticks(angle[:-1], [str(k + 1) for k in range(count)])
            ax.tick_params(axis="x", labelsize=7 if count > 10 else 9, pad=-1)
            ax.set_rlim(0)
            ax.set_rlabel_position(180 / count)
            ax.tick_params(axis="y", labelsize=7)
            ax.set_title(f"{count} tasks", pad=14)

    return legend_below(draw, 3)


def progress(traces: Traces) -> plot.Drawing:
    majority = 100 * float(traces["halves_fedcmoo"].config["problem"]["majority"])

    def fill(ax: Axes, tasks: str, share: Callable[[Trace], float]) -> None:
        ends = []
        for name, label in LABELS.items():
            trace = traces[f"{tasks}_{name}"]
            x = share(trace) * trace.rounds
            y = 100 * trace.metrics["accuracy"]
            plot.band(ax, x, y, color=COLORS[name], label=label)
            ends.append(x[-1])
        if max(ends) > 4 * min(ends):  # FSMGDA spends so much more that lines would vanish
            ax.set_xscale("symlog", linthresh=min(ends) / 4)
            ax.minorticks_off()
            ax.set_xlim(0)
            ax.xaxis.set_major_formatter("{x:g}")
        ax.axhline(majority, color="#7d6bb0", linestyle="--", lw=1, label="always the majority")

    titles = {tasks: f"{count} tasks" for tasks, count in SETS.items()}
    bare = dict.fromkeys(SETS, "")
    label = "mean test accuracy (%)"
    lines = [
        columns(
            partial(fill, share=share),
            bare if i else titles,
            ylabel=label,
            xlabel=text,
            legend=not i,
        )
        for i, (text, share) in enumerate(COSTS.values())
    ]
    return grid(*lines, sharey=True)


def gap_by_tasks(traces: Traces) -> plot.Drawing:
    found = [gaps(traces[f"{t}_fedcmoo"], traces[f"{t}_fsmgda"]) for t in SETS]
    budgets = {"gap": "rounds", "gap_gradients": "gradients", "gap_upload": "uploads"}
    leads = {f"equal {text}": [n[k] for n in found] for k, text in budgets.items()}
    spread = {
        label: [mean(per_task(traces[f"{tasks}_{name}"], "loss").std(1)) for tasks in SETS]
        for name, label in LABELS.items()
    }

    def against(rows: Any, colors: Sequence[str], *more: Layer, **frame: Any) -> Layer:
        shown = on(by_count, rows, colors)
        return panel(shown, *more, xlabel="number of tasks M", legend=True, **frame)

    return row(
        against(
            leads,
            plot.COLORS[3:],  # the first colours mean methods
            across(0, color="#888888", lw=0.8),
            title="lead in mean test accuracy",
            ylabel="FedCMOO - FSMGDA (points)",
        ),
        against(
            spread,
            [*COLORS.values()],
            title="unevenness of the final test losses",
            ylabel="standard deviation over tasks",
            ylim=(0, None),
        ),
    )


def by_count(ax: Axes, rows: dict[str, list[Number]], colors: Sequence[str]) -> None:
    count = list(SETS.values())
    plot.dots(ax, count, rows, colors=colors)
    plot.log_ticks(ax, count)


FIGURES = {"figure_10": figure_10, "progress": progress, "gap_by_tasks": gap_by_tasks}
