"""The data of a drawn figure as one tidy table: what stands beside every figure of the book.

It is read off the drawing itself, so it is what the eye sees: means, bands and bars, not the runs
behind them. Pictures, texts and decorations have no numbers to give and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

COLUMNS = (
    *("panel", "kind", "series", "item", "x", "y", "low", "high"),
    *("x_tick", "y_tick", "color", "style"),
)


class _Item(NamedTuple):
    """One artist: its kind, itself, and its points `[n, 4]` as x, y, low, high."""

    kind: str
    artist: Artist
    points: np.ndarray[Any, Any]


def figure_data(figure: Figure) -> pd.DataFrame:
    """What is drawn in a filled matplotlib figure, one row a point, with the columns `COLUMNS`.

    `panel` is the title of the axes, else the labels of their axes, else
    their number. `kind` is one of `line`, `points`, `bar`, `errorbar`, `band`, `contour`, `level`
    (a horizontal line at `y`), `mark` (a vertical one at `x`) and `x range`. `series` is the label,
    else the one label that the same colour and style has in the panel or in the figure, for a band
    else that of the line before it in the same colour. `item` numbers the artists of a panel.
    `low` and `high` bound `y`; for `x errorbar`, `x bar` and `x range` they bound `x`. `x_tick` and
    `y_tick` are the words at the point's tick where an axis has words. A figure of pictures gives
    no row.
    """
    import pandas as pd  # here and below: studies are imported without it

    drawn, rows = [(ax, list(_items(ax))) for ax in figure.axes], []
    everywhere = _names([item.artist for _, items in drawn for item in items])
    for number, (ax, items) in enumerate(drawn, 1):
        labels = filter(None, (ax.get_ylabel(), ax.get_xlabel()))
        panel = ax.get_title() or " against ".join(labels) or str(number)
        names = everywhere | _names([item.artist for item in items])
        ticks, last = (_words(ax.xaxis), _words(ax.yaxis)), dict[str, str]()
        for i, (kind, artist, points) in enumerate(items, 1):
            color, style = _look(artist)
            series = _label(artist) or names.get((color, style)) or names.get((color, ""), "")
            if kind == "band" and not series:
                series = last.get(color, "")
            last[color] = series
            for x, y, low, high in points[np.isfinite(points).any(1)].tolist():
                words = ticks[0].get(x, ""), ticks[1].get(y, "")
                rows.append((panel, kind, series, i, x, y, low, high, *words, color, style))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _items(ax: Axes) -> Iterator[_Item]:
    """The artists of some axes that hold numbers, each once."""
    from matplotlib.container import BarContainer, ErrorbarContainer

    within: set[Any] = set()
    for container in ax.containers:
        within.update(container.get_children())
        if isinstance(container, ErrorbarContainer):
            yield from _errorbar(container)
        elif isinstance(container, BarContainer):
            yield _bars(container)
    for artist in ax.get_children():
        if artist not in within and artist.get_visible():
            yield from _single(artist, ax)


def _errorbar(container: Any) -> Iterator[_Item]:
    """Centres with the ends of their bars; bars in x and bars in y are two items."""
    line, _, bars = container
    drawn = [np.array(b.get_segments()) for b in bars]  # [n, 2, 2] each, in x first
    directions = [0] * container.has_xerr + [1] * container.has_yerr
    for axis, segments in zip(directions, drawn, strict=True):
        ends = np.sort(segments[:, :, axis], 1)
        centre = segments.mean(1) if line is None else np.array(line.get_xydata())
        kind = "errorbar" if axis else "x errorbar"
        yield _Item(kind, container if _label(container) else line or bars[0], _table(centre, ends))


def _bars(container: Any) -> _Item:
    """The middle of each bar and its length, from its foot (`low`) to its head (`high`)."""
    box = np.array([p.get_bbox().get_points() for p in container.patches])  # [n, 2, 2]
    upright = container.orientation != "horizontal"
    centre = box.mean(1)
    centre[:, int(upright)] = box[:, 1, int(upright)]
    kind = "bar" if upright else "x bar"
    artist = container if _label(container) else container.patches[0]
    return _Item(kind, artist, _table(centre, box[:, :, int(upright)]))


def _single(artist: Artist, ax: Axes) -> Iterator[_Item]:
    """A line, scattered points, a band, contours, straight marks; nothing for anything else."""
    from matplotlib.collections import LineCollection, PathCollection, PolyCollection
    from matplotlib.contour import ContourSet
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    if isinstance(artist, Line2D):
        yield from _line(artist, ax)
    elif isinstance(artist, ContourSet):
        for level, path in zip(artist.levels, artist.get_paths(), strict=True):
            points = np.asarray(path.vertices)
            yield _Item("contour", artist, _table(points, np.full_like(points, level)))
    elif isinstance(artist, PathCollection):
        yield _Item("points", artist, _table(np.ma.filled(artist.get_offsets(), np.nan)))
    elif isinstance(artist, PolyCollection):
        for path in artist.get_paths():
            yield _Item("band", artist, _band(np.asarray(path.vertices)))
    elif isinstance(artist, LineCollection):
        for segment in artist.get_segments():
            yield _Item("line", artist, _table(np.asarray(segment)))
    elif isinstance(artist, Rectangle) and artist.get_data_transform() is ax.get_xaxis_transform():
        ends = artist.get_bbox().intervalx[None]
        yield _Item("x range", artist, _table(np.full((1, 2), np.nan), np.sort(ends)))


def _line(line: Any, ax: Axes) -> Iterator[_Item]:
    """A line in data coordinates, or a straight one through the whole panel."""
    points = np.asarray(line.get_xydata(), dtype=float)
    transform = line.get_transform()
    if transform is ax.transData:
        kind = "line" if line.get_linestyle() not in ("None", "", " ") else "points"
        yield _Item(kind, line, _table(points[np.isfinite(points).all(1)]))
    elif transform is ax.get_yaxis_transform():  # x is a share of the panel's width
        yield _Item("level", line, _table([[np.nan, points[0, 1]]]))
    elif transform is ax.get_xaxis_transform():
        yield _Item("mark", line, _table([[points[0, 0], np.nan]]))


def _band(outline: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Lower and upper edge at every x of a filled band's closed outline."""
    import pandas as pd

    edges = pd.DataFrame(outline, columns=["x", "y"]).groupby("x")["y"].agg(["min", "max"])
    blank = np.full(len(edges), np.nan)
    return _table(np.stack([edges.index.to_numpy(), blank], 1), edges.to_numpy())


def _table(points: Any, ends: Any = None) -> np.ndarray[Any, Any]:
    """Points `[n, 2]` and their intervals `[n, 2]` (not a number where there is none), `[n, 4]`."""
    points = np.asarray(points, dtype=float)
    return np.concatenate([points, np.full_like(points, np.nan) if ends is None else ends], 1)


def _label(artist: Any) -> str:
    """The label that a legend would show, else nothing."""
    label = artist.get_label()
    return "" if not isinstance(label, str) or label.startswith("_") else label


def _look(artist: Any) -> tuple[str, str]:
    """Colour without its transparency, `#rrggbb` (empty where there are several), and line style.

    Points are filled with white where a circle is open: then the colour is that of the edge.
    """
    from matplotlib.colors import to_hex

    style = artist.get_linestyle() if hasattr(artist, "get_xydata") else ""
    for name in ("get_color", "get_facecolor", "get_edgecolor"):
        colors = np.asarray(getattr(artist, name, list)(), dtype=object)
        if colors.ndim == 2 and len(colors) == 1:
            colors = colors[0]
        if colors.ndim == 1 and len(colors) == 4 and colors[3] == 0:  # open: nothing is filled
            continue
        if colors.ndim < 2 and colors.size:
            color = to_hex(tuple(colors) if colors.ndim else colors.item())
            return color, "" if style in ("None", " ") else style
    return "", ""


def _names(artists: list[Any]) -> dict[tuple[str, str], str]:
    """(colour, style) -> label, and (colour, "") -> label, where that stands for one label."""
    found: dict[tuple[str, str], set[str]] = {}
    for artist in artists:
        (color, style), label = _look(artist), _label(artist)
        if color and label:
            for key in ((color, style), (color, "")):
                found.setdefault(key, set()).add(label)
    return {key: labels.pop() for key, labels in found.items() if len(labels) == 1}


def _words(axis: Axis) -> dict[float, str]:
    """Place -> word, for an axis whose ticks are words."""
    from matplotlib.category import StrCategoryFormatter
    from matplotlib.ticker import FixedFormatter, FuncFormatter

    formatter = axis.get_major_formatter()
    if not isinstance(formatter, FixedFormatter | FuncFormatter | StrCategoryFormatter):
        return {}
    places = [float(x) for x in axis.get_majorticklocs()]
    return dict(zip(places, formatter.format_ticks(places), strict=True))
