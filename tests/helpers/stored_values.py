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
            measure = name.removeprefix(run).lstrip(".")
            measures.setdefault(run, {})[measure] = number
        return measures

    @cached_property
    def curves(self):
        """The curves of every run."""
        return {name: RunCurves(trace) for name, trace in self.traces.items()}

    @cached_property
    def by_text(self):
        """The runs and measures whose quantity is shown as a text."""
        by_text = {}
        for run, measures in self.measures.items():
            for measure, number in measures.items():
                text = report.unbroken(number)
                by_text.setdefault(text, set()).add((run, measure))
        return by_text

    def like(self, rows):
        """The runs that have the labels of some rows."""
        return [run for run in self.traces if self.has_labels(run, rows)]

    def has_labels(self, run, rows):
        """Whether no label of a run is another one in some rows."""
        for label, value in self.labels[run].items():
            if label in rows:
                shown = rows[label].iloc[0]
                if not quantities.missing(shown) and shown != value:
                    return False
        return True

    def sources(self, run, rows, column):
        """What stored values of a run some rows of a frame have in a column."""
        shown = rows[column].to_numpy(float)
        known = {}
        if "round" in rows and run in self.traces:
            known = self.curves[run].in_rounds(rows)
        elif "round" not in rows:
            if run in self.traces:
                known = self.curves[run].at_end(rows)
            for measure, number in self.measures.get(run, {}).items():
                known["value", measure] = [number.value]
                known["by seed", measure] = number.per_seed
        return {source for source, values in known.items() if agree(shown, values)}


def run_in(name):
    """The run of a quantity, by its name; a text that is all of it where it is of no run."""
    return name.rpartition(".")[0] or name


class RunCurves:
    """The curves of a stored run, as pages show them."""

    def __init__(self, trace):
        self.trace = trace

    @cached_property
    def all_rounds(self):
        """By seed and round."""
        frame = quantities.curves({"": self.trace}).set_index(["seed", "round"])
        labels = ["run", *quantities.labels_of(self.trace)]
        return frame.drop(columns=labels, errors="ignore")

    @cached_property
    def means(self):
        """Means over seeds by round."""
        return self.all_rounds.groupby("round").mean()

    @cached_property
    def medians(self):
        """Medians over seeds by round."""
        return self.all_rounds.groupby("round").median()

    @cached_property
    def ends(self):
        """Of every curve by seed: the last value, and the means over late rounds."""
        ends = {}
        for name, values in self.all_rounds.items():
            curve = values.unstack("round")
            evaluated = curve.iloc[:, :-1].dropna(axis=1, how="all")
            ends["last", name] = curve.iloc[:, -1]
            for share in LATE:
                count = max(1, round(share * evaluated.shape[1]))
                late = evaluated.iloc[:, -count:]
                ends[f"late {share}", name] = late.mean(axis=1, skipna=False)
        return ends

    def in_rounds(self, rows):
        """The values in the seeds and rounds of some rows."""
        if "seed" in rows:
            places = pd.MultiIndex.from_frame(rows[["seed", "round"]])
            tables = {"curve": self.all_rounds.reindex(places)}
        else:
            tables = {
                "mean": self.means.reindex(rows["round"]),
                "median": self.medians.reindex(rows["round"]),
            }
        return {(how, name): table[name] for how, table in tables.items() for name in table}

    def at_end(self, rows):
        """The values at the end of the run: of the seeds of some rows, or their mean."""
        values = {}
        for name, curve in self.all_rounds.items():
            values["all rounds", name] = curve.dropna()
        for source, by_seed in self.ends.items():
            values[source] = by_seed.reindex(rows["seed"]) if "seed" in rows else [by_seed.mean()]
        return values


def agree(shown, stored):
    """Whether shown values are the stored ones, plain or in per cent."""
    if len(shown) != len(stored):
        return False
    known = np.isfinite(shown)
    expected = np.asarray(stored, float)[known]
    if not known.any() or not np.isfinite(expected).all():
        return False
    scaled = np.outer(SCALES, expected)
    sizes = np.abs(scaled)
    allowed = CLOSE * (sizes + sizes.max(axis=1, keepdims=True))
    fits = np.abs(shown[known] - scaled) <= allowed
    return bool(fits.all(axis=1).any())


def value_columns(stored, frame):
    """The columns of a frame that hold what is measured: numbers that are no labels of runs."""
    if "curve" in frame:
        return ["mean"]
    labels = {label for known in stored.labels.values() for label in known}
    numbers = frame.select_dtypes("number").columns
    return [name for name in numbers if name not in CHOSEN and name not in labels]


def texts_of(frame):
    """The columns of a frame that hold texts, but for the names of runs."""
    columns = frame.select_dtypes(exclude="number").columns
    return [name for name in columns if name != "run" and frame[name].dtype != bool]


def series_of(frame):
    """The rows of a frame by run and by the texts that differ within runs: those, run, rows."""
    by_run = frame.groupby("run", observed=True)
    within = [name for name in texts_of(frame) if by_run[name].nunique().max() > 1]
    for key, rows in frame.groupby([*within, "run"], sort=False, observed=True):
        yield key[:-1], key[-1], rows


def explained(stored, frame):
    """By column of values and texts: each run and what stored values of it the rows have."""
    explanations = {}
    for texts, run, rows in series_of(frame):
        is_known = run in stored.traces or ("round" not in rows and run in stored.measures)
        runs = [run] if is_known else stored.like(rows)
        for column in value_columns(stored, frame):
            sources = set()
            for name in runs:
                sources |= stored.sources(name, rows, column)
            explanations.setdefault((column, *texts), {})[run] = sources
    return explanations


def unexplained(stored, frame):
    """The columns of values, with texts, that are not one stored measure of every run."""
    columns = set()
    for key, by_run in explained(stored, frame).items():
        if not set.intersection(*by_run.values()):
            columns.add(", ".join(key))
    return columns


def named(stored, frame):
    """The rows of a frame without a column `run`: texts, and the runs with their values."""
    series = []
    groups = frame.groupby(texts_of(frame), sort=False, observed=True, dropna=False)
    for texts, rows in groups:
        runs = set()
        for column in value_columns(stored, frame):
            runs |= {run for run in stored.measures if stored.sources(run, rows, column)}
        series.append((texts, runs))
    return series


def mislabelled(stored, frame):
    """Rows of a frame with a label that its run does not have: sentences."""
    faults = []
    all_labels = {label for known in stored.labels.values() for label in known}
    for run, rows in frame.groupby("run", sort=False, observed=True):
        known = stored.labels.get(run, {})
        for label in all_labels.intersection(frame.columns):
            usual = {labels.get(label) for labels in stored.labels.values()}
            for value in rows[label].dropna().unique():
                is_raw = value in usual or not isinstance(value, str)
                if is_raw and value != known.get(label, value):
                    faults.append(f"{run} has {label} {known[label]}, shown as {value}")
    return faults


def shown_rows(stored, table):
    """The rows of a shown table: title, and the runs whose quantities have all of its texts.

    A column has one measure; which it is, is read off the texts.
    """
    measures = {}
    for column, texts in table.items():
        known = [stored.by_text.get(text, set()) for text in texts]
        of_rows = [{measure for _, measure in pairs} for pairs in known if pairs]
        if of_rows and len(of_rows) == len(table):
            measures[column] = set.intersection(*of_rows)
    rows = []
    for title, row in table.iterrows():
        runs = []
        for column, known in filter(all, measures.items()):
            pairs = stored.by_text[row[column]]
            runs.append({run for run, measure in pairs if measure in known})
        rows.append((str(title), set.intersection(*runs) if runs else set()))
    return rows
