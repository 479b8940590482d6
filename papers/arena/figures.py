"""The figure of the arena: objective and violation of every method, problem by problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from papers.arena.methods import FAMILIES, family_of, label_of
from papers.arena.problems import NAMES
from papers.arena.rules import TOLERANCE, Field, fields
from papers.kit import plot
from papers.kit.numbers import Number, mean
from papers.kit.study import Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOR = dict(zip(FAMILIES, (*plot.COLORS[:2], plot.COLORS[3], "#888888"), strict=True))
MARKER = dict(zip(FAMILIES, "osD^", strict=True))
LINEAR = 5.0  # %: around 0 the axes are linear


def tradeoff(traces: Traces) -> plot.Drawing:
    """Tuned methods at equal gradients on the test rows: a row a method, a line a problem."""
    found = fields(traces)

    def draw(fig: Figure) -> None:
        heights = [len(field.runs) for field in found]
        axes = fig.subplots(len(found), 2, sharey="row", squeeze=False, height_ratios=heights)
        for (left, right), field in zip(axes, found, strict=True):
            tuned = {m: field.tuned(m) for m in field.runs}
            gaps = {m: mean(field.gap(x, "test_")) for m, x in tuned.items()}
            order = sorted(gaps, key=lambda m: -gaps[m].value)
            rows(left, field, {m: gaps[m] for m in order})
            rows(right, field, {m: mean(field.excess(tuned[m], "test_")) for m in order})
            left.set_title(NAMES[field.problem], loc="left")
            left.axvline(0, color="#888888", linewidth=0.8)
            right.axvline(TOLERANCE, color="#d62728", linestyle=":", linewidth=1.1)
        axes[-1, 0].set_xlabel("test objective above the optimum's, %")
        axes[-1, 1].set_xlabel("test violation, % of the level")
        used = {family_of(method, field.problem) for field in found for method in field.runs}
        own = [f for f in FAMILIES if f in used]
        marks = [axes[0, 0].plot([], [], MARKER[f], color=COLOR[f])[0] for f in own]
        fig.legend(marks, [FAMILIES[f] for f in own], loc="outside lower center", ncols=len(own))

    return draw


def rows(ax: Axes, field: Field, values: Mapping[str, Number]) -> None:
    """A point with its interval for each method, on an axis that is linear around 0."""
    for y, (method, x) in enumerate(values.items()):
        family = family_of(method, field.problem)
        look: Any = {"fmt": MARKER[family], "color": COLOR[family], "markersize": 4.5}
        ax.errorbar(x.value, y, xerr=plot.arms(x), capsize=2, **look)
    ax.set_xscale("symlog", linthresh=LINEAR, linscale=0.6)
    low, high = ax.get_xlim()
    ticks = [x for x in (-100, -10, 0, 10, 100, 1000) if low <= x <= high]
    ax.set_xticks(ticks, [f"{x}" for x in ticks])
    ax.set_yticks(range(len(values)), [label_of(m, field.problem) for m in values])


FIGURES = {"tradeoff": tradeoff}
