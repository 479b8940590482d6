"""Quantities of a study as a table: what was measured of which run, with its interval over seeds.

`curves` has the runs of a study as one frame of pandas. A measure makes of it a value per run and
seed, again with the labels of the run; `estimates` makes rows of the table of these. A claim, a
page or a figure asks the table for a row by its name or, with `Query`, by its labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedlib.core import Trace
from papers.kit import tables
from papers.kit.numbers import Number, exact, first_minus_last, mean, over_seeds

if TYPE_CHECKING:
    from papers.kit.store import Spec

Label = str | float | bool
Labels = Mapping[str, Label]
Traces = Mapping[str, Trace]
#: The labels of a study in the order of names, each with its default; None where it has none.
Defaults = Mapping[str, Label | None]
#: Columns of a table of quantities beside those of labels.
COLUMNS = ("measure", "value", "low", "high", "unit", "per_seed")


class Row(NamedTuple):
    """A quantity: what was measured, the number, and the labels of the run."""

    measure: str
    number: Number
    labels: Labels


def curves(traces: Traces) -> pd.DataFrame:
    """The runs of a study as one frame: a row for each run, seed and round.

    Its columns are `run`, the labels of the runs, `seed`, `round`, and the curves. A label that a
    run does not have, and a curve that it does not have in a round, is missing.
    """
    frames = []
    for name, trace in traces.items():
        rows = tables.rows_of(trace.seeds, trace.rounds, trace.metrics, trace.info)
        columns = {"run": name, **labels_of(trace), **rows}
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def labels_of(trace: Trace) -> Labels:
    """The labels of a run."""
    labels: Labels = trace.config.get("labels", {})
    return labels


def run_of(traces: Traces, defaults: Defaults, **labels: Label) -> Trace:
    """The run with some labels, the others at their defaults; KeyError with its name if none is."""
    return traces[name_of(labels, defaults)]


def chosen(
    traces: Traces, vary: Sequence[str], defaults: Defaults, **fixed: Label
) -> dict[str, Trace]:
    """The runs that differ in some labels alone.

    Parameters
    ----------
    traces : runs by name.
    vary : the labels in which they may differ.
    defaults : the study's defaults, which all other labels have, or which a run does not have.
    fixed : labels with other values, which all of them have.
    """
    sought = {**defaults, **fixed}
    free = {*vary} - fixed.keys()
    runs = {}
    for name, trace in traces.items():
        labels = labels_of(trace)
        bound = labels.keys() - free
        fits = all(labels[label] == sought.get(label) for label in bound)
        has_fixed = fixed.keys() <= labels.keys()
        if labels and fits and has_fixed:
            runs[name] = trace
    return runs


def sweep(traces: Traces, defaults: Defaults, label: str, **fixed: Label) -> dict[Any, Trace]:
    """Runs that differ in one label, by its value and ascending; see `along`."""
    by_value = {}
    for run in chosen(traces, [label], defaults, **fixed).values():
        labels = labels_of(run)
        if label in labels:
            by_value[labels[label]] = run
    return dict(sorted(by_value.items()))


def starts(frame: pd.DataFrame, curve: str) -> pd.DataFrame:
    """The rows of models at the starts of rounds whose curve was evaluated; no final model."""
    last_round = frame.groupby("run")["round"].transform("max")
    before_last = frame["round"] < last_round
    rounds = [frame["run"], frame["round"]]
    evaluated = frame[curve].notna().groupby(rounds).transform("any")
    return frame[evaluated & before_last]


def late(frame: pd.DataFrame, curve: str, share: float = 0.2) -> pd.DataFrame:
    """The rows of the last share of the evaluated rounds, a fifth if nothing is said.

    They are those that `Trace.late` averages.
    """
    rows = starts(frame, curve)
    rounds = rows.groupby(["run", "seed"])["round"]
    from_end = rounds.cumcount(ascending=False)
    count = rounds.transform("size")
    late_count = np.maximum(1, np.round(share * count))
    return rows[from_end < late_count]


def per_seed(rows: pd.DataFrame, curve: str, by: Sequence[str]) -> pd.Series[float]:
    """The mean of a curve over some rows, for each run and seed; NaN if a row has no number.

    The index has the labels of `by` and, last, `seed`.
    """
    groups = rows.groupby([*by, "seed"], sort=False)[curve]
    complete = groups.count() == groups.size()
    return groups.mean().where(complete)


def labels_in(frame: pd.DataFrame) -> pd.DataFrame:
    """The labels of the runs in a frame, a row a run: its columns that are constant in each run."""
    by_run = frame.groupby("run", sort=False)
    candidates = frame.columns.drop(["run", "seed", "round"])
    different_values = by_run[list(candidates)].nunique().max()
    labels = candidates[different_values <= 1]
    return by_run[list(labels)].first()


def late_values(frame: pd.DataFrame, *names: str, share: float = 0.2) -> pd.DataFrame:
    """Means of curves over the last share of the rounds: a row a run and seed, with labels."""
    columns = {}
    for name in names:
        rows = late(frame, name, share)
        columns[name] = per_seed(rows, name, ["run"])
    values = pd.DataFrame(columns).reset_index()
    labels = labels_in(frame).drop(columns=list(names), errors="ignore")
    return values.join(labels, on="run")


def along(
    rows: pd.DataFrame, sweep: Sequence[str], defaults: Defaults, **fixed: Label
) -> pd.DataFrame:
    """The rows of a sweep, indexed by the labels that vary in it and by seed.

    Parameters
    ----------
    rows : rows with labels, one a run and seed; see `curves` and `measured`.
    sweep : the labels that vary.
    defaults : the study's defaults, which all other labels have, or which a run does not have.
    fixed : labels with other values.
    """
    return selected(rows, sweep, defaults, **fixed).set_index([*sweep, "seed"])


def selected(
    rows: pd.DataFrame, vary: Sequence[str], defaults: Defaults, **fixed: Label
) -> pd.DataFrame:
    """The rows that differ in the labels of `vary` alone; parameters as of `along`."""
    for label, value in {**defaults, **fixed}.items():
        varies = label in vary and label not in fixed
        if varies:
            continue
        if label in rows:
            fits = rows[label] == value
            if label not in fixed:
                fits |= rows[label].isna()
            rows = rows[fits]
        elif label in fixed:
            rows = rows[:0]
    return rows


def estimates(
    values: pd.DataFrame, units: Mapping[str, str] | None = None, **labels: Label
) -> list[Row]:
    """Rows of a table of quantities, one for each run and measure.

    Parameters
    ----------
    values : a column for each measure; the index has the labels of runs and, last, `seed`. The
        row of a column of numbers is their mean with Student's t interval, that of truth values
        their share with the exact binomial interval.
    units : measure -> what is counted.
    labels : further labels, which all rows get.
    """
    names = [name for name in values.index.names if name != "seed"]
    runs: list[tuple[Any, pd.DataFrame]] = [((), values)]
    if names:
        runs = [*values.groupby(level=names, sort=False, dropna=False)]
    units = units or {}
    rows = []
    for measure in map(str, values):
        unit = units.get(measure, "")
        for label_values, group in runs:
            numbers = group[measure].dropna().infer_objects()
            if len(numbers):
                number = over_seeds(numbers.to_numpy(), unit)
                run_labels = dict(zip(names, label_values, strict=True))
                rows.append(Row(measure, number, run_labels | labels))
    return rows


def labelled(rows: Iterable[Row], traces: Traces) -> list[Row]:
    """Rows of which a label `run` names the run, with the labels of that run in its place."""
    with_labels = []
    for entry in rows:
        trace = traces[str(entry.labels["run"])]
        with_labels.append(entry._replace(labels=labels_of(trace)))
    return with_labels


def minus(values: pd.DataFrame, defaults: Defaults, first: Labels, second: Labels) -> pd.DataFrame:
    """The measures of a run minus those of another, on the seeds that both have.

    Parameters
    ----------
    values : a row for each run and seed, with labels and measures as columns.
    defaults : the study's defaults, which labels have that neither run names.
    first, second : labels of both runs.

    Returns
    -------
    A row a seed and a column a measure; empty where a run is not there.
    """
    minuend = _measures_of(values, defaults, first)
    subtrahend = _measures_of(values, defaults, second)
    apart = minuend - subtrahend
    return apart.dropna(axis="columns", how="all").dropna(how="all")


def _measures_of(values: pd.DataFrame, defaults: Defaults, run: Labels) -> pd.DataFrame:
    """The measures of a run by seed."""
    rows = along(values, [], defaults, **run)
    return rows.drop(columns=["run", *defaults, *run], errors="ignore")


def halves_apart(values: pd.DataFrame, defaults: Defaults, run: Labels) -> pd.DataFrame:
    """The measures of a run on its first seeds minus those on its last: null data.

    Parameters
    ----------
    values, defaults : as in `minus`.
    run : the labels of the run.

    Returns
    -------
    A row a pair of seeds, of half of the seeds or, if there are three, of two that share one; empty
    where there are fewer.
    """
    rows = _measures_of(values, defaults, run)
    apart = first_minus_last(rows.to_numpy(float))
    index = rows.index[: len(apart)]
    frame = pd.DataFrame(apart, index, rows.columns)
    return frame.dropna(axis="columns", how="all")


def null_rows(measure: str, values: NDArray[Any], unit: str = "", **labels: Label) -> list[Row]:
    """The row of `first_minus_last` of a run's values, if there are enough seeds."""
    apart = first_minus_last(values)
    if len(apart) == 0:
        return []
    number = mean(apart, unit)
    return [row(measure, number, **labels, minus="nothing")]


def permuted(values: NDArray[Any]) -> NDArray[Any]:
    """Values `[runs, S]` of a sweep, those of every seed turned on to other runs: null data."""
    runs, seeds = values.shape
    most = max(1, runs - 1)
    turned = []
    for seed in range(seeds):
        places = 1 + seed % most
        turned.append(np.roll(values[:, seed], places))
    return np.stack(turned, axis=1)


def row(measure: str, number: Number, **labels: Label) -> Row:
    """A row of a table of quantities, without or with labels."""
    return Row(measure, number, labels)


def of_runs(traces: Traces, measures: Callable[[Trace], Mapping[str, Number]]) -> list[Row]:
    """Rows of a table of quantities: what `measures` gives of each run, with the run's labels."""
    rows = []
    for trace in traces.values():
        labels = labels_of(trace)
        numbers = measures(trace)
        rows += [Row(name, number, labels) for name, number in numbers.items()]
    return rows


def measured(
    traces: Traces, measures: Callable[[Trace], Mapping[str, NDArray[Any]]]
) -> pd.DataFrame:
    """What `measures` gives of each run by seed: a row a run and seed, with `run` and labels."""
    frames = []
    for name, trace in traces.items():
        columns = {
            "run": name,
            **labels_of(trace),
            "seed": trace.seeds,
            **measures(trace),
        }
        frames.append(pd.DataFrame(columns))
    return pd.concat(frames, ignore_index=True)


def name_of(labels: Labels, defaults: Defaults) -> str:
    """The name of a run: its labels, in the order of `defaults`, but for those that are defaults.

    >>> usual = {"switch": None, "participants": 10}
    >>> name_of({"switch": "hard", "participants": 20, "feedback": False, "minus": "all"}, usual)
    'hard_participants20_no_feedback_minus_all'
    """
    words = []
    for label in dict.fromkeys([*defaults, *labels]):
        value = labels.get(label)
        if value is None or value == defaults.get(label):
            continue
        if isinstance(value, bool):
            word = label if value else f"no_{label}"
        elif isinstance(value, str):
            word = value if label in defaults else f"{label}_{value}"
        else:
            word = f"{label}{value:g}"
        words.append(word)
    return "_".join(words)


def completed(labels: Labels, defaults: Defaults, without: Sequence[str] = ()) -> dict[str, Any]:
    """Labels in the order of `defaults`, with the defaults of those that they lack.

    >>> completed({"lr": 1.0}, {"switch": "hard", "beta": 20.0, "lr": 0.3}, without=["beta"])
    {'switch': 'hard', 'lr': 1.0}
    """
    complete = {}
    for label, default in defaults.items():
        value = labels.get(label, default)
        left_out = label in without and label not in labels
        if value is not None and not left_out:
            complete[label] = value
    return complete


def by_name(specs: Sequence[Spec], defaults: Defaults) -> dict[str, Spec]:
    """Runs by the names that their labels give; of two with the same labels the former.

    Raises ValueError if those are not the same algorithm.
    """
    named: dict[str, Spec] = {}
    for spec in specs:
        name = name_of(spec.labels, defaults)
        former = named.setdefault(name, spec)
        if former.algorithm != spec.algorithm:
            raise ValueError(f"by_name: labels of runs must differ, got {name!r} twice.")
    return named


@dataclass(frozen=True)
class Query:
    """One quantity, by what it measures and by labels; see `Quantities`.

    >>> str(Query.of("f", switch="soft", beta=20.0))
    'f (switch = soft, beta = 20)'
    """

    measure: str
    labels: tuple[tuple[str, Label], ...]

    @classmethod
    def of(cls, measure: str, **labels: Label) -> Query:
        """The query with these labels."""
        return cls(measure, tuple(labels.items()))

    def __str__(self) -> str:
        if not self.labels:
            return self.measure
        words = []
        for label, value in self.labels:
            if isinstance(value, bool):
                text = "yes" if value else "no"
            elif isinstance(value, str):
                text = value
            else:
                text = f"{value:g}"
            words.append(f"{label} = {text}")
        return f"{self.measure} ({', '.join(words)})"


Key = str | Query


class Quantities(Mapping[Key, Number]):
    """The quantities of a study: a row is found by its name, or by a `Query`.

    A query names the labels that matter to it. A label that it does not name has the study's
    default; a row without that label fits too.

    Attributes
    ----------
    entries : the rows by name.
    defaults : label -> the value that a query means if it does not name the label.
    overrides : label -> a value that a query gets in place of what it names or of the default; or
        a mapping of what it names to what it gets.
    instead : key -> the key, or the value, that is read in its place.
    """

    def __init__(self, entries: Mapping[str, Row], defaults: Defaults) -> None:
        self.entries = entries
        self.defaults = defaults
        self.overrides: Mapping[str, Label | Mapping[Label, Label]] = {}
        self.instead: Mapping[Key, Key | float] = {}
        self._names: dict[Query, str] = {}  # of queries that were asked before
        self._by_measure: dict[str, list[str]] = {}
        for name, entry in entries.items():
            names = self._by_measure.setdefault(entry.measure, [])
            names.append(name)

    @classmethod
    def of(cls, tables: Sequence[Iterable[Row]], defaults: Defaults) -> Quantities:
        """Quantities of some tables of rows; ValueError if two have the same labels and measure."""
        entries: dict[str, Row] = {}
        for measure, number, given_labels in chain(*tables):
            labels = _plain_labels(given_labels)
            run = name_of(labels, defaults)
            name = f"{run}.{measure}" if run else measure
            if name in entries:
                raise ValueError(f"Quantities: rows must differ, got {name} twice.")
            entries[name] = Row(measure, number, labels)
        return cls(entries, defaults)

    @classmethod
    def from_json(cls, numbers: Mapping[str, Mapping[str, Any]], defaults: Defaults) -> Quantities:
        """Stored quantities; see `to_json`."""
        entries = {}
        for name, stored in numbers.items():
            number = Number.from_json(dict(stored))
            entries[name] = Row(stored["measure"], number, stored["labels"])
        return cls(entries, defaults)

    @cached_property
    def table(self) -> pd.DataFrame:
        """The rows as a frame with columns of labels and `COLUMNS`, indexed by name."""
        records = []
        for entry in self.entries.values():
            record = {**entry.labels, "measure": entry.measure, **vars(entry.number)}
            records.append(record)
        names = pd.Index([*self.entries], name="name")
        return pd.DataFrame(records, index=names)

    def rows(self, measure: str, vary: Sequence[str] = (), **fixed: Label) -> pd.DataFrame:
        """The rows of a measure that differ in some labels alone.

        Parameters
        ----------
        measure : the name of the measure.
        vary : the labels that rows may differ in.
        fixed : labels and their values; all others have the study's defaults, or are not there.
        """
        labels = self.table.columns.drop([*COLUMNS])
        usual = {label: self.defaults.get(label) for label in labels}
        measured = self.table[self.table["measure"] == measure]
        return selected(measured, vary, usual, **fixed)

    def by_seed(
        self, measures: Mapping[str, str], vary: Sequence[str] = (), **fixed: Label
    ) -> pd.DataFrame:
        """The values of some measures: a row a run and seed.

        It has `run`, the labels, `metric` (the measure's name in a figure, as `measures` has it)
        and `value`. The labels are chosen as in `rows`.
        """
        tables_of_measures = [self.rows(name, vary, **fixed) for name in measures]
        rows = pd.concat(tables_of_measures)
        named = rows.drop(columns=[*COLUMNS])
        named["run"] = rows.index.str.rpartition(".").get_level_values(0)
        named["metric"] = rows["measure"].map(measures)
        named["value"] = rows["per_seed"]
        by_seed = named.explode("value", ignore_index=True)
        return by_seed.astype({"value": float})

    def to_json(self) -> dict[str, dict[str, Any]]:
        """Each row by its name as plain values of six digits, with its labels and its measure."""
        stored = {}
        for name, entry in self.entries.items():
            stored[name] = {
                **entry.number.to_json(),
                "measure": entry.measure,
                "labels": dict(entry.labels),
            }
        return stored

    @property
    def queries(self) -> list[Query]:
        """The query of each row, with all of its labels."""
        return [Query.of(entry.measure, **entry.labels) for entry in self.entries.values()]

    def controlled(
        self,
        overrides: Mapping[str, Label | Mapping[Label, Label]],
        instead: Mapping[Key, Key | float],
    ) -> Quantities:
        """The same table as a negative control reads it: with other labels or keys."""
        exchanged = copy(self)
        exchanged.overrides = overrides
        exchanged.instead = instead
        if overrides:
            exchanged._names = {}
        return exchanged

    def name(self, query: Query) -> str:
        """The name of the one row that a query asks for; KeyError if there is none, or several."""
        if query not in self._names:
            self._names[query] = self._find(query)
        return self._names[query]

    def _find(self, query: Query) -> str:
        named = dict(query.labels)
        sought = self._sought(named)
        fitting = []
        for name in self._by_measure.get(query.measure, []):
            labels = self.entries[name].labels
            has_named = named.keys() <= labels.keys()
            if has_named and labels.items() <= sought.items():
                fitting.append(name)
        if len(fitting) != 1:
            raise KeyError(query)
        return fitting[0]

    def _sought(self, named: Labels) -> Labels:
        """The labels that a query means: those it names, the defaults, and the overrides."""
        usual = {label: value for label, value in self.defaults.items() if value is not None}
        sought: dict[str, Any] = {**usual, **named}
        for label, substitute in self.overrides.items():
            if isinstance(substitute, Mapping):
                value: Any = sought.get(label)
                sought[label] = substitute.get(value, value)
            elif label in sought:
                sought[label] = substitute
        return sought

    def __getitem__(self, key: Key) -> Number:
        if key in self.instead:
            substitute = self.instead[key]
            if isinstance(substitute, float):
                return exact(substitute)
            key = substitute
        if isinstance(key, Query):
            key = self.name(key)
        return self.entries[key].number

    def __iter__(self) -> Iterator[Key]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


def _plain_labels(labels: Labels) -> dict[str, Label]:
    """The labels that are there as plain texts, truth values and numbers."""
    plain: dict[str, Label] = {}
    for label, value in labels.items():
        if missing(value):
            continue
        if isinstance(value, (bool, np.bool_)):
            plain[label] = bool(value)
        elif isinstance(value, str):
            plain[label] = value
        else:
            plain[label] = float(value)
    return plain


def missing(value: object) -> bool:
    """Whether a label is not there."""
    return value is None or (isinstance(value, float) and np.isnan(value))


def names_of(defaults: Defaults, **labels: Label | Sequence[Label]) -> tuple[str, ...]:
    """The names of runs with all combinations of some labels.

    >>> names_of({"method": "FedSGM", "switch": None}, switch=("hard", "soft"), beta=20.0)
    ('hard_beta20', 'soft_beta20')
    """
    choices: list[Sequence[Label]] = []
    for values in labels.values():
        if isinstance(values, (str, bool, int, float)):
            choices.append([values])
        else:
            choices.append(values)
    names = []
    for combination in product(*choices):
        run_labels = dict(zip(labels, combination, strict=True))
        names.append(name_of(run_labels, defaults))
    return tuple(names)
