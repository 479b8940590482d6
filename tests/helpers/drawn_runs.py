"""Which stored run is behind each labelled series of a figure, and whether the label names it.

Every run is marked: its curves are multiplied by a factor of its own, just above 1. A mean over
seeds, also a geometric one, changes by that factor, and so says which run it was made of. What has
no label belongs to the one label of its colour.
"""

import re
from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np

from papers.kit.plot import SIZE, drawn, figure_data

SEEDS = 2  # enough to draw; labels do not depend on them
MARK = 1e-4
EXACT = 1e-9  # a mark comes back exactly where a value is made of one curve alone


class NamedRuns:
    """The runs of a study, and what they may be called."""

    def __init__(self, traces):
        self.plain = traces

    def words(self, curve):
        """Words that a curve may be called by, and how much one of them tells."""
        config = self.plain[curve[0]].config
        method = words(str(config["algorithm"]))
        problem = words(str(config["problem"]))
        taking_part = participation_words(config)
        return (words(" ".join(curve)), 1.0), (method, 2.0), (taking_part, 2.0), (problem, 0.5)


class MarkedRuns(NamedRuns):
    """The runs of a study, plain and marked."""

    def __init__(self, traces):
        self.curves = []
        for name, trace in traces.items():
            self.curves += [(name, key) for key in (*trace.metrics, *trace.info)]
        count = len(self.curves)
        self.marks = MARK * (1 + np.arange(count) / count)
        factors = dict(zip(self.curves, 1 + self.marks, strict=True))
        ones = dict.fromkeys(factors, 1.0)
        self.plain = {name: scaled(name, trace, ones) for name, trace in traces.items()}
        self.marked = {name: scaled(name, trace, factors) for name, trace in traces.items()}
        self.tables = {}

    def table(self, figure):
        """What a figure draws of the plain runs."""
        if figure not in self.tables:
            self.tables[figure] = figure_table(figure(self.plain))
        return self.tables[figure]

    def behind(self, plain, marked):
        """The curves of which some drawn values are made, each by itself."""
        nonzero = np.abs(plain) > 1e-12
        change = marked[nonzero] / plain[nonzero] - 1
        index = np.searchsorted(self.marks, change - EXACT)
        index = index.clip(max=len(self.marks) - 1)
        exact = np.abs(change - self.marks[index]) < EXACT
        return {self.curves[k] for k in index[exact]}

    def series(self, figure):
        """(panel, label, curves) of every series of which some point is one run's."""
        plain = labelled_by_color(self.table(figure))
        marked = figure_table(figure(self.marked))
        assert len(plain) == len(marked)
        points = plain[(plain.series != "") & (plain.kind != "outline")]
        for (panel, _, label), rows in points.groupby(["panel", "item", "series"]):
            marked_rows = marked.loc[rows.index]
            curves = set()
            for axis in ("x", "y"):
                curves |= self.behind(rows[axis].to_numpy(), marked_rows[axis].to_numpy())
            if curves:
                yield panel, label, curves


def participation_words(config):
    """What figures call a run by who takes part in a round."""
    clients = config["problem"].get("clients")
    participants = config["algorithm"].get("participants")
    if clients == 1:
        return {"centralized"}
    return {"all"} if clients is not None and participants == clients else set()


def scaled(name, trace, factors):
    """A trace of a few seeds, each of its curves multiplied by a factor."""

    def curves(table):
        scaled_curves = {}
        for key, values in table.items():
            scaled_curves[key] = np.asarray(values, float)[:SEEDS] * factors[name, key]
        return scaled_curves

    return replace(
        trace,
        info=curves(trace.info),
        metrics=curves(trace.metrics),
        seeds=trace.seeds[:SEEDS],
        output=None if trace.output is None else trace.output[:SEEDS],
        config={**trace.config, "seeds": trace.config["seeds"][:SEEDS]},
    )


def figure_table(draw):
    """What a figure draws, one row a point; `attrs["legends"]` are the panels with a legend."""
    with drawn(draw, SIZE) as figure:
        table = figure_data(figure)
        panels = [
            ax.get_title() or ax.get_ylabel() or str(n) for n, ax in enumerate(figure.axes, 1)
        ]
        shown = [bool(ax.get_legend() or figure.legends) for ax in figure.axes]
        table.attrs["legends"] = {
            panel for panel, legend in zip(panels, shown, strict=True) if legend
        }
        return table


def labelled_by_color(table):
    """The table, with the label of its colour for what has none, where one label has the colour."""
    labelled = table[(table.series != "") & (table.color != "")]
    labels = labelled.groupby("color").series.agg(set)
    single = {color: next(iter(found)) for color, found in labels.items() if len(found) == 1}
    filled = table.copy()
    size = filled.groupby(["panel", "item"]).x.transform("size")
    unlabelled = (filled.series == "") & (size > 2)  # a line of two points is a guide
    filled.loc[unlabelled, "series"] = [single.get(x, "") for x in filled.color[unlabelled]]
    return filled


def other_colors(table):
    """Sentences on labels that have another colour where no legend is than where one is."""
    labelled = table[(table.series != "") & (table.color != "")]
    legend = labelled.panel.isin(table.attrs["legends"])
    explained = labelled[legend].groupby("series").color.agg(set)
    return [
        f"{panel}: {label!r} has the colour {color}, and {sorted(explained[label])} in the legend"
        for (panel, label, color), _ in labelled[~legend].groupby(["panel", "series", "color"])
        if label in explained and color not in explained[label]
    ]


@cache
def words(text):
    """The words and numbers of a text, numbers without superfluous digits."""
    tokens = re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?|[^\W\d_]+", text)
    return {f"{float(x):g}" if x[0].isdigit() else x.lower() for x in tokens}


def likeness(label_words, known_words):
    """How many of the words are among the known, a word for three numbers; endings may differ."""
    points = len(label_words & known_words)
    for word in label_words:
        if not word[0].isdigit() and any(is_related(word, known) for known in known_words):
            points += 2
    return points


def is_related(word, known):
    """Whether two words are equal, or one of some length begins with the other."""
    if word == known:
        return True
    begins = known.startswith(word) or word.startswith(known)
    return begins and min(len(word), len(known)) > 3


def fit(label, curves, described):
    """How well a label fits curves, on average."""
    label_words = words(label)
    points = 0.0
    for curve in curves:
        for known_words, weight in described[curve]:
            points += weight * likeness(label_words, known_words)
    return points / len(curves)


def exchanged(runs, series):
    """(pairs that are told apart, pairs, sentences on pairs whose labels fit better exchanged)."""
    described = {}
    for _, _, curves in series:
        described.update({curve: runs.words(curve) for curve in curves})
    distinct = 0
    pairs = 0
    wrong = []
    for (a_panel, a, a_curves), (b_panel, b, b_curves) in combinations(series, 2):
        if a_panel != b_panel or a == b:
            continue
        pairs += 1
        as_drawn = fit(a, a_curves, described) + fit(b, b_curves, described)
        swapped = fit(a, b_curves, described) + fit(b, a_curves, described)
        distinct += as_drawn > swapped
        if as_drawn < swapped:
            wrong.append(
                f"{a_panel}: {a!r} shows {sorted(a_curves)}, {b!r} shows {sorted(b_curves)}"
            )
    return distinct, pairs, wrong
