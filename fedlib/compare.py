"""Two runs side by side: what differs in their configurations, and what in their results.

A run is named `STUDY/RUN` or `STUDY/RUN@PROFILE` where it is stored with the book, or by the file
that `Trace.save` wrote. What is heavy to import comes in when something is compared.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedlib import checks
from fedlib.checkpoint import write_whole
from fedlib.trace import Trace

if TYPE_CHECKING:
    import pandas as pd

    from fedlib.numbers import Number

__all__ = ["Comparison", "compare"]

ABSENT = "-"  # an entry that one of the two does not have
PANELS = 3  # metrics that are drawn if none are named
FORMATS = (".svg", ".png")
STATE = "made by.state of the code"
#: Of the provenance, what may explain a difference.
MADE_BY = ("fedlib", "commit", "dirty", "code", "torch", "numpy", "python", "device", "threads")


class Named(NamedTuple):
    """A run, what it is called, and whether the code that made it is the code of today."""

    name: str
    trace: Trace
    fresh: str


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare` found; `print` shows it, and the parts are data frames.

    Attributes
    ----------
    names : what the two runs are called.
    traces : the two runs.
    differences : the entries of configuration and provenance that differ, one column a run.
    finals : final values of the shared metrics with 95 % intervals over seeds, and their difference
        (second minus first); means over all rounds of what both runs report of their rounds.
    notes : what must be kept in mind when the two are held against each other.
    metrics : the shared metrics that are drawn.
    """

    names: tuple[str, str]
    traces: tuple[Trace, Trace]
    differences: pd.DataFrame
    finals: pd.DataFrame
    notes: tuple[str, ...]
    metrics: tuple[str, ...]

    def __str__(self) -> str:
        """The two tables and the notes."""
        parts = [f"{self.names[0]} against {self.names[1]}", ""]
        parts += ["What differs:", table(self.differences), ""] if len(self.differences) else []
        parts += ["Final values [95 % interval over seeds]:", table(self.finals)]
        return "\n".join([*parts, *(f"\n{note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        notes = "".join(f"<p>{note}</p>" for note in self.notes)
        return f"{self.differences.to_html()}{self.finals.to_html()}{notes}"

    def draw(self, fig: Any) -> None:
        """Both runs in one panel a metric: means over seeds, bands of one standard deviation.

        A drawing for `plot.show`: `plot.show(comparison.draw, alt="...")`.
        """
        from fedlib import plot

        runs = dict(zip(self.names, self.traces, strict=True))
        panels = np.atleast_1d(fig.subplots(1, len(self.metrics)))
        for ax, metric in zip(panels, self.metrics, strict=True):
            plot.bands(ax, runs, metric)
            ax.set_ylabel(metric)
        panels[0].legend()

    def curves(self) -> list[dict[str, Any]]:
        """The numbers of the drawing: one row a run, metric and round."""
        return [
            {
                "run": name,
                "metric": metric,
                "round": int(t),
                "mean": float(x.mean()),
                "std": float(x.std()),
                "seeds": len(x),
            }
            for name, trace in zip(self.names, self.traces, strict=True)
            for metric in self.metrics
            for t, x in zip(trace.rounds, trace.metrics[metric].T, strict=True)
        ]

    def write(self, figure: Path | str) -> tuple[Path, Path]:
        """Write the drawing as SVG or PNG, by its ending, and its numbers as CSV beside it.

        Raises
        ------
        ValueError
            for another ending.
        OSError
            if the folder cannot be written to.
        """
        from fedlib import plot

        path = Path(figure)
        checks.one_of("compare", "the ending of figure", path.suffix, FORMATS)
        size = (max(4.5, 3.6 * len(self.metrics)), 3.2)
        picture = plot.render(self.draw, "light", path.suffix[1:], size)
        rows, text = self.curves(), io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        beside = path.with_suffix(".csv")
        write_whole(path, lambda file: file.write(picture))
        write_whole(beside, lambda file: file.write(text.getvalue().encode()))
        return path, beside


def compare(
    first: str | Path | Trace,
    second: str | Path | Trace,
    *,
    metrics: Sequence[str] = (),
    figure: Path | str | None = None,
) -> Comparison:
    """Hold two runs against each other.

    Parameters
    ----------
    first, second : `"STUDY/RUN"` or `"STUDY/RUN@PROFILE"` (the full profile if none is named), a
        file of `Trace.save` or of a results folder, or a `Trace`.
    metrics : which shared metrics are drawn; by default the first three.
    figure : where the drawing goes (`.svg` or `.png`), its numbers beside it as `.csv`.

    Raises
    ------
    ValueError
        for a run or a metric that is not there (with the names that come nearest), a damaged file,
        or two runs without a common metric. Two different problems are no error, but noted.
    """
    runs = find(first, "first"), find(second, "second")
    if runs[0].name == runs[1].name:
        runs = runs[0], runs[1]._replace(name=f"{runs[1].name} (second)")
    names, traces = (runs[0].name, runs[1].name), (runs[0].trace, runs[1].trace)
    found = Comparison(
        names=names,
        traces=traces,
        differences=differences(runs),
        finals=finals(names, traces),
        notes=tuple(notes(traces)),
        metrics=drawn(names, traces, metrics),
    )
    if figure is not None:
        found.write(figure)
    return found


def find(what: str | Path | Trace, argument: str) -> Named:
    """The run that is meant.

    Raises
    ------
    ValueError
        one sentence with the names that come nearest.
    """
    if isinstance(what, Trace):
        return Named(f"{argument} ({what.config['algorithm']['type']})", what, "not kept")
    from fedlib import store
    from fedlib.studies import STUDIES

    path = Path(what)
    if path.suffix == ".json":
        held = store.read(path)
        if held.get("kind") != "run":
            return Named(path.stem, Trace.load(path), "not kept")
        return Named(path.stem, store.to_trace(held), freshness(held))
    whole, _, profile = str(what).partition("@")
    study, _, run = whole.partition("/")
    if study not in STUDIES or not run:
        stored = f"name a run as STUDY/RUN, a file as PATH.json; {nearest(study, STUDIES)}"
        raise ValueError(checks.sentence("compare", argument, "name a run", str(what), stored))
    folder = store.results_dir() / study / (profile or "full")
    there = [p.stem for p in sorted(folder.glob("*.json")) if p.stem != "numbers"]
    if not there:
        make = f"make reproduce NAME={study} PROFILE={profile or 'full'}"
        rule = "name a run that is stored"
        raise ValueError(
            checks.sentence("compare", argument, rule, str(what), f"`{make}` makes them")
        )
    if run not in there:
        rule = f"name a stored run of {study}"
        raise ValueError(checks.sentence("compare", argument, rule, run, nearest(run, there)))
    held = store.read(folder / f"{run}.json")
    return Named(str(what), store.to_trace(held), freshness(held))


def freshness(held: Mapping[str, Any]) -> str:
    """Whether a stored run was made by the code of today."""
    from fedlib import store

    return "fresh" if store.is_fresh(held) else "stale"


def nearest(name: str, known: Any) -> str:
    """Some of the known names, those that look like `name` first."""
    every = list(known)
    close = get_close_matches(name, every, n=3, cutoff=0.5)
    shown = [*close, *(k for k in every if k not in close)][: len(close) or 6]
    kind = "nearest" if close else "known" if len(shown) == len(every) else "some that are there"
    return f"{kind}: {', '.join(shown)}"


def differences(runs: tuple[Named, Named]) -> pd.DataFrame:
    """Entries of configuration and provenance that differ, the state of the code in any case."""
    import pandas as pd

    entries = [
        {
            **flat({k: v for k, v in run.trace.config.items() if k != "bits"}),
            **{f"made by.{k}": v for k, v in run.trace.provenance.items() if k in MADE_BY},
            STATE: run.fresh,
        }
        for run in runs
    ]
    parts = list(dict.fromkeys(section(k) for side in entries for k in side))
    parts.sort(key=section(STATE).__eq__)  # stable: what is not configuration comes last
    every = sorted({**entries[0], **entries[1]}, key=lambda k: parts.index(section(k)))
    keys = [k for k in every if differs(k, *entries)]
    rows = [[shown(side.get(k, ABSENT)) for side in entries] for k in keys]
    index = pd.Index(keys, name=None)
    return pd.DataFrame(rows, columns=[run.name for run in runs], index=index)


def differs(key: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether an entry is to be shown."""
    return key == STATE or a.get(key, ABSENT) != b.get(key, ABSENT)


def section(key: str) -> str:
    """The first part of a dotted name."""
    return key.partition(".")[0]


def flat(value: Any, name: str = "") -> dict[str, Any]:
    """Nested mappings as one, with dotted names; the type of a record stands at its own name."""
    if not isinstance(value, Mapping):
        return {name: value}
    found: dict[str, Any] = {}
    for key, inner in value.items():
        whole = name if key == "type" and name else f"{name}.{key}".lstrip(".")
        found |= flat(inner, whole)
    return found


def shown(value: Any) -> str:
    """An entry in a table; long lists are cut, and runs of whole numbers written as a range."""
    if isinstance(value, list) and len(value) > 2 and all(isinstance(x, int) for x in value):
        first, last = value[0], value[-1]
        if value == list(range(first, last + 1)):
            return f"{first} to {last}"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def shared(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """The names that both have, in the order of the first."""
    return [k for k in a if k in b]


def drawn(
    names: tuple[str, str], traces: tuple[Trace, Trace], asked: Sequence[str]
) -> tuple[str, ...]:
    """The metrics to draw, all of them shared."""
    common = shared(traces[0].metrics, traces[1].metrics)
    if not common:
        has = [f"{n} has {', '.join(t.metrics)}" for n, t in zip(names, traces, strict=True)]
        raise ValueError(f"compare: the runs must share a metric, {' and '.join(has)}.")
    for metric in asked:
        checks.one_of("compare", "metrics", metric, common)
    return tuple(asked) or tuple(common[:PANELS])


def finals(names: tuple[str, str], traces: tuple[Trace, Trace]) -> pd.DataFrame:
    """Final values of the shared metrics, means over rounds of what both report, differences."""
    import pandas as pd

    a, b = traces
    paired = sorted(a.seeds) == sorted(b.seeds)
    values: dict[str, Callable[[Trace], NDArray[np.float64]]] = {}
    for k in shared(a.metrics, b.metrics):
        values[k] = partial(last, k)
    for k in shared(reported(a), reported(b)):
        values[f"{k}, mean over rounds"] = partial(average, k)
    rows = []
    for value in values.values():
        x, y = (value(t)[np.argsort(t.seeds)] for t in traces)
        rows.append([n.text(".4g") for n in beside(x, y, paired)])
    how = "paired by seed" if paired else "seeds apart"
    return pd.DataFrame(rows, columns=[*names, f"difference, {how}"], index=list(values))


def last(name: str, trace: Trace) -> NDArray[np.float64]:
    """A metric of the final model, per seed."""
    return trace.metrics[name][:, -1]


def average(name: str, trace: Trace) -> NDArray[np.float64]:
    """The mean over rounds of what the rounds reported, per seed."""
    return np.asarray(reported(trace)[name].mean(1))


def reported(trace: Trace) -> dict[str, NDArray[np.float64]]:
    """What the rounds reported; of a stored run also the mean bits, which are kept apart."""
    bits = trace.config.get("bits", {})
    kept = {k: np.full((len(trace.seeds), 1), float(v)) for k, v in bits.items()}
    return {**trace.info, **{k: v for k, v in kept.items() if k not in trace.info}}


def beside(
    a: NDArray[np.float64], b: NDArray[np.float64], paired: bool
) -> tuple[Number, Number, Number]:
    """Two groups of values, one a seed, and the second minus the first, with their intervals."""
    from fedlib.numbers import difference, mean

    return mean(a), mean(b), mean(b - a) if paired else difference(a, b)


def notes(traces: tuple[Trace, Trace]) -> list[str]:
    """What must be kept in mind."""
    a, b = traces
    problems = a.config["problem"], b.config["problem"]
    found = []
    if problems[0] != problems[1]:
        called = [p.get("name", "unnamed") for p in problems]
        found.append(
            f"The problems differ ({called[0]}, {called[1]}): the values lie side by side, they "
            "are no contest."
        )
    if a.rounds[-1] != b.rounds[-1]:
        found.append(
            f"The runs end after {a.rounds[-1]} and {b.rounds[-1]} rounds; final values are those "
            "of each run's own end."
        )
    if sorted(a.seeds) != sorted(b.seeds):
        found.append("The seeds differ: the two groups are resampled apart, not in pairs.")
    return found


def table(frame: pd.DataFrame) -> str:
    """A data frame as text, no column cut."""
    return str(frame.to_string(justify="left"))
