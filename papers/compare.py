"""Two runs side by side: what differs in their configurations, and what in their results.

A run is named `STUDY/RUN` or `STUDY/RUN@PROFILE` where it is stored with the book, or by the file
that `Trace.save` wrote. What is heavy to import comes in when something is compared.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlib import checks
from fedlib.core import Trace
from fedlib.core.files import atomic_write
from papers.compare_files import find
from papers.compare_tables import differences, finals, notes, shared, table

if TYPE_CHECKING:
    import pandas as pd

PANELS = 3  # metrics that are drawn if none are named
FORMATS = (".svg", ".png")
COLUMNS = ("run", "metric", "round", "mean", "std", "seeds")  # of the numbers beside a drawing


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare` found; `print` shows it, and the parts are data frames.

    Attributes
    ----------
    names : what the two runs are called.
    traces : the two runs.
    differences : the entries of configuration and provenance that differ, one column a run.
    finals : final values of the shared metrics with 95 % intervals over seeds, and their difference
        (second minus first); of what both runs report of their rounds the mean over all rounds.
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
        how = self.finals.columns[2].partition(", ")[2]
        parts = [f"first   {self.names[0]}", f"second  {self.names[1]}", "", "What differs"]
        parts += [table(self.differences, ["first", "second"]), ""]
        parts += [f"Final values [95 % interval over seeds], differences {how}"]
        parts += [table(self.finals, ["first", "second", "second - first"])]
        return "\n".join([*parts, *(f"\n{note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"{self.differences.to_html()}{self.finals.to_html()}{notes}"

    def draw(self, fig: Any) -> None:
        """Both runs in one panel a metric: means over seeds, bands of one standard deviation.

        A drawing for `plot.show`: `plot.show(comparison.draw, alt="...")`.
        """
        from papers.kit import plot

        runs = dict(zip(map(label, self.names), self.traces, strict=True))
        panels = np.atleast_1d(fig.subplots(1, len(self.metrics)))
        for ax, metric in zip(panels, self.metrics, strict=True):
            plot.bands(ax, runs, metric)
            ax.set_ylabel(label(metric))
        panels[0].legend()

    def curves(self) -> list[dict[str, Any]]:
        """The numbers of the drawing: one row a run, metric and round."""
        return [
            {"run": name, "metric": metric, "round": int(t)}
            | {"mean": float(x.mean()), "std": float(x.std()), "seeds": len(x)}
            for name, trace in zip(self.names, self.traces, strict=True)
            for metric in self.metrics
            for t, x in zip(trace.rounds, trace.metrics[metric].T, strict=True)
        ]

    def write(self, figure: Path | str, *, force: bool = False) -> tuple[Path, Path]:
        """Write the drawing as SVG or PNG, by its ending, and its numbers as CSV beside it.

        A CSV that is there and that this function did not write is overwritten with `force` only.
        """
        from papers.kit import plot

        path = check_figure(figure)
        beside = path.with_suffix(".csv")
        if not force and not is_ours(beside):
            got = f"got {path.name!r}; name another file, or give --force (force=True)"
            raise ValueError(
                f"compare: figure must leave {beside.name} alone, which lies beside and was "
                f"not written by compare, {got}."
            )
        size = (max(4.5, 3.6 * len(self.metrics)), 3.2)
        picture = plot.render(self.draw, "light", path.suffix[1:], size)
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.curves())
        atomic_write(path, lambda file: file.write(picture))
        atomic_write(beside, lambda file: file.write(text.getvalue().encode()))
        return path, beside


def label(name: str) -> str:
    """A name as a drawing shows it: no formula between dollars, not left out for its underscore."""
    shown = name.replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def compare(
    first: str | Path | Trace,
    second: str | Path | Trace,
    *,
    metrics: Sequence[str] = (),
    figure: Path | str | None = None,
    force: bool = False,
) -> Comparison:
    """Hold two runs against each other.

    Parameters
    ----------
    first, second : `"STUDY/RUN"` or `"STUDY/RUN@PROFILE"` (the full profile if none is named), a
        file of `Trace.save` or of a results folder, or a `Trace`.
    metrics : which shared metrics are drawn; by default the first three.
    figure : where the drawing goes (`.svg` or `.png`), its numbers beside it as `.csv`.
    force : whether the numbers may take the place of a `.csv` that `compare` did not write.

    Raises
    ------
    ValueError
        for a run or a metric that is not there (with the names that come nearest), a damaged file,
        or two runs without a common metric. Two different problems are no error, but noted.
    """
    if isinstance(metrics, str) or not isinstance(metrics, Sequence):
        raise TypeError(checks.sentence("compare", "metrics", "be a list of names", metrics))
    if figure is not None:
        check_figure(figure)
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
        found.write(figure, force=force)
    return found


def check_figure(figure: Path | str) -> Path:
    """Where a drawing goes; TypeError or ValueError for what names no picture."""
    checks.value("compare", "figure", figure, str | Path)
    checks.one_of("compare", "the ending of figure", Path(figure).suffix, FORMATS)
    return Path(figure)


def is_ours(path: Path) -> bool:
    """Whether a CSV is not there yet, or is one that `Comparison.write` wrote."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.readline().rstrip("\n") == ",".join(COLUMNS)
    except FileNotFoundError:
        return True
    except OSError:
        return False


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
