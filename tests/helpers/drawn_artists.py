"""Whether the words beside what is drawn are those of the rows of the frame that have its values.

Words are those of a legend, by colour; the title of a panel; and the ticks of an axis of words.
"""

import re
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

CLOSE = 1e-6
DIGITS = re.compile(r"\W*[\d.]+")
EXPLAINED = 0.5  # a share of the values; with less they are of something else, such as a level


class Points(NamedTuple):
    """What is drawn in one colour in a panel: values along both axes."""

    ax: object
    color: str
    x: np.ndarray
    y: np.ndarray


def drawn_in(figure):
    """The lines, bars and points of a figure, points of each colour by themselves."""
    for ax in figure.axes:
        for line in ax.lines:
            if line.get_transform() is ax.transData:
                xy = np.asarray(line.get_xydata(), float)
                yield Points(ax, to_hex(line.get_color()), xy[:, 0], xy[:, 1])
        for patch in ax.patches:
            if isinstance(patch, Rectangle):
                (left, bottom), (right, top) = patch.get_bbox().get_points()
                ends = np.array([left, right]), np.array([bottom, top])
                yield Points(ax, to_hex(patch.get_facecolor()), *ends)
        for dots in ax.collections:
            if not isinstance(dots, PathCollection) or not len(dots.get_offsets()):
                continue
            places = np.ma.filled(np.ma.asarray(dots.get_offsets(), float), np.nan)
            colors = dots.get_facecolors()
            if len(colors) not in (1, len(places)):
                continue
            colors = np.array([to_hex(color) for color in np.resize(colors, (len(places), 4))])
            for color in np.unique(colors):
                chosen = places[colors == color]
                yield Points(ax, color, chosen[:, 0], chosen[:, 1])


def words_of_colors(ax):
    """The words of a panel's legend, or the figure's, by colour; not of one for several words."""
    own = ax.get_legend()
    legends = [own] if own else ax.figure.legends
    words = {}
    for legend in legends:
        for text, handle in zip(legend.get_texts(), legend.legend_handles, strict=True):
            color = getattr(handle, "get_color", None) or getattr(handle, "get_facecolor", None)
            try:
                key = to_hex(color())
            except ValueError:  # the colour of several points
                key = to_hex(color()[0])
            words.setdefault(key, set()).add(text.get_text())
    return {color: texts.pop() for color, texts in words.items() if len(texts) == 1}


def ticks_of(axis):
    """The words of an axis by their places; none of an axis of numbers, which has a scale."""
    places = axis.get_majorticklocs()
    texts = [text.get_text() for text in axis.get_majorticklabels()]
    if axis.get_scale() != "linear" or any(DIGITS.fullmatch(text) for text in texts):
        return {}
    return {round(place): text for place, text in zip(places, texts, strict=False) if text}


class KnownValues:
    """The numbers of a frame by the words that its rows have."""

    def __init__(self, frame):
        self.frame = frame
        self.numbers = frame.select_dtypes("number")
        self.texts = {}
        self.formatted = {}
        for name in frame.columns:
            column = frame[name]
            if pd.api.types.is_numeric_dtype(column) and column.dtype != bool:
                self.formatted[name] = column.map("{:g}".format)
            else:
                self.texts[name] = column.astype(str)
        self.apart = [name for name in ("run", "metric") if name in frame]
        self.apart += [name for name in frame if name not in (*self.apart, *self.numbers)]
        self.by_words = {}

    def of(self, words):
        """The numbers in rows that have some words, and their means and medians by run."""
        if words not in self.by_words:
            self.by_words[words] = self.chosen(self.rows_with(words))
        return self.by_words[words]

    def rows_with(self, words):
        """Which rows have some words, or the number that a title has behind an equals sign."""
        has = pd.Series(False, index=self.frame.index)
        for column in self.texts.values():
            has |= column == words
        for column in self.formatted.values():
            has |= column.isin([words, words.rpartition("= ")[2]])
        return has

    def chosen(self, has):
        """The finite numbers of some rows and their means and medians, sorted."""
        numbers = self.numbers[has]
        values = [numbers.to_numpy().ravel()]
        if len(numbers):
            keys = [self.frame[name][has] for name in self.apart]
            groups = numbers.groupby(keys, observed=True, dropna=False)
            values += [groups.mean().to_numpy().ravel(), groups.median().to_numpy().ravel()]
            values.append(numbers.mean().to_numpy())
        together = np.concatenate(values)
        return np.sort(together[np.isfinite(together)])


def share_known(values, known):
    """The share of values that are among the known."""
    values = values[np.isfinite(values)]
    if not len(values) or not len(known):
        return 0.0
    place = np.searchsorted(known, values).clip(1, len(known) - 1) if len(known) > 1 else 0
    near = np.minimum(
        np.abs(known[place] - values), np.abs(known[np.maximum(place - 1, 0)] - values)
    )
    return float(np.mean(near <= CLOSE * np.abs(values).max()))


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
    colors_in = {ax: words_of_colors(ax) for ax in figure.axes}
    ticks_along = {}
    for ax in figure.axes:
        ticks_along[ax.xaxis] = ticks_of(ax.xaxis)
        ticks_along[ax.yaxis] = ticks_of(ax.yaxis)
    for points in drawn_in(figure):
        colors = colors_in[points.ax]
        if points.color in colors:
            yield "color", colors[points.color], points.y, {*colors.values()}
        if points.ax.get_title() in titles:
            yield "title", points.ax.get_title(), points.y, titles
        for axis, along, values in (
            (points.ax.xaxis, points.x, points.y),
            (points.ax.yaxis, points.y, points.x),
        ):
            ticks = ticks_along[axis]
            for place, words in ticks.items():
                chosen = np.abs(along - place) < 0.5
                if chosen.any():
                    yield "tick", words, values[chosen], {*ticks.values()}


def wrong_words(figure, frame):
    """Words beside values that the frame has in rows of other words; and how many are right."""
    known = KnownValues(frame)
    wrong = []
    right = 0
    for kind, words, values, others in labelled_values(figure):
        fits = {text: share_known(values, known.of(text)) for text in others}
        best = max(fits, key=fits.get)
        if fits[best] < EXPLAINED:
            continue
        if fits[words] < 0.9 * fits[best]:
            wrong.append(f"{kind} {words!r} has values of {best!r}")
        else:
            right += 1
    return wrong, right
