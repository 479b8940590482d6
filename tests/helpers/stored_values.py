"""Which stored curves and quantities have the values that a page shows."""

from functools import cached_property

import numpy as np
import pandas as pd

from papers.kit import quantities, report

SCALES = (1, 100, 1000)  # as they are, in per cent, or in thousandths
CLOSE = 2e-5  # stored numbers have six digits
LATE = (0.1, 0.2)  # shares of the rounds that pages call late
CHOSEN = ("run", "seed", "round", "curve", "low", "high")  # columns that are no values


class Stored:
    """The runs and the quantities of a study in one profile.

    Attributes
    ----------
    traces : runs by name.
    numbers : quantities by name.
    """

    def __init__(self, traces, numbers):
        self.traces = traces
        self.numbers = numbers

    @cached_property
    def labels(self):
        """The labels of every run, and of what other quantities are about, by its name."""
        labels = {}
        for name, row in self.numbers.entries.items():
            labels[run_in(name)] = row.labels
        for name, trace in self.traces.items():
            labels[name] = dict(quantities.labels_of(trace))
        return labels

    @cached_property
    def measures(self):
        """The quantities of every run: measure -> number."""
        measures = {}
        for name, number in self.numbers.items():
            run = run_in(name)
            measures.setdefault(run, {})[name.removeprefix(run).lstrip(".")] = number
        return measures

    @cached_property
    def by_text(self):
        """The runs and measures whose quantity is shown as a text."""
        by_text = {}
        for run, measures in self.measures.items():
            for measure, number in measures.items():
                by_text.setdefault(report.unbroken(number), set()).add((run, measure))
        return by_text

    @cached_property
    def curves(self):
        """The curves of every run, as frames."""
        return {name: quantities.curves({name: trace}) for name, trace in self.traces.items()}

    def names_of_curves(self, run):
        """The names of the curves of a run."""
        others = {"run", "seed", "round", *self.labels[run]}
        return [name for name in self.curves[run] if name not in others]

    @cached_property
    def by_place(self):
        """What `by_place_of` gives, by its arguments."""
        return {}

    def by_place_of(self, run, how):
        """The curves of a run by seed and round, or their "mean" or "median" by round."""
        if (run, how) not in self.by_place:
            values = self.curves[run].set_index(["seed", "round"])[self.names_of_curves(run)]
            if how != "curve":
                values = values.groupby("round").agg(how)
            self.by_place[run, how] = values
        return self.by_place[run, how]

    def in_rounds(self, run, rows):
        """The values of curves of a run in the seeds and rounds of some rows."""
        places = {"mean": rows["round"], "median": rows["round"]}
        if "seed" in rows:
            places = {"curve": pd.MultiIndex.from_frame(rows[["seed", "round"]])}
        found = {}
        for how, where in places.items():
            at = self.by_place_of(run, how).reindex(where)
            found.update({(how, name): at[name] for name in at})
        return found

    @cached_property
    def ends(self):
        """What is known of the ends of runs, as `ends_of` gives it, by their names."""
        return {}

    def ends_of(self, run):
        """Of a run's curves by how and name: values by seed, and the values of all rounds."""
        if run not in self.ends:
            ends = {}
            frame = self.curves[run]
            for name in self.names_of_curves(run):
                curve = frame.pivot(index="seed", columns="round", values=name)
                evaluated = curve.iloc[:, :-1].dropna(axis=1, how="all")
                ends["all rounds", name] = frame[name].dropna()
                ends["last", name] = curve.iloc[:, -1]
                for share in LATE:
                    count = max(1, round(share * evaluated.shape[1]))
                    late = evaluated.iloc[:, -count:]
                    ends[f"late {share}", name] = late.mean(axis=1, skipna=False)
            self.ends[run] = ends
        return self.ends[run]

    def at_end(self, run, rows):
        """The values of curves at the end of a run: of the seeds of some rows, or their mean."""
        found = {}
        for (how, name), values in self.ends_of(run).items():
            if how == "all rounds":
                found[how, name] = values
            elif "seed" in rows:
                found[how, name] = values.reindex(rows["seed"])
            else:
                found[how, name] = [values.mean()]
        return found

    def like(self, rows):
        """The runs that have the labels of some rows."""
        runs = []
        for run in self.traces:
            known = self.labels[run].items()
            if all(label not in rows or missing_or(rows[label].iloc[0], x) for label, x in known):
                runs.append(run)
        return runs

    def sources(self, run, rows, column):
        """What stored values of a run some rows of a frame have in a column."""
        shown = rows[column].to_numpy(float)
        found = set()
        if "round" not in rows:
            for measure, number in self.measures.get(run, {}).items():
                if agree(shown, [number.value]) or agree(shown, number.per_seed):
                    found.add(("quantity", measure))
        if run in self.traces:
            curves = self.in_rounds(run, rows) if "round" in rows else self.at_end(run, rows)
            found |= {source for source, values in curves.items() if agree(shown, values)}
        return found


def run_in(name):
    """The run of a quantity, by its name; a text that is all of it where it is of no run."""
    return name.rpartition(".")[0] or name


def missing_or(value, other):
    """Whether a value of a frame is another, or is not there."""
    return quantities.missing(value) or value == other


def agree(shown, stored):
    """Whether shown values are the stored ones, plain or in per cent."""
    if len(shown) != len(stored):
        return False
    a, b = np.asarray(shown, float), np.asarray(stored, float)
    known = np.isfinite(a)
    if not known.any():
        return False
    a, b = a[known], b[known]
    if not np.isfinite(b).all():
        return False
    scaled = np.outer(SCALES, b)
    sizes = np.abs(scaled)
    allowed = CLOSE * (sizes + sizes.max(axis=1, keepdims=True))
    return bool((np.abs(a - scaled) <= allowed).all(axis=1).any())


def value_columns(stored, frame):
    """The columns of a frame that hold what is measured: numbers that are no labels of runs."""
    if "curve" in frame:
        return ["mean"]
    labels = {label for known in stored.labels.values() for label in known}
    columns = []
    for name in frame.columns:
        is_number = pd.api.types.is_numeric_dtype(frame[name]) and frame[name].dtype != bool
        if is_number and name not in CHOSEN and name not in labels:
            columns.append(name)
    return columns


def texts_of(frame):
    """The columns of a frame that hold texts, but for the names of runs."""
    columns = frame.columns.drop("run", errors="ignore")
    return [name for name in columns if not pd.api.types.is_numeric_dtype(frame[name])]


def series_of(frame):
    """The rows of a frame by run and by the texts that differ within runs: those, run, rows."""
    by_run = frame.groupby("run", observed=True)
    within = [name for name in texts_of(frame) if by_run[name].nunique().max() > 1]
    for key, rows in frame.groupby([*within, "run"], sort=False, observed=True):
        yield key[:-1], key[-1], rows


def explained(stored, frame):
    """By column of values and texts: each run and what stored values of it the rows have."""
    found = {}
    for texts, run, rows in series_of(frame):
        for column in value_columns(stored, frame):
            known_runs = stored.traces if "round" in rows else {**stored.traces, **stored.measures}
            runs = [run] if run in known_runs else stored.like(rows)
            known = set()
            for name in runs:
                known |= stored.sources(name, rows, column)
            found.setdefault((column, *texts), {})[run] = known
    return found


def unexplained(stored, frame):
    """The columns of values, with texts, that are not one stored measure of every run."""
    return {
        ", ".join(key)
        for key, by_run in explained(stored, frame).items()
        if not set.intersection(*by_run.values())
    }


def named(stored, frame):
    """The rows of a frame without a column `run`: texts, and the runs with their values."""
    found = []
    for texts, rows in frame.groupby(texts_of(frame), sort=False, observed=True, dropna=False):
        runs = set()
        for column in value_columns(stored, frame):
            runs |= {run for run in stored.measures if stored.sources(run, rows, column)}
        found.append((texts if isinstance(texts, tuple) else (texts,), runs))
    return found


def mislabelled(stored, frame):
    """Rows of a frame with a label that its run does not have: sentences."""
    faults = []
    rows = frame.groupby("run", sort=False, observed=True)
    every = {label for known in stored.labels.values() for label in known}
    for run, of_run in rows:
        known = stored.labels.get(run, {})
        for label in every.intersection(frame.columns):
            values = of_run[label].dropna().unique()
            usual = {labels.get(label) for labels in stored.labels.values()}
            for value in values:
                raw = value in usual or not isinstance(value, str)
                if raw and value != known.get(label, value):
                    faults.append(f"{run} has {label} {known[label]}, shown as {value}")
    return faults


def shown_rows(stored, table):
    """The rows of a shown table: title, and the runs whose quantities have all of its texts.

    A column has one measure; which it is, is read off the texts.
    """
    measures = {}
    for column in table:
        known = [stored.by_text.get(text, set()) for text in table[column]]
        of_rows = [{measure for _, measure in pairs} for pairs in known if pairs]
        if of_rows and len(of_rows) == len(table):
            measures[column] = set.intersection(*of_rows)
    rows = []
    for title, row in table.iterrows():
        runs = [
            {run for run, measure in stored.by_text[row[column]] if measure in known}
            for column, known in measures.items()
            if known
        ]
        rows.append((str(title), set.intersection(*runs) if runs else set()))
    return rows, measures
