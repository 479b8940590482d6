"""Figures of notebooks and of the book.

A page draws with seaborn in the book's style, see `theme`, and shows the figure with `show`: in a
notebook as one picture on white ground, in whose place the book puts an SVG with colours for light
and dark pages. Here is what seaborn lacks: quick means over seeds with their bands (`over_seeds`,
`finish`), plain logarithmic axes, the level of a constraint.
"""

from __future__ import annotations

import base64
import bz2
import html
import io
import re
import warnings
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from papers.kit.display import in_notebook, write_figure
from papers.kit.numbers import mean
from papers.kit.packages import to_install
from papers.kit.parameters import nearest
from papers.kit.quantities import labels_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes as Axes  # others annotate with plot.Axes and plot.Figure
    from matplotlib.figure import Figure as Figure

#: Of the data of a drawn figure, one row a point.
COLUMNS = ("panel", "kind", "series", "color", "item", "x", "y")

#: Distinct for colour-blind readers, and legible on white and on black.
COLORS = ("#2a7fbf", "#d9782d", "#3a9a5f", "#b5519c", "#8a8a2b", "#c0504d", "#5aa9b8", "#7d6bb0")

LEVEL = "#d62728"  # of the line at a constraint's level

#: From light to dark, for a parameter that grows from curve to curve.
SWEEP = "blend:#e0a83a,#7d3fa0"

#: Width and height in inches, where a figure does not ask for others.
SIZE = (7.5, 3.2)

#: By theme; `key` is what seaborn draws in legends of styles and sizes, which have no hue.
STYLES = {
    "light": {"text": "#222222", "grid": "#d5d5d5", "key": "#333333"},
    "dark": {"text": "#e0e0e0", "grid": "#4a4a4a", "key": "#c9c9c9"},
}

METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
BLANKS = re.compile(r"(?<=>)\s+(?=<(?!/?tspan|/text))")
TAG = re.compile(r"<[^>]*>")
LONG = re.compile(r"-?\d+\.\d{3,}")

#: Sizes, the same in every theme.
FORM = {
    "axes.linewidth": 0.8,
    "axes.titlesize": 10,
    "font.size": 9,
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "fedlib",
}


def theme() -> None:
    """Draw in the book's style from here on; a page calls it once, before its first figure.

    It is seaborn's `whitegrid` in the book's colours. A page that draws without seaborn does not
    wait for its import.

    Raises
    ------
    ModuleNotFoundError
        if seaborn is not installed; says how to install it.
    """
    for name in ("matplotlib", "seaborn"):
        if find_spec(name) is None:
            missing = ModuleNotFoundError(name=name)
            raise ModuleNotFoundError(to_install(missing))
    import matplotlib as mpl

    style = STYLES["light"]
    names = ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor")
    style_settings: Any = dict.fromkeys(names, style["text"])
    style_settings |= {
        "axes.axisbelow": True,
        "axes.facecolor": "none",
        "axes.grid": True,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "figure.facecolor": "none",
        "font.family": ["sans-serif"],
        "font.sans-serif": ["DejaVu Sans"],
        "grid.color": style["grid"],
        "lines.solid_capstyle": "round",
        "patch.edgecolor": "white",
        "patch.force_edgecolor": True,
        "xtick.bottom": True,
        "ytick.left": True,
    }
    style_settings["axes.prop_cycle"] = mpl.cycler(color=COLORS)  # type: ignore[attr-defined]
    mpl.rcParams.update(style_settings | FORM)


def picture(figure: Figure, format: str) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    options: dict[str, Any] = {"metadata": {"Software": None}, "facecolor": "white"}
    if format == "svg":
        options = {"metadata": {"Date": None}, "transparent": True}
    with warnings.catch_warnings():  # dots of equal value that find no room lie upon each other
        warnings.filterwarnings("ignore", message=".* of the points cannot be placed")
        figure.savefig(buffer, format=format, dpi=110, **options)
    if format == "svg":
        return buffer.getvalue()
    small = io.BytesIO()
    with Image.open(buffer) as image:  # 256 colours: a third of the size, no difference to the eye
        image.convert("RGB").quantize(256).save(small, "PNG", optimize=True)
    return small.getvalue()


def figure(size: tuple[float, float] = SIZE) -> Figure:
    """An empty figure in the book's style, for what seaborn has no function for."""
    theme()
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")


def show(
    shown: Any,
    name: str = "",
    *,
    alt: str,
    caption: str = "",
    data: pd.DataFrame | None = None,
    profile: str = "full",
) -> None:
    """Display a figure in a notebook, with alternative text and a caption below it.

    The picture's SVG and its data go along in the output's metadata, for the book. A program writes
    the picture into `_build/figures` (see `display.write_figure`).

    Parameters
    ----------
    shown : a grid of seaborn, or a matplotlib figure.
    name : by which claims and other pages of the book name the figure.
    alt : what the figure shows, in words; an empty text is refused.
    caption : the text below the figure.
    data : what is drawn, as a table; that of a grid, or the points of a figure, if it is not given.
    profile : of the runs that a column `run` of the data names.
    """
    if not alt.strip():
        raise ValueError("show: alt must say in words what the figure shows, got an empty text.")
    from matplotlib import pyplot

    figure = shown.figure
    png = picture(figure, "png")
    if in_notebook():
        table = data
        if table is None:
            table = getattr(shown, "data", None)
        runs = []
        if table is not None and "run" in table:
            runs = list(table["run"].unique())
        files = files_of(figure, table)
        carried = {**files, "name": name, "profile": profile, "runs": runs}
        _display(png, alt, caption, carried)
    else:
        write_figure(png, alt)
    pyplot.close(figure)


def files_of(figure: Figure, table: pd.DataFrame | None) -> dict[str, str]:
    """The SVG of a figure, and what is drawn as CSV without columns that are constant."""
    if table is None:
        drawn = figure_data(figure)
    else:
        value_counts = table.nunique(dropna=False)
        constant = table.columns[value_counts == 1]
        drawn = table.drop(columns=[*constant, "curve"], errors="ignore")
    svg = slim(picture(figure, "svg"))
    csv = to_csv(drawn).encode()
    return {"svg": packed(svg), "csv": packed(csv)}


def _display(png: bytes, alt: str, caption: str, carried: Mapping[str, object]) -> None:
    """Display a picture; what is carried goes along in the output's metadata."""
    from IPython.display import HTML, display

    encoded = base64.b64encode(png).decode()
    address = f"data:image/png;base64,{encoded}"
    image = f'<img class="fig" alt="{html.escape(alt)}" src="{address}"/>'
    text = ""
    if caption:
        text = f"<figcaption>{html.escape(caption)}</figcaption>"
    block = f'<figure class="fed-figure">{image}{text}</figure>'
    display(HTML(block), metadata={"fedlib": carried})  # type: ignore[no-untyped-call]


def slim(svg: bytes) -> bytes:
    """The same picture without metadata and indentation, numbers with two digits."""

    def two_digits(number: re.Match[str]) -> str:
        value = float(number[0])
        return f"{value:.2f}"

    def shorter(tag: re.Match[str]) -> str:
        return LONG.sub(two_digits, tag[0])

    text = svg.decode()
    text = METADATA.sub("", text)
    text = TAG.sub(shorter, text)
    text = BLANKS.sub("\n", text)
    return text.encode()


def to_csv(data: pd.DataFrame) -> str:
    """A drawn table as text, five digits a number; empty where it has no row."""
    if data.empty:
        return ""
    text = data.to_csv(index=False, float_format="%.5g", lineterminator="\n")
    return str(text)


def packed(content: bytes) -> str:
    """Bytes as text that a notebook can hold: compressed, then base64; `unpacked` undoes it."""
    compressed = bz2.compress(content)
    return base64.b64encode(compressed).decode()


def unpacked(text: str) -> bytes:
    compressed = base64.b64decode(text)
    return bz2.decompress(compressed)


def over_seeds(
    frame: pd.DataFrame, metrics: Mapping[str, str], *, around: float | None = 1.0
) -> pd.DataFrame:
    """The mean over the seeds of every curve and round, and the ends of a band around it.

    It is what `sns.lineplot(..., errorbar="sd")` draws, without its time for each round. A round in
    which a seed has no number is left out: a mean over the others would tell another story.

    Parameters
    ----------
    frame : rows by run, seed and round; see `Page.curves`.
    metrics : columns with the curves -> their names in the figure.
    around : how many standard deviations a band is wide on either side; None for a band from the
        least seed to the greatest.

    Returns
    -------
    One row for each metric, run and round, with `metric`, `round`, `mean`, `low`, `high`, `curve`
    (a number for the metric and run), and the columns of `frame` that are constant in each run.
    """
    for metric in metrics:
        if metric not in frame:
            rule = f"a metric must be a column of the frame, got {metric!r}"
            hint = nearest(metric, frame.columns)
            raise ValueError(f"over_seeds: {rule}; {hint}.")
    labels = labels_in(frame).drop(columns=list(metrics), errors="ignore")
    in_order = frame.sort_values("round", kind="stable")
    by_round = in_order.groupby(["run", "round"], sort=False)
    tables = []
    for number, (metric, words) in enumerate(metrics.items()):
        values = by_round[metric]
        middle = values.mean()
        if around is None:
            low = values.min()
            high = values.max()
        else:
            reach = around * values.std()
            low = middle - reach
            high = middle + reach
        complete = values.count() == values.size()
        means = pd.DataFrame({"mean": middle, "low": low, "high": high})
        means = means[complete].reset_index()
        means.insert(0, "metric", words)
        run_number = labels.index.get_indexer(means["run"])
        means["curve"] = number * len(labels) + run_number
        tables.append(means.join(labels, on="run"))
    return pd.concat(tables, ignore_index=True)


def worded(frame: pd.DataFrame, **words: Mapping[Any, str]) -> pd.DataFrame:
    """The rows whose labels have words, with these in place of the labels, and in their order.

    `words` has, for a column, its values that are shown -> what they are called.
    """
    columns = {}
    for label, by_value in words.items():
        in_order = list(dict.fromkeys(by_value.values()))
        called = frame[label].map(by_value)
        columns[label] = called.astype(pd.CategoricalDtype(in_order))
    shown = frame.assign(**columns).dropna(subset=list(words))
    for label in words:
        shown[label] = shown[label].cat.remove_unused_categories()
    return shown


def interval(values: pd.Series[float]) -> tuple[float, float]:
    """The ends of the 95 % interval of a mean over seeds; the mean itself of a single seed."""
    number = mean(values)
    if len(values) < 2:
        return number.value, number.value
    return number.low, number.high


#: Options of `sns.relplot` for a frame of `over_seeds`: one line a run, its own scale a panel.
LINES: dict[str, Any] = {
    "kind": "line",
    "x": "round",
    "y": "mean",
    "units": "curve",
    "estimator": None,
    "facet_kws": {"sharey": False, "legend_out": False},
}


#: Options of `sns.relplot(kind="line")` and `sns.lineplot` for a frame of `Quantities.by_seed`:
#: means over seeds with 95 % intervals.
DOTS: dict[str, Any] = {
    "y": "value",
    "marker": "o",
    "errorbar": interval,
    "err_style": "bars",
    "err_kws": {"capsize": 3},
}


def finish(grid: Any, *, log: bool = False, size: tuple[float, float] = SIZE) -> None:
    """The last touches to a grid of seaborn: bands, titles, plain logarithmic axes, and its size.

    The legend goes to the right of the panels; panels of a row have the same vertical axis.

    Parameters
    ----------
    grid : what `sns.relplot` or another function of seaborn for grids returns. Its lines get bands
        where its frame is one of `over_seeds`.
    log : whether the vertical axes are logarithmic.
    size : width and height of the whole figure, in inches.
    """
    import seaborn as sns

    panels = np.atleast_2d(grid.axes)  # they are in one row where columns are wrapped
    has_bands = "curve" in grid.data
    if has_bands:
        for (row, column, _), rows in grid.facet_data():
            for _, curve in rows.groupby("curve", sort=False):
                _add_band(panels[row, column], curve)
    for row, axes in enumerate(panels):
        for column, ax in enumerate(axes):
            if log:
                plain_log(ax)
            ax.set_title(_title(grid, row, column))
        _set_ylabel(grid, row, axes[0])
        if has_bands and grid._col_var != "metric":
            _share_ylim(axes)
    grid.figure.set_size_inches(size)
    right = 1.0
    if grid.legend is not None:
        sns.move_legend(grid, "center right")
        box = grid.legend.get_window_extent()
        to_figure = grid.figure.transFigure.inverted()
        right = box.transformed(to_figure).x0
    grid.tight_layout(rect=(0, 0, right, 1))


def _set_ylabel(grid: Any, row: int, ax: Axes) -> None:
    """Name what a row of panels measures, at its first one; not where columns have the names."""
    if grid._row_var == "metric":
        ax.set_ylabel(grid.row_names[row])
    elif ax.get_ylabel() in ("mean", "value"):
        metric = grid.data["metric"].iloc[0]
        ax.set_ylabel("" if grid._col_var == "metric" else metric)


def _share_ylim(axes: Sequence[Axes]) -> None:
    """Give the panels of a row the same vertical limits, those that hold all curves."""
    lowest = []
    highest = []
    for ax in axes:
        low, high = ax.get_ylim()
        lowest.append(low)
        highest.append(high)
    for ax in axes:
        ax.set_ylim(min(lowest), max(highest))


def _title(grid: Any, row: int, column: int) -> str:
    """The title of a panel: what its row and its column are, a number with its label.

    Where rows are metrics only the panels of the first row have one.
    """
    by_metric = grid._row_var == "metric"
    if by_metric and row > 0:
        return ""
    values = {}
    if grid.row_names and not by_metric:
        values[grid._row_var] = grid.row_names[row]
    if grid.col_names:
        values[grid._col_var] = grid.col_names[column]
    titles = []
    for label, value in values.items():
        is_text = isinstance(value, str)
        titles.append(value if is_text else f"{label} = {value:g}")
    return ", ".join(titles)


def _add_band(ax: Axes, curve: pd.DataFrame) -> None:
    """Fill between the ends of a curve of `over_seeds`, in the colour of its line."""
    if curve["low"].isna().all():
        return
    shade = 0.15 if len(ax.lines) <= 6 else 0.07
    for line in ax.lines:
        heights = np.asarray(line.get_ydata())
        if np.array_equal(heights, curve["mean"]):
            ax.fill_between(
                line.get_xdata(),
                curve["low"],
                curve["high"],
                color=line.get_color(),
                alpha=shade,
                linewidth=0,
            )


def plain_log(ax: Axes) -> None:
    """A logarithmic vertical axis, ticks at 1, 2, 5 of each decade, written as plain numbers."""
    ax.set_yscale("log", subs=[2, 5])
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("{x:g}")


def log_ticks(ax: Axes, ticks: Sequence[float]) -> None:
    """A logarithmic horizontal axis with these ticks alone, written as plain numbers."""
    ax.set_xscale("log")
    labels = [f"{tick:g}" for tick in ticks]
    ax.set_xticks(ticks, labels)
    ax.minorticks_off()


def level(ax: Axes, value: float, label: str) -> None:
    """A dotted horizontal line: the level that a constraint must keep."""
    ax.axhline(
        value,
        color=LEVEL,
        linestyle=":",
        linewidth=1.3,
        label=label,
    )


def levels(axes: Sequence[Axes], value: float, words: str) -> None:
    """A dotted line through panels side by side, with its words at the right of the last one."""
    for ax in axes:
        level(ax, value, words)
    rightmost = axes[-1]
    position: Any = {"transform": rightmost.get_yaxis_transform(), "va": "center"}
    rightmost.text(
        1.01,
        value,
        words,
        color=LEVEL,
        fontsize=8,
        **position,
    )


def figure_data(figure: Figure) -> pd.DataFrame:
    """What is drawn in a filled matplotlib figure, one row a point, with the columns `COLUMNS`.

    `panel` is the title of the axes, else the label of the vertical axis, else their number.
    `kind` is `line`, `points`, `outline` (of a band, an interval or a contour) or `bar`, of which
    the rows are two corners. `series` is the label; what has none has the colour of what it belongs
    to. `item` numbers the artists of a panel. It is what the eye sees, not the runs behind it;
    pictures, texts and lines through the whole panel are left out.
    """
    rows = []
    for number, ax in enumerate(figure.axes, 1):
        panel = ax.get_title() or ax.get_ylabel() or str(number)
        labels: dict[Any, object] = {}
        for container in ax.containers:
            pieces = container.get_children()
            labels |= dict.fromkeys(pieces, container.get_label())
        for item, (kind, artist, points) in enumerate(_drawn(ax), 1):
            label = str(labels.get(artist, artist.get_label()))
            series = "" if label.startswith("_") else label
            color = _color(artist)
            finite = np.isfinite(points).all(axis=1)
            for x, y in points[finite].tolist():
                rows.append((panel, kind, series, color, item, x, y))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _drawn(ax: Axes) -> Iterator[tuple[str, Any, np.ndarray[Any, Any]]]:
    """The artists of some axes that hold numbers: kind, itself, and its points `[n, 2]`."""
    from matplotlib.collections import PathCollection, QuadMesh
    from matplotlib.patches import Rectangle

    for line in ax.lines:
        if line.get_transform() is ax.transData:
            yield "line", line, np.asarray(line.get_xydata(), dtype=float)
    for patch in ax.patches:
        if not isinstance(patch, Rectangle):
            continue
        if patch.get_data_transform() is ax.transData:
            yield "bar", patch, patch.get_bbox().get_points()
    for artist in ax.collections:
        if isinstance(artist, PathCollection):
            offsets = np.ma.filled(artist.get_offsets(), np.nan)
            yield "points", artist, offsets
        elif not isinstance(artist, QuadMesh):
            for path in artist.get_paths():
                yield "outline", artist, np.asarray(path.vertices)


def _color(artist: Any) -> str:
    """Its colour without transparency, `#rrggbb`; empty where there are several or none."""
    from matplotlib.colors import to_hex, to_rgba_array

    for name in ("get_color", "get_facecolor", "get_edgecolor"):
        if not hasattr(artist, name):
            continue
        get = getattr(artist, name)
        colors = to_rgba_array(get())
        if len(colors) != 1:
            continue
        color = colors[0]
        opacity = color[3]
        if opacity > 0:
            return to_hex(color)
    return ""
