"""Figures of the study of many objectives; each says so where the pictures are a stand-in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fedlib.core import Trace
from papers.fedcmoo.many.numbers import SETS, STAND_IN, gaps, megabytes, per_task, steps
from papers.kit import plot
from papers.kit.numbers import Number, mean
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES", "LABELS", "source_text"]

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
    """Where the pictures come from, in words."""
    config = traces["halves_fedcmoo"].config["problem"]
    count, held = config["pictures"], config["evaluate"]
    many = config["attributes"]
    return f"{many} {WORDS[config['data']]}: {count} training and {held} test pictures"


def marked(fig: Figure, traces: Traces) -> None:
    """The warning on the picture itself."""
    if traces["halves_fedcmoo"].config["problem"]["data"] == STAND_IN:
        fig.suptitle("stand-in: pairs of scikit-learn's digits", fontsize=9, style="italic")


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
        fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        marked(fig, traces)

    return draw


def progress(traces: Traces) -> plot.Drawing:
    """Mean test accuracy over rounds, uploads and gradients, a row each; a column for every M."""

    def draw(fig: Figure) -> None:
        axes = fig.subplots(len(COSTS), len(SETS), sharey=True)
        for row, (text, share) in zip(axes, COSTS.values(), strict=True):
            for ax, (tasks, count) in zip(row, SETS.items(), strict=True):
                ends = []
                for name, label in LABELS.items():
                    trace = traces[f"{tasks}_{name}"]
                    x = share(trace) * trace.rounds
                    band(ax, x, trace, COLORS[name], label)
                    ends.append(x[-1])
                if max(ends) > 4 * min(ends):  # FSMGDA spends so much more that lines would vanish
                    ax.set_xscale("symlog", linthresh=min(ends) / 4)
                    ax.minorticks_off()
                    ax.set_xlim(0)
                    ax.xaxis.set_major_formatter("{x:g}")
                ax.set_xlabel(text)
                ax.set_title(f"{count} tasks" if ax in axes[0] else "")
            row[0].set_ylabel("mean test accuracy (%)")
        level = 100 * float(traces["halves_fedcmoo"].config["problem"]["majority"])
        for ax in axes.flat:
            ax.axhline(level, color="#7d6bb0", linestyle="--", lw=1, label="always the majority")
        axes[0, 0].legend()
        marked(fig, traces)

    return draw


def band(ax: Any, x: Any, trace: Trace, color: str, label: str) -> None:
    """Accuracy in percent against any cost: mean over seeds, and a standard deviation around it."""
    y = 100 * trace.metrics["accuracy"]
    ax.plot(x, y.mean(0), color=color, label=label, lw=1.5)
    if len(y) > 1:
        low, high = y.mean(0) - y.std(0), y.mean(0) + y.std(0)
        ax.fill_between(x, low, high, color=color, alpha=0.18, linewidth=0)


def gap_by_tasks(traces: Traces) -> plot.Drawing:
    """Lead of FedCMOO over FSMGDA, and spread of the losses over tasks, against M."""
    found = [gaps(traces[f"{t}_fedcmoo"], traces[f"{t}_fsmgda"]) for t in SETS]
    budgets = {
        "gap": "equal rounds",
        "gap_gradients": "equal gradients",
        "gap_upload": "equal uploads",
    }

    def deviation(tasks: str, name: str) -> Number:
        return mean(per_task(traces[f"{tasks}_{name}"], "loss").std(1))

    def draw(fig: Figure) -> None:
        left, right = fig.subplots(1, 2)
        count = list(SETS.values())
        rows = {text: [n[k] for n in found] for k, text in budgets.items()}
        plot.dots(left, count, rows, unit="FedCMOO - FSMGDA (points)")
        for line, color in zip(left.containers, plot.COLORS[3:], strict=False):
            recolor(line, color)  # the first colours mean methods
        left.axhline(0, color="#888888", lw=0.8)
        left.set_title("lead in mean test accuracy")
        spread = {label: [deviation(t, m) for t in SETS] for m, label in LABELS.items()}
        plot.dots(right, count, spread, unit="standard deviation over tasks")
        for line, color in zip(right.containers, COLORS.values(), strict=True):
            recolor(line, color)
        right.set_title("unevenness of the final test losses")
        right.set_ylim(0)
        for ax in (left, right):
            ax.set_xscale("log")
            ax.set_xticks(count, [str(m) for m in count])
            ax.minorticks_off()
            ax.set_xlabel("number of tasks M")
            ax.legend()
        marked(fig, traces)

    return draw


def recolor(line: Any, color: str) -> None:
    """All parts of a line with its error bars in one colour."""
    for part in (line[0], *line[1], *line[2]):
        part.set_color(color)
    for cap in line[1]:
        cap.set_markeredgecolor(color)


FIGURES = {"figure_10": figure_10, "progress": progress, "gap_by_tasks": gap_by_tasks}
