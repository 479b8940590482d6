"""Figures of the arena: objective against violation, curves, grids, all problems together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from papers.arena.aggregates import BOTH, GROUPS, better, estimate, iqm, scores_of
from papers.arena.methods import FAMILIES, METHODS, family_of, label_of
from papers.arena.problems import NAMES
from papers.arena.rules import TOLERANCE, Field, excess, fields, passes_of, sent, shown
from papers.kit import plot
from papers.kit.numbers import Number, mean
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

COLOR = dict(zip(FAMILIES, (*plot.COLORS[:2], plot.COLORS[3], "#888888"), strict=True))
MARKER = dict(zip(FAMILIES, "osD^", strict=True))
DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 3)))
LOWEST = 0.1  # %: what is closer to the optimum is drawn there
HIGHEST = 1e4  # %: what is farther is drawn there, diverged runs among it
LINEAR = {"x": 5.0, "y": 1.0}  # where the axes of the first figure are linear, around 0
NEAR_TOP = 0.5  # an interquartile mean below lies off the axis
ROOM = 0.062  # of a panel's height for a label


class Mark(NamedTuple):
    """A point that gets a label beside the panel."""

    x: float
    y: float
    method: str
    problem: str


def dashes(method: str) -> Any:
    """A line style that no other method of the family has."""
    own = METHODS[method].family
    same = [m for m, entry in METHODS.items() if entry.family == own]
    return DASHES[same.index(method)]


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
    """Where a tuned run ends on the test rows, violation and gap; hollow: its average."""
    family = family_of(method, field.problem)
    for place in reversed(BOTH):
        chosen = field.tuned(method, place)
        x, y = mean(field.excess(chosen, "test_")), mean(field.gap(chosen, "test_"))
        look: Any = {"fmt": MARKER[family], "color": COLOR[family], "linewidth": 0.9}
        if place == BOTH[0]:
            ax.errorbar(x.value, y.value, xerr=arms(x), yerr=arms(y), markersize=4.5, **look)
        else:
            ax.plot(x.value, y.value, MARKER[family], color=COLOR[family], mfc="none", ms=4)
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


def curves(traces: Traces) -> plot.Drawing:
    """Distance to the optimum of the training rows against gradients and against bits, tuned."""
    found = fields(traces)
    pairs = [(field, budget) for field in found for budget in AXES]

    def draw(fig: Figure) -> None:
        for ax, (field, budget) in zip(panels(fig, len(pairs), 2), pairs, strict=True):
            marks = [curve(ax, field, method, budget) for method in field.runs]
            ax.set(xscale="log", yscale="log")
            ax.yaxis.set_major_formatter("{x:g}")
            ax.xaxis.set_minor_formatter("")
            text, unit = AXES[budget]
            ax.set(title=f"{NAMES[field.problem]}: {text}", xlabel=unit)
            ax.set_ylabel("off the optimum, %")
            labelled(ax, marks)
        families(fig, found)

    return draw


AXES = {
    "grads": ("equal gradients", "gradients of every client"),
    "bits": ("equal bits", "kB to and from all clients"),
}


def curve(ax: Axes, field: Field, method: str, budget: str) -> Mark:
    """A tuned run's distance, with its end marked."""
    _, trace, at, _ = field.tuned(method, budget)
    cost = passes_of(method, field.p) if budget == "grads" else sent(method, trace, field.p) / 8e3
    x = trace.rounds * cost
    y = np.maximum(field.off(trace).mean(0), LOWEST)
    family = family_of(method, field.problem)
    color, style = COLOR[family], dashes(method)
    ax.plot(x[1 : at + 1], y[1 : at + 1], color=color, linestyle=style, linewidth=1.4)
    last = float(x[at]), float(y[at])
    ax.plot(*last, MARKER[family], color=color, markersize=3)
    return Mark(*last, method, field.problem)


def grids(traces: Traces) -> plot.Drawing:
    """Where every configuration of every method ends on the validation rows."""
    found = fields(traces)

    def draw(fig: Figure) -> None:
        for ax, field in zip(panels(fig, len(found), 2), found, strict=True):
            methods = [*reversed(field.runs)]
            for height, method in enumerate(methods):
                configurations(ax, field, method, height)
            ax.set_yticks(range(len(methods)), [label_of(m, field.problem) for m in methods])
            ax.set_xscale("log")
            ax.xaxis.set_major_formatter("{x:g}")
            ax.set_title(NAMES[field.problem])
            ax.set_xlabel("off the optimum on the validation rows, %")
        families(fig, found)

    return draw


def configurations(ax: Axes, field: Field, method: str, height: int) -> None:
    """A row of points, hollow where a violation is shown, large for the one that is taken."""
    best = field.tuned(method).name
    family = family_of(method, field.problem)
    for name, trace in field.runs[method].items():
        far = float(field.off(trace, "val_")[:, -1].mean())
        size: Any = {"ms": 8, "alpha": 1.0} if name == best else {"ms": 4, "alpha": 0.6}
        violates = shown(excess(trace.metrics["val_g"][:, -1], field.problem))
        face = "none" if violates else COLOR[family]
        look = {"color": COLOR[family], "markerfacecolor": face, **size}
        ax.plot(np.clip(far, LOWEST, HIGHEST), height, MARKER[family], **look)


def together(traces: Traces) -> plot.Drawing:
    """Interquartile means of the groups of problems, and who is probably better than whom."""
    found = {field.problem: field for field in fields(traces)}
    whole = [g for g, names in GROUPS.items() if all(p in found for p in names)]
    groups = [g for g in ("functions", "sets") if g in whole]
    scores = {
        g: {place: scores_of([found[p] for p in GROUPS[g]], place) for place in BOTH}
        for g in groups
    }

    def draw(fig: Figure) -> None:
        sizes = {"height_ratios": [len(scores[g][BOTH[0]]) + 2 for g in groups]}
        if not groups:
            return
        axes = fig.subplots(len(groups), 2, squeeze=False, gridspec_kw=sizes)
        for (left, right), group in zip(axes, groups, strict=True):
            last = scores[group][BOTH[0]]
            order = sorted(last, key=lambda m: float(iqm(last[m])))
            means(left, group, order, scores[group])
            matrix(right, group, order[::-1], last)

    return draw


def means(ax: Axes, group: str, order: Sequence[str], scores: Mapping[str, Any]) -> None:
    """A row a method: the interquartile mean of the last iterates and, hollow, of the averages."""
    found = {p: {m: estimate(iqm, scores[p][m]) for m in order} for p in BOTH}
    inside = [x.low for each in found.values() for x in each.values() if x.value > NEAR_TOP]
    left = min(inside, default=0.0) - 0.01
    for place, shift, face in zip(BOTH, (0.12, -0.12), (None, "none"), strict=True):
        for height, method in enumerate(order):
            color = COLOR[family_of(method, GROUPS[group][0])]
            x = found[place][method]
            if x.value < left:
                text = f"$\\leftarrow$ {x.value:.2g} ({'last' if face is None else 'average'})"
                ax.text(left, height + 2 * shift, text, color=color, fontsize=7, va="center")
                continue
            look: Any = {"fmt": "o", "color": color, "markersize": 4, "mfc": face or color}
            ax.errorbar(x.value, height + shift, xerr=arms(x), linewidth=0.9, **look)
    ax.set_yticks(range(len(order)), [label_of(m, GROUPS[group][0]) for m in order])
    ax.set(xlabel="interquartile mean (1: optimum, 0: start)", title=told(group), xlim=(left, None))
    ax.set_ylim(-0.7, len(order) - 0.4)


def matrix(ax: Axes, group: str, order: Sequence[str], scores: Mapping[str, Any]) -> None:
    """Probabilities that the method of a row is better than that of a column, in %."""
    import pandas as pd  # here alone: the study is imported without it

    names = [label_of(m, GROUPS[group][0]) for m in order]
    p = np.array([[float(better(scores[a], scores[b])) for b in order] for a in order])
    table = pd.DataFrame(100 * p, names, names)
    itself = np.eye(len(order), dtype=bool)
    plot.cells(ax, table, form=".0f", cmap="coolwarm", vmin=-20, vmax=120, alpha=0.6, mask=itself)
    ax.tick_params("y", labelsize=7.5, rotation=0)
    ax.set_xticks(ax.get_xticks(), names, rotation=40, ha="right", fontsize=7.5)
    ax.set_title("row better than column, %")


def told(group: str) -> str:
    """The problems of a group."""
    count = len(GROUPS[group])
    return "Four problems" if count == 4 else ", ".join(NAMES[p] for p in GROUPS[group])


FIGURES = {"tradeoff": tradeoff, "curves": curves, "grids": grids, "together": together}
