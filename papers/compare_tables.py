"""What two runs differ in, as tables: configuration and provenance, final values, what to note."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array

if TYPE_CHECKING:
    import pandas as pd

    from papers.kit.numbers import Number

ABSENT = "-"  # an entry that one of the two does not have
MADE = "made by"
#: Of the provenance, what may explain a difference.
MADE_BY = ("fedlib", "commit", "dirty", "torch", "numpy", "python", "device", "threads")


class Named(NamedTuple):
    """A run and what it is called."""

    name: str
    trace: Trace


def differences(runs: tuple[Named, Named]) -> pd.DataFrame:
    """Entries of configuration and provenance that differ."""
    import pandas as pd

    entries = [
        {
            **flat({k: v for k, v in run.trace.config.items() if k != "bits"}),
            **{f"{MADE}.{k}": v for k, v in run.trace.provenance.items() if k in MADE_BY},
        }
        for run in runs
    ]
    parts = list(dict.fromkeys(section(k) for side in entries for k in side))
    parts.sort(key=MADE.__eq__)  # stable: what is not configuration comes last
    every = sorted({**entries[0], **entries[1]}, key=lambda k: parts.index(section(k)))
    a, b = entries
    keys = [k for k in every if a.get(k, ABSENT) != b.get(k, ABSENT)]
    rows = [[shown(side.get(k, ABSENT)) for side in entries] for k in keys]
    index = pd.Index(keys, name=None)
    return pd.DataFrame(rows, columns=[run.name for run in runs], index=index)


def section(key: str) -> str:
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
    return [k for k in a if k in b]


def finals(names: tuple[str, str], traces: tuple[Trace, Trace]) -> pd.DataFrame:
    """Final values of the shared metrics, means over rounds of what both report, differences."""
    import pandas as pd

    a, b = traces
    paired = sorted(a.seeds) == sorted(b.seeds)
    ends = {k: [t.metrics[k][:, -1] for t in traces] for k in shared(a.metrics, b.metrics)}
    told = [reported(t) for t in traces]
    ends |= {f"{k} a round": [of[k].mean(1) for of in told] for k in shared(*told)}
    order = [np.argsort(t.seeds) for t in traces]
    rows = []
    for each in ends.values():
        x, y = (values[by] for values, by in zip(each, order, strict=True))
        rows.append([text(n) for n in beside(x, y, paired)])
    how = "paired by seed" if paired else "seeds apart"
    return pd.DataFrame(rows, columns=[*names, f"difference, {how}"], index=list(ends))


def text(n: Number) -> str:
    """A value with its interval, or alone where all seeds agree."""
    return f"{n.value:.6g}" if n.low == n.high else n.text()


def reported(trace: Trace) -> dict[str, Array]:
    """What the rounds reported; of a stored run also the mean bits, which are kept apart."""
    bits = trace.config.get("bits", {})
    kept = {k: np.full((len(trace.seeds), 1), float(v)) for k, v in bits.items()}
    return {**trace.info, **{k: v for k, v in kept.items() if k not in trace.info}}


def beside(a: Array, b: Array, paired: bool) -> tuple[Number, Number, Number]:
    """Two groups of values, one a seed, and the second minus the first, with their intervals."""
    from papers.kit.numbers import difference, mean

    return mean(a), mean(b), mean(b - a) if paired else difference(a, b)


def notes(traces: tuple[Trace, Trace]) -> list[str]:
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
        found.append("The seeds differ: the difference is one of two groups, not of pairs.")
    return found


def table(frame: pd.DataFrame, heads: Sequence[str]) -> str:
    """A data frame of texts as lines of text, under other headings, no column cut."""
    rows = [
        ["", *heads],
        *([label, *cells] for label, cells in zip(frame.index, frame.values, strict=True)),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(c.ljust(n) for c, n in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines)
