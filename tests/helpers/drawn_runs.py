"""Which stored run is behind each labelled series of a figure, and whether the label names it.

Every run is marked: its curves are multiplied by a factor of its own, just above 1. A mean over
seeds, also a geometric one, changes by that factor, and so says which run it was made of.
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


class MarkedRuns:
    """The runs of a study, plain and marked."""

    def __init__(self, traces):
        self.curves = [(name, key) for name, x in traces.items() for key in (*x.metrics, *x.info)]
        self.marks = MARK * (1 + np.arange(len(self.curves)) / len(self.curves))
        factors = dict(zip(self.curves, 1 + self.marks, strict=True))
        ones = dict.fromkeys(factors, 1.0)
        self.plain = {name: scaled(name, x, ones) for name, x in traces.items()}
        self.marked = {name: scaled(name, x, factors) for name, x in traces.items()}

    def behind(self, plain, marked):
        """The curves of which some drawn values are made, each by itself."""
        there = np.abs(plain) > 1e-12
        change = marked[there] / plain[there] - 1
        place = np.searchsorted(self.marks, change - EXACT).clip(max=len(self.marks) - 1)
        exact = np.abs(change - self.marks[place]) < EXACT
        return {self.curves[k] for k in place[exact]}

    def series(self, figure):
        """(panel, label, curves) of every labelled series of which some point is one run's."""
        plain = figure_table(figure(self.plain))
        marked = figure_table(figure(self.marked))
        assert len(plain) == len(marked)
        points = plain[(plain.series != "") & (plain.kind != "outline")]
        for (panel, _, label), rows in points.groupby(["panel", "item", "series"]):
            after = marked.loc[rows.index]
            curves = set()
            for axis in ("x", "y"):
                curves |= self.behind(rows[axis].to_numpy(), after[axis].to_numpy())
            if curves:
                yield panel, label, curves

    def words(self, curve):
        """Words that a curve may be called by, and how much one of them tells."""
        config = self.plain[curve[0]].config
        method, problem = (words(str(config[part])) for part in ("algorithm", "problem"))
        return (words(" ".join(curve)), 1.0), (method, 2.0), (problem, 0.5)


def scaled(name, trace, factors):
    """A trace of a few seeds, each of its curves multiplied by a factor."""

    def curves(table):
        few = {key: np.asarray(x, float)[:SEEDS] for key, x in table.items()}
        return {key: x * factors[name, key] for key, x in few.items()}

    config = {**trace.config, "seeds": trace.config["seeds"][:SEEDS]}
    output = None if trace.output is None else trace.output[:SEEDS]
    few = {"seeds": trace.seeds[:SEEDS], "output": output, "config": config}
    return replace(trace, info=curves(trace.info), metrics=curves(trace.metrics), **few)


def figure_table(draw):
    """What a figure draws, one row a point."""
    with drawn(draw, SIZE) as figure:
        return figure_data(figure)


@cache
def words(text):
    """The words and numbers of a text, numbers without superfluous digits."""
    found = re.findall(r"\d+(?:\.\d+)?(?:e-?\d+)?|[^\W\d_]+", text)
    return {f"{float(x):g}" if x[0].isdigit() else x.lower() for x in found}


def likeness(said, known):
    """How many of the words are among the known, a word for three numbers; endings may differ."""
    points = len(said & known)
    for word in said:
        related = [other for other in known if min(len(other), len(word)) > 3]
        begins = any(other.startswith(word) or word.startswith(other) for other in related)
        if not word[0].isdigit() and (word in known or begins):
            points += 2
    return points


def fit(label, curves, described):
    """How well a label fits curves, on average."""
    said = words(label)
    points = 0.0
    for curve in curves:
        points += sum(weight * likeness(said, known) for known, weight in described[curve])
    return points / len(curves)


def exchanged(runs, series):
    """(pairs that are told apart, pairs, sentences on pairs whose labels fit better exchanged)."""
    described = {curve: runs.words(curve) for *_, found in series for curve in found}
    told, pairs, wrong = 0, 0, []
    for (panel, a, first), (other_panel, b, second) in combinations(series, 2):
        if panel != other_panel or a == b:
            continue
        pairs += 1
        now = fit(a, first, described) + fit(b, second, described)
        then = fit(a, second, described) + fit(b, first, described)
        told += now > then
        if now < then:
            wrong.append(f"{panel}: {a!r} shows {sorted(first)}, {b!r} shows {sorted(second)}")
    return told, pairs, wrong
