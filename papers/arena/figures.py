"""The figure of the arena: objective against violation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from papers.arena.methods import FAMILIES, family_of, label_of
from papers.arena.problems import NAMES
from papers.arena.rules import TOLERANCE, Field, fields
from papers.kit import plot
from papers.kit.numbers import Number, mean
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

COLOR = dict(zip(FAMILIES, (*plot.COLORS[:2], plot.COLORS[3], "#888888"), strict=True))
MARKER = dict(zip(FAMILIES, "osD^", strict=True))
LINEAR = {"x": 5.0, "y": 1.0}  # where the axes of the first figure are linear, around 0
ROOM = 0.062  # of a panel's height for a label


class Mark(NamedTuple):
    """A point that gets a label beside the panel."""

    x: float
    y: float
    method: str
    problem: str


def panels(fig: Figure, count: int, across: int) -> list[Axes]:
    down = -(-count // across)
    axes = list(fig.subplots(down, across, squeeze=False).flat)
    for ax in axes[count:]:
        ax.remove()
    return axes[:count]


def families(fig: Figure, found: Sequence[Field]) -> None:
    """The legend of the colours of all methods, below."""
    used = {family_of(method, field.problem) for field in found for method in field.runs}
    own = [f for f in FAMILIES if f in used]
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
        thin: Any = {"linewidth": 0.5, "alpha": 0.6, "transform": ax.transAxes, "clip_on": False}
        ax.plot([x, 1.01, 1.03], [height, y, y], color=color, **thin)
        name = label_of(mark.method, mark.problem)
        style: Any = {"fontsize": 7.5, "va": "center", "annotation_clip": False}
        ax.annotate(name, (1.035, y), xycoords="axes fraction", color=color, **style)


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
    found = fields(traces)

    def draw(fig: Figure) -> None:
        for ax, field in zip(panels(fig, len(found), 2), found, strict=True):
            marks = [ending(ax, field, method) for method in field.runs]
            ax.set_xscale("symlog", linthresh=LINEAR["x"], linscale=0.6)
            ax.set_yscale("symlog", linthresh=LINEAR["y"], linscale=0.6)
            few(ax.xaxis, ax.get_xlim(), (10.0, 100.0, 1000.0))
            few(ax.yaxis, ax.get_ylim(), (1.0, 10.0, 100.0, 1000.0))
            ax.axvline(TOLERANCE, color="#d62728", linestyle=":", linewidth=1.1)
            ax.axhline(0, color="#888888", linewidth=0.8)
            ax.set(title=NAMES[field.problem], xlabel="test violation, % of the level")
            ax.set_ylabel("test objective above the optimum's, %")
            labelled(ax, marks)
        families(fig, found)

    return draw


def ending(ax: Axes, field: Field, method: str) -> Mark:
    """Where a tuned run ends on the test rows, violation and gap."""
    family, chosen = family_of(method, field.problem), field.tuned(method)
    x, y = mean(field.excess(chosen, "test_")), mean(field.gap(chosen, "test_"))
    look: Any = {"fmt": MARKER[family], "color": COLOR[family], "linewidth": 0.9}
    ax.errorbar(x.value, y.value, xerr=arms(x), yerr=arms(y), markersize=4.5, **look)
    return Mark(x.value, y.value, method, field.problem)


def few(axis: Axis, limits: tuple[float, float], sizes: Sequence[float]) -> None:
    """Ticks at 0 and at some sizes with both signs, as plain numbers."""
    low, high = limits
    both = [-x for x in reversed(sizes)] + [0.0, *sizes]
    inside = [x for x in both if low <= x <= high]
    axis.set_ticks(inside, [f"{x:g}" for x in inside])


def arms(x: Number) -> Any:
    """Lengths of an interval's two sides `[2, 1]`."""
    return np.maximum([[x.value - x.low], [x.high - x.value]], 0)


FIGURES = {"tradeoff": tradeoff}
