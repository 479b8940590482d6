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
        tables = self.differences, self.finals
        return "\n\n".join(table.to_string(max_colwidth=WIDTH) for table in tables)


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
    names = ["first", "second"]
    entries_a = entries_of(a)
    entries_b = entries_of(b)
    entries = {}
    for key in entries_a | entries_b:
        if entries_a.get(key) != entries_b.get(key):
            entries[key] = [str(entries_a.get(key, "-")), str(entries_b.get(key, "-"))]
    paired = sorted(a.seeds) == sorted(b.seeds)
    values_of_b = finals(b)
    rows = {
        name: beside(values, values_of_b[name], paired)
        for name, values in finals(a).items()
        if name in values_of_b
    }
    columns = [*names, f"difference, {'paired by seed' if paired else 'seeds apart'}"]
    return Comparison(
        pd.DataFrame.from_dict(entries, orient="index", columns=names),
        pd.DataFrame.from_dict(rows, orient="index", columns=columns),
    )


def find(run: str | Path | Trace, argument: str) -> Trace:
    """The run that is meant; else one sentence with the nearest name."""
    checks.value("compare", argument, run, str | Path | Trace)
    if isinstance(run, Trace):
        return run
    if str(run).endswith(".json"):
        return Trace.load(Path(run))
    location, _, profile = str(run).partition("@")
    study, _, name = location.partition("/")
    if study not in STUDIES or not name:
        hint = f"name a run as STUDY/RUN, a file as PATH.json; {nearest(study, STUDIES)}"
        raise ValueError(
            checks.sentence(
                "compare",
                argument,
                "name a run",
                str(run),
                hint,
            )
        )
    STUDIES[study].resolve(profile or "full")  # refuses a profile that the study does not have
    path = store.run_path(study, profile or "full", name)
    stored = archive.names(path.parent) - {"numbers"}
    if name not in stored:
        rule = f"name a stored run of {study}"
        make = f"`papers reproduce {study} --profile {profile or 'full'} --missing` makes them"
        hint = nearest(name, stored) if stored else make
        raise ValueError(
            checks.sentence(
                "compare",
                argument,
                rule,
                name,
                hint,
            )
        )
    return store.to_trace(store.read_run(path))


def entries_of(trace: Trace) -> dict[str, Any]:
    """Configuration and provenance of a run, one entry a dotted name."""
    made_by = {k: v for k, v in trace.provenance.items() if k in MADE_BY}
    config = {k: v for k, v in trace.config.items() if k not in ("bits", "labels")}
    flat: dict[str, Any] = pd.json_normalize({**config, "made by": made_by}).iloc[0].to_dict()
    return {k: v for k, v in flat.items() if v != {}}


def finals(trace: Trace) -> dict[str, np.ndarray]:
    """By seed, in their order: final metrics, and the mean over rounds of what was reported.

    Of a stored run the bits too.
    """
    order = np.argsort(trace.seeds)
    values = {name: x[order, -1] for name, x in trace.metrics.items()}
    for name, bits in trace.config.get("bits", {}).items():
        values[f"{name} a round"] = np.full(len(order), bits)
    for name, x in trace.info.items():
        values[f"{name} a round"] = x[order].mean(axis=1)
    return values


def beside(x: np.ndarray, y: np.ndarray, paired: bool) -> list[str]:
    """Two groups of values, one a seed, and the second minus the first.

    With an interval where both have the same seeds: what a seed does to both cancels.
    """
    apart = mean(y - x) if paired else exact(y.mean() - x.mean())
    numbers = (mean(x), mean(y), apart)
    return [f"{n.value:.6g}" if n.low == n.high else n.text() for n in numbers]
