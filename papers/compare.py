"""Two runs side by side: what differs in their configurations, and in their final values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fedlib import checks
from fedlib.core import Trace
from papers import STUDIES
from papers.kit import archive, store
from papers.kit.numbers import exact, mean
from papers.kit.parameters import nearest

#: Of the provenance, what may explain a difference.
MADE_BY = ("fedlib", "commit", "torch", "numpy", "python", "device", "threads")
WIDTH = 40  # of an entry in a table


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two runs side by side.

    Attributes
    ----------
    differences : entries of configuration and provenance that differ, one column a run.
    finals : final values of shared metrics with 95 % intervals over seeds, the mean over rounds of
        what both reported, and the second run's minus the first's, paired where seeds are equal.
    """

    differences: pd.DataFrame
    finals: pd.DataFrame

    def __str__(self) -> str:
        """Both tables."""
        differences = self.differences.to_string(max_colwidth=WIDTH)
        finals = self.finals.to_string(max_colwidth=WIDTH)
        return f"{differences}\n\n{finals}"


def compare(first: str | Path | Trace, second: str | Path | Trace) -> Comparison:
    """Compare two runs.

    Parameters
    ----------
    first, second : `"STUDY/RUN"` or `"STUDY/RUN@PROFILE"` of a stored run, a file that
        `Trace.save` wrote, or a `Trace`.

    Raises
    ------
    ValueError
        for a run that is not stored (with the nearest name), a damaged file, or two runs without
        a common metric.
    """
    a = find(first, "first")
    b = find(second, "second")
    if not a.metrics.keys() & b.metrics.keys():
        has = f"first has {', '.join(a.metrics)}, second has {', '.join(b.metrics)}"
        raise ValueError(f"compare: the runs must share a metric, got none; {has}.")
    return Comparison(differences_of(a, b), finals_of(a, b))


def differences_of(a: Trace, b: Trace) -> pd.DataFrame:
    """The entries of configuration and provenance that differ, one column a run."""
    entries_a = entries_of(a)
    entries_b = entries_of(b)
    rows = {}
    for key in entries_a | entries_b:
        if entries_a.get(key) != entries_b.get(key):
            entry_a = entries_a.get(key, "-")
            entry_b = entries_b.get(key, "-")
            rows[key] = [str(entry_a), str(entry_b)]
    return pd.DataFrame.from_dict(rows, orient="index", columns=["first", "second"])


def finals_of(a: Trace, b: Trace) -> pd.DataFrame:
    """What `finals` has of both runs, side by side, and the difference."""
    paired = sorted(a.seeds) == sorted(b.seeds)
    how = "paired by seed" if paired else "seeds apart"
    values_a = finals(a)
    values_b = finals(b)
    rows = {}
    for name, values in values_a.items():
        if name in values_b:
            rows[name] = beside(values, values_b[name], paired)
    columns = ["first", "second", f"difference, {how}"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def find(run: str | Path | Trace, argument: str) -> Trace:
    """The run that is meant; else one sentence with the nearest name."""
    checks.value("compare", argument, run, str | Path | Trace)
    if isinstance(run, Trace):
        return run
    text = str(run)
    if text.endswith(".json"):
        return Trace.load(Path(text))
    location, _, profile = text.partition("@")
    profile = profile or "full"
    study, _, name = location.partition("/")
    if study not in STUDIES or not name:
        hint = f"name a run as STUDY/RUN, a file as PATH.json; {nearest(study, STUDIES)}"
        raise ValueError(checks.sentence("compare", argument, "name a run", text, hint))
    STUDIES[study].resolve(profile)  # refuses a profile that the study does not have
    path = store.run_path(study, profile, name)
    stored = archive.names(path.parent) - {"numbers"}
    if name not in stored:
        rule = f"name a stored run of {study}"
        hint = f"`papers reproduce {study} --profile {profile} --missing` makes them"
        if stored:
            hint = nearest(name, stored)
        raise ValueError(checks.sentence("compare", argument, rule, name, hint))
    payload = store.read_run(path)
    return store.to_trace(payload)


def entries_of(trace: Trace) -> dict[str, Any]:
    """Configuration and provenance of a run, one entry a dotted name."""
    config = dict(trace.config)
    for result in ("bits", "labels"):
        config.pop(result, None)
    made_by = {name: value for name, value in trace.provenance.items() if name in MADE_BY}
    table = pd.json_normalize({**config, "made by": made_by})
    entries: dict[str, Any] = table.iloc[0].to_dict()
    return {name: value for name, value in entries.items() if value != {}}


def finals(trace: Trace) -> dict[str, np.ndarray]:
    """By seed, in their order: final metrics, and the mean over rounds of what was reported.

    Of a stored run the bits too.
    """
    order = np.argsort(trace.seeds)
    values = {}
    for name, curves in trace.metrics.items():
        values[name] = curves[order, -1]
    for name, bits in trace.config.get("bits", {}).items():
        values[f"{name} a round"] = np.full(len(order), bits)
    for name, curves in trace.info.items():
        values[f"{name} a round"] = curves[order].mean(axis=1)
    return values


def beside(x: np.ndarray, y: np.ndarray, paired: bool) -> list[str]:
    """Two groups of values, one a seed, and the second minus the first.

    With an interval where both have the same seeds: what a seed does to both cancels.
    """
    difference_of_means = y.mean() - x.mean()
    difference = mean(y - x) if paired else exact(difference_of_means)
    numbers = (mean(x), mean(y), difference)
    texts = []
    for number in numbers:
        is_exact = number.low == number.high
        texts.append(f"{number.value:.6g}" if is_exact else number.text())
    return texts
