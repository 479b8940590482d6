"""Stored curves as one tidy table, against what a reader wants on the horizontal axis.

The book's explorer draws from the same: `thinned` is what it is given, and the code that it hands
out calls `table`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlib import checks
from fedlib.core import Trace
from papers.kit.numbers import significant
from papers.kit.runfile import to_trace

if TYPE_CHECKING:
    import pandas as pd

    from papers.kit.study import Study

#: What may be on the horizontal axis. Bits are those of all participants, a round's mean.
AXES = {
    "round": "rounds",
    "steps": "gradient steps of a client (rounds times E)",
    "bits_up": "bits up, from all clients",
    "bits_down": "bits down, to all clients",
    "bits": "bits both ways, all clients",
}
MOST = 200  # points of a thinned curve


def table(study: Study, runs: Sequence[str], metric: str, axis: str = "round") -> pd.DataFrame:
    """One row a run, seed and evaluated round, from the stored runs of the full profile.

    The columns are `run`, `seed`, the axis (a key of `AXES`) and the metric.
    """
    import pandas as pd

    checks.one_of("table", "axis", axis, tuple(AXES))
    parts = []
    for name in runs:
        trace = to_trace(study.payload(name))
        checks.one_of("table", "metric", metric, curves(trace))
        x, y = curves(trace)[metric]
        seeds = np.repeat(trace.seeds, len(x))
        along = np.tile(x * unit(trace, axis), len(y))
        parts.append(pd.DataFrame({"run": name, "seed": seeds, axis: along, metric: y.reshape(-1)}))
    return pd.concat(parts, ignore_index=True)


def curves(trace: Trace) -> dict[str, tuple[Any, Any]]:
    """Name -> rounds `[T]` and values `[S, T]`, of all that was evaluated or reported."""
    found = {name: (trace.rounds, y) for name, y in trace.metrics.items()}
    for name, y in trace.info.items():
        found.setdefault(name, (np.arange(y.shape[1]), y))
    return found


def unit(trace: Trace, axis: str) -> float:
    """How much of an axis one round is."""
    bits: Mapping[str, float] = trace.config["bits"]
    units: dict[str, float] = {
        "round": 1.0,
        "steps": float(method_of(trace.config).get("local_steps", 1)),
        **bits,
        "bits": bits["bits_up"] + bits["bits_down"],
    }
    return units[axis]


def method_of(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The method's own parameters, also where it is followed by something around it."""
    algorithm: Mapping[str, Any] = config["algorithm"]
    inner = algorithm.get("method")
    return inner if isinstance(inner, Mapping) else algorithm


def thinned(trace: Trace) -> dict[str, Any]:
    """Mean and standard deviation over seeds, at most `MOST` points a curve, for a browser.

    What has the same points shares them: `x` is a list of rows, a curve has the number of its row.
    """
    rows: list[list[int]] = []
    made: dict[str, list[Any]] = {}
    for name, (x, y) in curves(trace).items():
        kept = np.unique(np.linspace(0, len(x) - 1, min(MOST, len(x))).round().astype(int))
        points = [int(v) for v in x[kept]]
        if points not in rows:
            rows.append(points)
        with np.errstate(all="ignore"):
            mean = y[:, kept].mean(0)
            std = y[:, kept].std(0, ddof=1) if len(y) > 1 else np.zeros(0)
        made[name] = [
            rows.index(points),
            [significant(float(v), 5) for v in mean],
            [significant(float(v), 2) for v in std],
        ]
    return {
        "n": len(trace.seeds),
        "unit": {axis: unit(trace, axis) for axis in AXES},
        "x": rows,
        "y": made,
    }
