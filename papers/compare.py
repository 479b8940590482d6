"""Two runs side by side: what differs in their configurations, and in their final values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlib import checks
from fedlib.core import Trace
from papers.kit.commands import nearest
from papers.kit.numbers import exact, mean

if TYPE_CHECKING:
    import pandas as pd

PROFILES = ("full", "quick", "paper")
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
    notes : what to keep in mind, such as two different problems.
    """

    differences: pd.DataFrame
    finals: pd.DataFrame
    notes: tuple[str, ...]

    def __str__(self) -> str:
        """Both tables and the notes."""
        tables = (t.to_string(max_colwidth=WIDTH) for t in (self.differences, self.finals))
        return "\n\n".join([*tables, *self.notes])


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
    import pandas as pd

    names, (a, b) = ("first", "second"), (find(first, "first"), find(second, "second"))
    shared = [k for k in a.metrics if k in b.metrics]
    if not shared:
        has = f"first has {', '.join(a.metrics)}, second has {', '.join(b.metrics)}"
        raise ValueError(f"compare: the runs must share a metric, got none; {has}.")
    paired = sorted(a.seeds) == sorted(b.seeds)
    values = {k: (a.metrics[k][:, -1], b.metrics[k][:, -1]) for k in shared}
    told = reported(a), reported(b)
    values |= {f"{k} a round": (told[0][k], told[1][k]) for k in told[0] if k in told[1]}
    order = np.argsort(a.seeds), np.argsort(b.seeds)
    rows = {k: beside(x[order[0]], y[order[1]], paired) for k, (x, y) in values.items()}
    columns = [*names, f"difference, {'paired by seed' if paired else 'seeds apart'}"]
    entries = entries_of(a), entries_of(b)
    keys = [k for k in entries[0] | entries[1] if entries[0].get(k) != entries[1].get(k)]
    table = {k: [str(e.get(k, "-")) for e in entries] for k in keys}
    return Comparison(
        differences=pd.DataFrame.from_dict(table, orient="index", columns=names),
        finals=pd.DataFrame.from_dict(rows, orient="index", columns=columns),
        notes=tuple(notes(a, b)),
    )


def find(what: str | Path | Trace, argument: str) -> Trace:
    """The run that is meant; else one sentence with the nearest name."""
    from papers import STUDIES
    from papers.kit import archive, store

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
    checks.one_of("compare", f"the profile of {argument}", profile or "full", PROFILES)
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
    import pandas as pd

    made_by = {k: v for k, v in trace.provenance.items() if k in MADE_BY}
    config = {k: v for k, v in trace.config.items() if k != "bits"}
    flat: Mapping[str, Any] = pd.json_normalize({**config, "made by": made_by}).iloc[0].to_dict()
    return {k: v for k, v in flat.items() if v != {}}


def reported(trace: Trace) -> dict[str, np.ndarray]:
    """The mean over all rounds of what they reported, `[S]` each; bits of a stored run too."""
    bits = {k: np.full(len(trace.seeds), v) for k, v in trace.config.get("bits", {}).items()}
    return bits | {k: v.mean(1) for k, v in trace.info.items()}


def beside(x: np.ndarray, y: np.ndarray, paired: bool) -> list[str]:
    """Two groups of values, one a seed, and the second minus the first.

    With an interval where both have the same seeds: what a seed does to both cancels.
    """
    apart = mean(y - x) if paired else exact(y.mean() - x.mean())
    found = mean(x), mean(y), apart
    return [f"{n.value:.6g}" if n.low == n.high else n.text() for n in found]


def notes(a: Trace, b: Trace) -> list[str]:
    """What must be kept in mind when the two are compared."""
    found = []
    if a.config.get("problem") != b.config.get("problem"):
        found.append("The problems differ: the values lie side by side, they are no contest.")
    if a.rounds[-1] != b.rounds[-1]:
        found.append(f"The runs end after {a.rounds[-1]} and {b.rounds[-1]} rounds.")
    if sorted(a.seeds) != sorted(b.seeds):
        found.append("The seeds differ: the difference is of two groups, not of pairs.")
    return found
