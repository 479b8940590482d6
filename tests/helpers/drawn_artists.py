"""Whether the words beside what is drawn are those of the rows of the frame that have its values.

Words are those of a legend, by colour; the title of a panel; and the ticks of an axis of words.
"""

import re
from typing import NamedTuple

import numpy as np
from matplotlib.collections import PathCollection
from matplotlib.colors import is_color_like, to_hex
from matplotlib.patches import Rectangle

CLOSE = 1e-6
DIGITS = re.compile(r"\W*[\d.]+")
EXPLAINED = 0.5  # a share of the values; with less they are of something else, such as a level


class Points(NamedTuple):
    """What is drawn in one colour in a panel: values along both axes."""

    color: str
    x: np.ndarray
    y: np.ndarray


def drawn_in(ax):
    """The lines, bars and points of a panel, points of each colour by themselves."""
    for line in ax.lines:
        if line.get_transform() is ax.transData:
            x, y = np.asarray(line.get_xydata(), float).T
            yield Points(to_hex(line.get_color()), x, y)
    for patch in ax.patches:
        if isinstance(patch, Rectangle):
            x, y = patch.get_bbox().get_points().T
            yield Points(to_hex(patch.get_facecolor()), x, y)
    for dots in ax.collections:
        if isinstance(dots, PathCollection):
            yield from points_in(dots)


def points_in(dots):
    """The points of a scatter plot by colour; none where colours do not fit the points."""
    offsets = np.ma.asarray(dots.get_offsets(), float)
    places = np.ma.filled(offsets, np.nan)
    colors = [to_hex(color) for color in dots.get_facecolors()]
    if len(colors) == 1:
        colors *= len(places)
    if len(colors) == len(places):
        for color in {*colors}:
            x, y = places[[dot_color == color for dot_color in colors]].T
            yield Points(color, x, y)


def words_of_colors(ax):
    """The words of a panel's legend, or the figure's, by colour; not of one for several words."""
    legend_of_panel = ax.get_legend()
    legends = [legend_of_panel] if legend_of_panel else ax.figure.legends
    words = {}
    for legend in legends:
        for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True):
            words.setdefault(color_of(handle), set()).add(text.get_text())
    return {color: texts.pop() for color, texts in words.items() if len(texts) == 1}


def color_of(handle):
    """The colour of a legend's entry; of several points that of the first."""
    is_line = hasattr(handle, "get_color")
    color = handle.get_color() if is_line else handle.get_facecolor()
    return to_hex(color if is_color_like(color) else color[0])


def ticks_of(axis):
    """The words of an axis by their places; none of an axis of numbers, which has a scale."""
    places = axis.get_majorticklocs()
    texts = [text.get_text() for text in axis.get_majorticklabels()]
    if axis.get_scale() != "linear" or any(DIGITS.fullmatch(text) for text in texts):
        return {}
    return {round(location): text for location, text in zip(places, texts, strict=False) if text}


class KnownValues:
    """The numbers of a frame by the words that its rows have."""

    def __init__(self, frame):
        self.numbers = frame.select_dtypes("number")
        self.keys = [frame[name] for name in frame if name not in self.numbers]
        self.texts = frame.astype(str)
        for name, column in self.numbers.items():
            self.texts[name] = column.map("{:g}".format)
        self.by_words = {}

    def of(self, words):
        """The numbers in rows that have some words, and their means and medians by run.

        A title may have a number behind an equals sign.
        """
        if words not in self.by_words:
            choices = [words, words.rpartition("= ")[2]]
            self.by_words[words] = self.chosen(self.texts.isin(choices).any(axis=1))
        return self.by_words[words]

    def chosen(self, has):
        """The finite numbers of some rows and their means and medians, sorted."""
        numbers = self.numbers[has]
        tables = [numbers, numbers.mean()]
        if len(numbers) and self.keys:
            keys = [key[has] for key in self.keys]
            groups = numbers.groupby(keys, observed=True, dropna=False)
            tables += [groups.mean(), groups.median()]
        together = np.concatenate([table.to_numpy().ravel() for table in tables])
        return np.sort(together[np.isfinite(together)])


def share_known(values, known):
    """The share of values that are among the known, which are sorted."""
    values = values[np.isfinite(values)]
    if not len(values) or not len(known):
        return 0.0
    above = np.searchsorted(known, values).clip(0, len(known) - 1)
    below = np.maximum(above - 1, 0)
    apart = np.minimum(np.abs(known[above] - values), np.abs(known[below] - values))
    return float(np.mean(apart <= CLOSE * np.abs(values).max()))


def texts_of(figure):
    """The texts of a figure: of legends, titles, axes and ticks."""
    legends = [*figure.legends, *(ax.get_legend() for ax in figure.axes if ax.get_legend())]
    texts = set()
    for legend in legends:
        texts.add(legend.get_title().get_text())
        texts.update(text.get_text() for text in legend.get_texts())
    for ax in figure.axes:
        texts |= {ax.get_title(), ax.get_xlabel(), ax.get_ylabel()}
        texts.update(ticks_of(ax.xaxis).values(), ticks_of(ax.yaxis).values())
    return texts


def labelled_values(figure):
    """What is drawn under which words: their kind, the words, values, and the words of others."""
    titles = {ax.get_title() for ax in figure.axes} - {""}
    for ax in figure.axes:
        colors = words_of_colors(ax)
        x_ticks = ticks_of(ax.xaxis)
        y_ticks = ticks_of(ax.yaxis)
        for points in drawn_in(ax):
            if points.color in colors:
                yield "color", colors[points.color], points.y, {*colors.values()}
            if ax.get_title() in titles:
                yield "title", ax.get_title(), points.y, titles
            yield from at_ticks(x_ticks, points.x, points.y)
            yield from at_ticks(y_ticks, points.y, points.x)


def at_ticks(ticks, along, values):
    """The values at each tick of an axis of words."""
    for location, words in ticks.items():
        chosen = np.abs(along - location) < 0.5
        if chosen.any():
            yield "tick", words, values[chosen], {*ticks.values()}


def wrong_words(figure, frame):
    """Sentences on words beside values that the frame has in rows of other words."""
    known = KnownValues(frame)
    wrong = []
    for label, words, values, choices in labelled_values(figure):
        fits = {text: share_known(values, known.of(text)) for text in choices}
        best = max(fits, key=fits.get)
        if fits[best] >= EXPLAINED and fits[words] < 0.9 * fits[best]:
            wrong.append(f"{label} {words!r} has values of {best!r}")
    return wrong
