"""What is drawn of the seeds of a run: bands, dots, points and cells.

Intervals that a study has stored are drawn by `plot.dots` as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fedlib.core.trace import Array

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

#: Distinct for colour-blind readers, and legible on white and on black.
COLORS = ("#2a7fbf", "#d9782d", "#3a9a5f", "#b5519c", "#8a8a2b", "#c0504d", "#5aa9b8", "#7d6bb0")

#: A band's ends: standard deviations, from the least to the greatest, or none.
Around = tuple[str, float] | None
SD, RANGE = ("sd", 1), ("pi", 100)


def whole(x: Any, y: Any) -> tuple[Array, Array]:
    """The places `x [T]` and values `y [S, T]` where every seed has a number.

    A mean over those that are left elsewhere would tell another story.
    """
    y = np.asarray(y, dtype=float)
    finite = np.isfinite(y).all(0)
    return np.asarray(x, dtype=float)[finite], y[:, finite]


def band(
    ax: Axes,
    x: Any,
    y: Any,
    *,
    color: str,
    around: Around = SD,
    middle: Literal["mean", "median"] = "mean",
    shade: float = 0.18,
    **style: Any,
) -> None:
    """The mean (or median) over seeds of `y [S, T]`, and a band around it if there are more.

    On a logarithmic axis, where it is one already, both are those of the logarithms.
    """
    x, y = whole(x, y)
    scale = ax.yaxis.get_transform()
    y = scale.transform(y.ravel()).reshape(y.shape)
    center = getattr(np, middle)(y, axis=0)
    edge = {"linewidth": 1.5, "markeredgecolor": "white", "markeredgewidth": 0.75}
    ax.plot(x, scale.inverted().transform(center), color=color, **{**edge, **style})
    if around is None or len(y) < 2:
        return
    reach = around[1] * y.std(0, ddof=1)
    ends = (y.min(0), y.max(0)) if around == RANGE else (center - reach, center + reach)
    low, high = map(scale.inverted().transform, ends)
    ax.fill_between(x, low, high, color=color, alpha=shade, linewidth=0)


def every(ax: Axes, x: Any, y: Any, *, color: str, **style: Any) -> None:
    """A thin line for every seed of `y [S, T]`."""
    x, y = whole(x, y)
    ax.plot(x, y.T, **{"color": color, "linewidth": 0.5, "alpha": 0.5, **style})


def seeds(
    ax: Axes, groups: Mapping[str, Any], *, across: bool = False, colors: Sequence[str] = COLORS
) -> None:
    """Every seed of some groups as a dot, with the mean and its 95 % interval over the seeds.

    A group is a column, with `across` a row; `colors` are repeated if there are more groups.
    """
    import pandas as pd
    import seaborn as sns

    from papers.kit.intervals import mean_ends

    labels = [*groups]
    table = pd.concat([pd.DataFrame({"group": k, "value": v}) for k, v in groups.items()])
    named = {"x": "value", "y": "group"} if across else {"x": "group", "y": "value"}
    common: Any = {"order": labels, "hue": "group", "hue_order": labels, "legend": False, "ax": ax}
    common |= {"palette": [colors[i % len(colors)] for i in range(len(labels))], **named}
    sns.swarmplot(table, size=3.6, alpha=0.6, **common)  # the same places each time, unlike jitter
    lines: Any = {
        "markersize": 7,
        "linewidth": 1.8,
        "capsize": 0.25,
        "marker": "|" if across else "_",
    }

    def interval(values: pd.Series[float]) -> tuple[float, float]:
        low, high = mean_ends(values.to_numpy())
        return float(low), float(high)

    sns.pointplot(table, errorbar=interval, **lines, **common)
    ax.set(xlabel="", ylabel="")


def points(
    ax: Axes,
    groups: Mapping[str, tuple[Any, Any]],
    *,
    markers: Sequence[str] = ("o",),
    colors: Sequence[str] = COLORS,
) -> None:
    """A dot a seed at `(x [S], y [S])`, by group; markers and colours are repeated."""
    import pandas as pd
    import seaborn as sns

    labels = [*groups]
    parts = [pd.DataFrame({"group": k, "x": x, "y": y}) for k, (x, y) in groups.items()]
    looks = {
        "palette": {k: colors[i % len(colors)] for i, k in enumerate(labels)},
        "markers": {k: markers[i % len(markers)] for i, k in enumerate(labels)},
    }
    names = ax.get_xlabel(), ax.get_ylabel()
    by: Any = {"hue": "group", "style": "group", "hue_order": labels, "style_order": labels}
    sns.scatterplot(pd.concat(parts), x="x", y="y", s=30, ax=ax, **by, **looks)
    ax.set(xlabel=names[0], ylabel=names[1])
    if (legend := ax.get_legend()) is not None:
        legend.remove()


def cells(ax: Axes, table: pd.DataFrame, *, form: str = ".3g", **style: Any) -> None:
    """A table as coloured cells with their values; options of `seaborn.heatmap`."""
    import seaborn as sns

    look = {"annot": True, "fmt": form, "cbar": False, "annot_kws": {"size": 7.5}, **style}
    sns.heatmap(table, ax=ax, **look)
    ax.set(xlabel="", ylabel="")
    ax.grid(visible=False)
