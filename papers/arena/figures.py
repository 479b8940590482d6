"""Figures of the arena: objective against violation, curves under both budgets, grids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedlib.core import Trace
from papers.arena.methods import FAMILIES, METHODS, family_of, label_of
from papers.arena.numbers import there
from papers.arena.problems import NAMES
from papers.arena.rules import (
    TOLERANCE,
    column,
    excess,
    grid_runs,
    off,
    passes_of,
    reference_of,
    setting,
    shown,
    taken,
    uploads,
)
from papers.kit import plot
from papers.kit.numbers import Number, mean
from papers.kit.study import Params, Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = ["FIGURES"]

Array = NDArray[np.float64]
COLOR = dict(zip(FAMILIES, (*plot.COLORS[:2], plot.COLORS[3], "#888888"), strict=True))
MARKER = dict(zip(FAMILIES, "osD^", strict=True))
DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 3)))
LOWEST = 0.1  # %: what is closer to the optimum is drawn there
LINEAR = {"x": 5.0, "y": 0.01}  # where the axes of the first figure are linear, around 0
ROOM = 0.062  # of a panel's height for a label


class Mark(NamedTuple):
    """A point that gets a label beside the panel."""

    x: float
    y: float
    method: str
    problem: str


def problems(traces: Traces) -> list[str]:
    """The problems that there are."""
    return [name for name in NAMES if reference_of(traces, name) is not None]


def tuned(traces: Traces, problem: str, budget: str, p: Params) -> dict[str, Trace]:
    """The tuned run of every method."""
    found = {}
    for method in there(traces, problem):
        runs = grid_runs(traces, problem, method)
        found[method] = runs[taken(runs, problem, method, budget, p)]
    return found


def dashes(method: str) -> Any:
    """A line style that no other method of the family has."""
    own = METHODS[method].family
    same = [m for m, entry in METHODS.items() if entry.family == own]
    return DASHES[same.index(method)]


def panels(fig: Figure, count: int, across: int) -> list[Axes]:
    """Axes for some panels, in rows."""
    down = -(-count // across)
    axes = list(fig.subplots(down, across, squeeze=False).flat)
    for ax in axes[count:]:
        ax.remove()
    return axes[:count]


def families(fig: Figure, used: Sequence[tuple[str, str]]) -> None:
    """The legend of the colours of some methods and problems, below."""
    own = [f for f in FAMILIES if f in {family_of(*pair) for pair in used}]
    ax = fig.axes[0]
    handles = [ax.plot([], [], f"-{MARKER[f]}", color=COLOR[f], markersize=5)[0] for f in own]
    labels = [FAMILIES[f] for f in own]
    fig.legend(handles, labels, loc="outside lower center", ncols=len(own))


def labelled(ax: Axes, marks: Sequence[Mark]) -> None:
    """Names in a column beside the panel, in the order of the points' heights, with thin lines."""
    if not marks:
        return
    place = ax.transAxes.inverted()
    ends = {m: place.transform(ax.transData.transform((m.x, m.y))) for m in marks}
    order = sorted(ends, key=lambda mark: float(ends[mark][1]))
    for mark, y in zip(order, spread([float(ends[m][1]) for m in order]), strict=True):
        color = COLOR[family_of(mark.method, mark.problem)]
        x, height = (float(v) for v in np.clip(ends[mark], 0, 1))
        ax.plot(
            [x, 1.01, 1.03],
            [height, y, y],
            color=color,
            linewidth=0.5,
            alpha=0.6,
            transform=ax.transAxes,
            clip_on=False,
        )
        ax.annotate(
            label_of(mark.method, mark.problem),
            (1.035, y),
            xycoords="axes fraction",
            color=color,
            fontsize=7.5,
            va="center",
            annotation_clip=False,
        )


def spread(heights: Sequence[float]) -> list[float]:
    """Increasing heights, moved as little as it takes to be `ROOM` apart and inside the panel."""
    placed: list[float] = []
    for y in heights:
        placed.append(max(y, placed[-1] + ROOM if placed else 0.0))
    top = 1.0
    for i in reversed(range(len(placed))):
        placed[i] = min(placed[i], top)
        top = placed[i] - ROOM
    return placed


def tradeoff(traces: Traces) -> plot.Drawing:
    """Gap of the objective against violation on the test rows, at equal gradients, tuned."""
    p = setting(traces)
    found = {
        problem: {m: position(traces, problem, t) for m, t in runs.items()}
        for problem in problems(traces)
        for runs in [tuned(traces, problem, "grads", p)]
    }

    def draw(fig: Figure) -> None:
        for ax, (problem, points) in zip(panels(fig, len(found), 2), found.items(), strict=True):
            for method, (x, y) in points.items():
                family = family_of(method, problem)
                ax.errorbar(
                    x.value,
                    y.value,
                    xerr=arms(x),
                    yerr=arms(y),
                    fmt=MARKER[family],
                    color=COLOR[family],
                    markersize=4.5,
                    linewidth=0.9,
                )
            ax.set_xscale("symlog", linthresh=LINEAR["x"], linscale=0.6)
            ax.set_yscale("symlog", linthresh=LINEAR["y"], linscale=0.6)
            few(ax.xaxis, ax.get_xlim(), (10.0, 100.0, 1000.0))
            few(ax.yaxis, ax.get_ylim(), (0.01, 0.1, 1.0, 10.0))
            ax.axvline(TOLERANCE, color="#d62728", linestyle=":", linewidth=1.1)
            ax.axhline(0, color="#888888", linewidth=0.8)
            ax.set_title(NAMES[problem])
            ax.set_xlabel("test violation, % of the level")
            ax.set_ylabel("test objective above the optimum's")
            labelled(ax, [Mark(x.value, y.value, m, problem) for m, (x, y) in points.items()])
        families(fig, [(m, problem) for problem, points in found.items() for m in points])

    return draw


def few(axis: Axis, limits: tuple[float, float], sizes: Sequence[float]) -> None:
    """Ticks at 0 and at some sizes with both signs, as plain numbers."""
    low, high = limits
    both = [-x for x in reversed(sizes)] + [0.0, *sizes]
    inside = [x for x in both if low <= x <= high]
    axis.set_ticks(inside, [f"{x:g}" for x in inside])


def position(traces: Traces, problem: str, trace: Trace) -> tuple[Number, Number]:
    """Violation in % and gap of a run's end on the test rows."""
    reference = reference_of(traces, problem)
    assert reference is not None
    seeds = [reference.seeds.index(s) for s in trace.seeds]
    gap = trace.metrics["test_f"][:, -1] - reference.metrics["test_f"][seeds, -1]
    return mean(excess(trace.metrics["test_g"][:, -1], problem)), mean(gap)


def arms(x: Number) -> Any:
    """Lengths of an interval's two sides `[2, 1]`."""
    return np.maximum([[x.value - x.low], [x.high - x.value]], 0)


def curves(traces: Traces) -> plot.Drawing:
    """Distance to the optimum of the training rows against gradients and against bits, tuned."""
    p = setting(traces)
    chosen = {
        problem: {b: tuned(traces, problem, b, p) for b in ("grads", "bits")}
        for problem in problems(traces)
    }

    def draw(fig: Figure) -> None:
        axes = panels(fig, 2 * len(chosen), 2)
        for i, (problem, both) in enumerate(chosen.items()):
            reference = reference_of(traces, problem)
            assert reference is not None
            for ax, (budget, runs) in zip(axes[2 * i : 2 * i + 2], both.items(), strict=True):
                marks = []
                for method, trace in runs.items():
                    end = column(method, trace, budget, p) + 1
                    x = trace.rounds * cost(method, trace, budget, p)
                    y = np.maximum(off(trace, reference, problem).mean(0), LOWEST)
                    family = family_of(method, problem)
                    color, style = COLOR[family], dashes(method)
                    ax.plot(x[1:end], y[1:end], color=color, linestyle=style, linewidth=1.4)
                    last = float(x[end - 1]), float(y[end - 1])
                    ax.plot(*last, MARKER[family], color=color, markersize=3)
                    marks.append(Mark(*last, method, problem))
                ax.set_xscale("log")
                ax.set_yscale("log")
                ax.yaxis.set_major_formatter("{x:g}")
                ax.set_title(f"{NAMES[problem]}: {AXES[budget][0]}")
                ax.set_xlabel(AXES[budget][1])
                ax.set_ylabel("off the optimum, %")
                labelled(ax, marks)
        families(fig, [(m, problem) for problem, both in chosen.items() for m in both["grads"]])

    return draw


AXES = {
    "grads": ("equal gradients", "gradients of every client"),
    "bits": ("equal bits", "kB sent by all clients"),
}


def cost(method: str, trace: Trace, budget: str, p: Params) -> float:
    """What a round costs, in the unit of the axis."""
    return passes_of(method, p) if budget == "grads" else uploads(method, trace, p) / 8e3


def grids(traces: Traces) -> plot.Drawing:
    """Where every configuration of every method ends on the validation rows."""
    p = setting(traces)

    def draw(fig: Figure) -> None:
        names = problems(traces)
        for ax, problem in zip(panels(fig, len(names), 2), names, strict=True):
            reference = reference_of(traces, problem)
            assert reference is not None
            methods = there(traces, problem)
            for row, method in enumerate(reversed(methods)):
                runs = grid_runs(traces, problem, method)
                best = taken(runs, problem, method, "grads", p)
                family = family_of(method, problem)
                color = COLOR[family]
                for name, trace in runs.items():
                    far = float(off(trace, reference, problem, "val_")[:, -1].mean())
                    bad = shown(mean(excess(trace.metrics["val_g"][:, -1], problem)))
                    face = "none" if bad else color
                    ax.plot(
                        max(far, LOWEST),
                        row,
                        MARKER[family],
                        color=color,
                        markerfacecolor=face,
                        markersize=8 if name == best else 4,
                        alpha=1.0 if name == best else 0.6,
                    )
            ax.set_yticks(range(len(methods)), [label_of(m, problem) for m in reversed(methods)])
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter("{x:g}")
            ax.set_title(NAMES[problem])
            ax.set_xlabel("off the optimum on the validation rows, %")
        families(fig, [(m, name) for name in names for m in there(traces, name)])

    return draw


FIGURES = {"tradeoff": tradeoff, "curves": curves, "grids": grids}
