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
    names, (a, b) = ("first", "second"), (find(first, "first"), find(second, "second"))
    if not a.metrics.keys() & b.metrics.keys():
        has = f"first has {', '.join(a.metrics)}, second has {', '.join(b.metrics)}"
        raise ValueError(f"compare: the runs must share a metric, got none; {has}.")
    paired = sorted(a.seeds) == sorted(b.seeds)
    values = finals(a), finals(b)
    rows = {k: beside(x, values[1][k], paired) for k, x in values[0].items() if k in values[1]}
    columns = [*names, f"difference, {'paired by seed' if paired else 'seeds apart'}"]
    entries = entries_of(a), entries_of(b)
    keys = [k for k in entries[0] | entries[1] if entries[0].get(k) != entries[1].get(k)]
    table = {k: [str(e.get(k, "-")) for e in entries] for k in keys}
    return Comparison(
        pd.DataFrame.from_dict(table, orient="index", columns=names),
        pd.DataFrame.from_dict(rows, orient="index", columns=columns),
    )


def find(what: str | Path | Trace, argument: str) -> Trace:
    """The run that is meant; else one sentence with the nearest name."""
    checks.value("compare", argument, what, str | Path | Trace)
    if isinstance(what, Trace):
        return what
    if str(what).endswith(".json"):
        return Trace.load(Path(what))
    place, _, profile = str(what).partition("@")
    study, _, run = place.partition("/")
    if study not in STUDIES or not run:
        named = f"name a run as STUDY/RUN, a file as PATH.json; {nearest(study, STUDIES)}"
        raise ValueError(checks.sentence("compare", argument, "name a run", str(what), named))
    path = store.run_path(study, profile or "full", run)
    there = archive.names(path.parent) - {"numbers"}
    if run not in there:
        rule = f"name a stored run of {study}"
        make = f"`papers reproduce {study} --profile {profile or 'full'} --missing` makes them"
        hint = nearest(run, there) if there else make
        raise ValueError(checks.sentence("compare", argument, rule, run, hint))
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
    found = {k: x[order, -1] for k, x in trace.metrics.items()}
    bits = trace.config.get("bits", {})
    found |= {f"{k} a round": np.full(len(order), v) for k, v in bits.items()}
    return found | {f"{k} a round": x[order].mean(1) for k, x in trace.info.items()}


def beside(x: np.ndarray, y: np.ndarray, paired: bool) -> list[str]:
    """Two groups of values, one a seed, and the second minus the first.

    With an interval where both have the same seeds: what a seed does to both cancels.
    """
    apart = mean(y - x) if paired else exact(y.mean() - x.mean())
    found = mean(x), mean(y), apart
    return [f"{n.value:.6g}" if n.low == n.high else n.text() for n in found]
