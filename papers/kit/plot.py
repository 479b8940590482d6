"""Figures of notebooks and of the book.

A figure is a function `draw(fig)`
that fills a matplotlib figure; `show` displays it in a notebook as one picture on white ground, in
whose place the book puts an SVG with colours for light and dark pages. Intervals that a study has
stored are drawn as they are.
"""

from __future__ import annotations

import base64
import gzip
import html
import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlib.core import Trace
from papers.kit.display import in_notebook, write_figure
from papers.kit.packages import to_install

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from matplotlib.axes import Axes as Axes  # others annotate with plot.Axes and plot.Figure
    from matplotlib.figure import Figure as Figure

#: Of the data of a drawn figure, one row a point.
COLUMNS = ("panel", "kind", "series", "color", "item", "x", "y")

Drawing = Callable[["Figure"], None]

#: Distinct for colour-blind readers, and legible on white and on black.
COLORS = ("#2a7fbf", "#d9782d", "#3a9a5f", "#b5519c", "#8a8a2b", "#c0504d", "#5aa9b8", "#7d6bb0")

#: A band's ends, as seaborn names them: standard deviations, or from the least to the greatest.
Around = tuple[str, float]
SD, RANGE = ("sd", 1), ("pi", 100)

#: Width and height in inches, where a figure does not ask for others.
SIZE = (7.5, 3.2)

STYLES = {
    "light": {"text": "#222222", "grid": "#d5d5d5"},
    "dark": {"text": "#e0e0e0", "grid": "#4a4a4a"},
}

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


def render(draw: Drawing, size: tuple[float, float] = SIZE) -> bytes:
    """The picture that `draw` makes, as PNG on white ground."""
    with drawn(draw, size) as figure:
        return picture(figure, "png")


def export(draw: Drawing, size: tuple[float, float] = SIZE) -> tuple[bytes, pd.DataFrame]:
    """What a figure leaves as files: its SVG, and the data that are drawn.

    The bytes of an SVG do not depend on the date or on random identifiers. The table has no row
    where the figure is made of pictures (see `figure_data`).
    """
    with drawn(draw, size) as figure:
        return picture(figure, "svg"), figure_data(figure)


@contextmanager
def drawn(draw: Drawing, size: tuple[float, float]) -> Iterator[Figure]:
    """A figure filled by `draw`, in the book's style as long as it is open."""
    try:
        import matplotlib as mpl
        import seaborn as sns
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(to_install(error)) from None

    mpl.use("Agg")

    style = STYLES["light"]
    names = ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor")
    own: Any = dict.fromkeys(names, style["text"])
    own |= {
        "axes.facecolor": "none",
        "axes.spines.right": False,
        "axes.spines.top": False,
        "figure.facecolor": "none",
        "font.family": ["sans-serif"],
        "font.sans-serif": ["DejaVu Sans"],
        "grid.color": style["grid"],
        "xtick.bottom": True,
        "ytick.left": True,
    }
    settings = {
        **sns.axes_style("whitegrid", own),
        **FORM,
        "axes.prop_cycle": mpl.cycler(color=sns.color_palette(COLORS).as_hex()),  # type: ignore[attr-defined]
    }
    with mpl.rc_context(settings):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        yield figure


def picture(figure: Figure, format: str) -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    metadata = {"Date": None} if format == "svg" else {"Software": None}
    with warnings.catch_warnings():  # dots of equal value that find no room lie upon each other
        warnings.filterwarnings("ignore", message=".* of the points cannot be placed")
        ground: Any = {"transparent": True} if format == "svg" else {"facecolor": "white"}
        figure.savefig(buffer, format=format, dpi=110, metadata=metadata, **ground)
    if format == "svg":
        return buffer.getvalue()
    small = io.BytesIO()
    with Image.open(buffer) as image:  # 256 colours: a third of the size, no difference to the eye
        image.convert("RGB").quantize(256).save(small, "PNG", optimize=True)
    return small.getvalue()


def show(draw: Drawing, *, alt: str, caption: str = "", size: tuple[float, float] = SIZE) -> None:
    """Display the figure in a notebook, with alternative text and a caption below it.

    A program writes it into `_build/figures` (see `display.write_figure`).
    A figure that the notebook's own code draws cannot be drawn again from stored runs: its SVG and
    its data (`export`) go along in the output's metadata, `packed`. An empty `alt` is refused.
    """
    if not alt.strip():
        raise ValueError("show: alt must say in words what the figure shows, got an empty text.")
    if not in_notebook():
        write_figure(render(draw, size), alt)
        return
    from IPython.display import HTML, display

    data = base64.b64encode(render(draw, size)).decode()
    image = f'<img class="fig" alt="{html.escape(alt)}" src="data:image/png;base64,{data}"/>'
    text = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    block = f'<figure class="fed-figure">{image}{text}</figure>'
    metadata = {}
    if getattr(draw, "__module__", "") == "__main__":
        svg, data = export(draw, size)
        metadata["fedlib"] = {"svg": packed(svg), "csv": packed(to_csv(data).encode())}
    display(HTML(block), metadata=metadata)  # type: ignore[no-untyped-call]


def to_csv(data: pd.DataFrame) -> str:
    """A table of `figure_data` as text, seven digits a number; empty where it has no row."""
    return "" if data.empty else data.to_csv(index=False, float_format="%.7g", lineterminator="\n")


def packed(content: bytes) -> str:
    """Bytes as text that a notebook can hold: compressed, then base64; `unpacked` undoes it."""
    return base64.b64encode(gzip.compress(content, mtime=0)).decode()


def unpacked(text: str) -> bytes:
    return gzip.decompress(base64.b64decode(text))


def band(
    ax: Axes,
    x: Any,
    y: Any,
    *,
    color: str,
    around: Around = SD,
    shade: float = 0.18,
    **style: Any,
) -> None:
    """The mean over seeds of `y [S, T]`, and a band around it if there are more than one.

    On a logarithmic axis, where it is one already, both are those of the logarithms. At a place
    where a seed has no number there is none: a mean over those that are left would tell another
    story.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    whole = np.isfinite(y).all(0)
    x, y, scale = x[whole], y[:, whole], ax.yaxis.get_transform()
    y = scale.transform(y.ravel()).reshape(y.shape)
    center = y.mean(0)
    edge = {"linewidth": 1.5, "markeredgecolor": "white", "markeredgewidth": 0.75}
    ax.plot(x, scale.inverted().transform(center), color=color, **{**edge, **style})
    if len(y) < 2:
        return
    reach = around[1] * y.std(0, ddof=1)
    ends = (y.min(0), y.max(0)) if around == RANGE else (center - reach, center + reach)
    low, high = map(scale.inverted().transform, ends)
    ax.fill_between(x, low, high, color=color, alpha=shade, linewidth=0)


def points(
    ax: Axes,
    groups: Mapping[str, tuple[Any, Any]],
    *,
    markers: Sequence[str] = ("o",),
    colors: Sequence[str] = COLORS,
) -> None:
    """A dot a seed at `(x [S], y [S])`, by group; markers and colours are repeated."""
    for i, (label, (x, y)) in enumerate(groups.items()):
        look: Any = {"color": colors[i % len(colors)], "marker": markers[i % len(markers)]}
        ax.scatter(x, y, s=30, edgecolors="white", linewidths=0.4, label=label, **look)


def bands(
    ax: Axes,
    traces: Mapping[str, Trace],
    metric: str,
    *,
    log: bool = False,
    colors: Sequence[str] = COLORS,
) -> None:
    """Mean over seeds with a band around it, one curve a trace, by its label.

    `metric` is a metric (at the starts of rounds) or an info; `colors` are repeated if there are
    more traces.
    """
    shade = 0.18 if len(traces) <= 3 else 0.07
    for i, (label, trace) in enumerate(traces.items()):
        if metric in trace.metrics:
            t, x = trace.rounds, trace.metrics[metric]
        else:
            t, x = trace.rounds[:1] + np.arange(trace.info[metric].shape[1]), trace.info[metric]
        band(ax, t, x, color=colors[i % len(colors)], shade=shade, label=label)
    ax.set_xlabel("round")
    if log:
        plain_log(ax)


def plain_log(ax: Axes) -> None:
    """A logarithmic vertical axis, ticks at 1, 2, 5 of each decade, written as plain numbers."""
    ax.set_yscale("log", subs=[2, 5])
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter("{x:g}")


def log_ticks(ax: Axes, ticks: Sequence[float]) -> None:
    """A logarithmic horizontal axis with these ticks alone, written as plain numbers."""
    ax.set_xscale("log")
    ax.set_xticks(ticks, [f"{x:g}" for x in ticks])
    ax.minorticks_off()


def level(ax: Axes, value: float, label: str) -> None:
    """A dotted horizontal line: the level that a constraint must keep."""
    ax.axhline(value, color="#d62728", linestyle=":", linewidth=1.3, label=label)


def dots(
    ax: Axes,
    x: Sequence[float],
    rows: Mapping[str, Sequence[Any]],
    *,
    colors: Sequence[str] = COLORS,
    **style: Any,
) -> None:
    """Values with their intervals against a parameter `x`, one line for each label of `rows`."""
    for i, (label, numbers) in enumerate(rows.items()):
        value, low, high = np.array([(n.value, n.low, n.high) for n in numbers]).T
        ends = np.nan_to_num([value - low, high - value])  # none of a single seed
        look = {"color": colors[i % len(colors)], "marker": "o", "capsize": 3, **style}
        ax.errorbar(x, value, ends, label=label, **look)


def figure_data(figure: Figure) -> pd.DataFrame:
    """What is drawn in a filled matplotlib figure, one row a point, with the columns `COLUMNS`.

    `panel` is the title of the axes, else the label of the vertical axis, else their number.
    `kind` is `line`, `points`, `outline` (of a band, an interval or a contour) or `bar`, of which
    the rows are two corners. `series` is the label; what has none has the colour of what it belongs
    to. `item` numbers the artists of a panel. It is what the eye sees, not the runs behind it;
    pictures, texts and lines through the whole panel are left out.
    """
    import pandas as pd  # studies are imported without it

    rows = []
    for number, ax in enumerate(figure.axes, 1):
        panel = ax.get_title() or ax.get_ylabel() or str(number)
        labels = {part: c.get_label() for c in ax.containers for part in c.get_children()}
        for item, (kind, artist, points) in enumerate(_drawn(ax), 1):
            name = str(labels.get(artist, artist.get_label()))
            series = "" if name.startswith("_") else name
            color = _color(artist)
            for x, y in points[np.isfinite(points).all(1)].tolist():
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
