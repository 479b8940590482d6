"""The data of a drawn figure as one tidy table: what stands beside every figure of the book.

It is read off the drawing itself, so it is what the eye sees: means, bands and bars, not the runs
behind them. Pictures, texts and lines through the whole panel are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = ("panel", "kind", "series", "color", "item", "x", "y")


def figure_data(figure: Figure) -> pd.DataFrame:
    """What is drawn in a filled matplotlib figure, one row a point, with the columns `COLUMNS`.

    `panel` is the title of the axes, else the label of the vertical axis, else their number.
    `kind` is `line`, `points`, `outline` (of a band, an interval or a contour) or `bar`, of which
    the rows are two corners. `series` is the label; what has none has the colour of what it belongs
    to. `item` numbers the artists of a panel. A figure of pictures gives no row.
    """
    import pandas as pd  # studies are imported without it

    rows = []
    for number, ax in enumerate(figure.axes, 1):
        panel = ax.get_title() or ax.get_ylabel() or str(number)
        labels = {part: c.get_label() for c in ax.containers for part in c.get_children()}
        for item, (kind, artist, points) in enumerate(_drawn(ax), 1):
            name = str(labels.get(artist, artist.get_label()))
            series = "" if name.startswith("_") else name
            for x, y in points[np.isfinite(points).all(1)].tolist():
                rows.append((panel, kind, series, _color(artist), item, x, y))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _drawn(ax: Axes) -> Iterator[tuple[str, Any, np.ndarray[Any, Any]]]:
    """The artists of some axes that hold numbers: kind, itself, and its points `[n, 2]`."""
    from matplotlib.collections import PathCollection, QuadMesh
    from matplotlib.patches import Rectangle

    for line in ax.lines:
        if line.get_transform() is ax.transData:
            yield "line", line, np.asarray(line.get_xydata(), dtype=float)
    for patch in ax.patches:
        if isinstance(patch, Rectangle) and patch.get_data_transform() is ax.transData:
            yield "bar", patch, patch.get_bbox().get_points()
    for artist in ax.collections:
        if isinstance(artist, PathCollection):
            yield "points", artist, np.ma.filled(artist.get_offsets(), np.nan)
        elif not isinstance(artist, QuadMesh):
            for path in artist.get_paths():
                yield "outline", artist, np.asarray(path.vertices)


def _color(artist: Any) -> str:
    """Its colour without transparency, `#rrggbb`; empty where there are several or none."""
    from matplotlib.colors import to_hex, to_rgba_array

    for name in ("get_color", "get_facecolor", "get_edgecolor"):
        if hasattr(artist, name):
            colors = to_rgba_array(getattr(artist, name)())
            if len(colors) == 1 and colors[0, 3] > 0:
                return to_hex(colors[0])
    return ""
