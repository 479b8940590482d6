"""The derived numbers of the study of FedFW's Table 3."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedlib.core import Trace
from papers.fedfw.cells import COLUMNS_3, METHODS_3, TABLE_3
from papers.fedfw.tables.numbers import MEASURES, chosen, counted, difference, picked
from papers.kit.numbers import Number, exact, measured
from papers.kit.study import Params, Traces


def merged(traces: Traces) -> dict[str, Trace]:
    """Runs with all their seeds, without those of which some seeds are not there yet."""
    parts: dict[str, list[Trace]] = {}
    for name, trace in traces.items():
        parts.setdefault(name.rsplit("_seed", 1)[0], []).append(trace)
    most = max(map(len, parts.values()), default=0)
    return {name: merge_seeds(each) for name, each in parts.items() if len(each) == most}


def merge_seeds(parts: list[Trace]) -> Trace:
    first = parts[0]
    metrics = {k: np.concatenate([t.metrics[k] for t in parts]) for k in first.metrics}
    info = {k: np.concatenate([t.info[k] for t in parts]) for k in first.info}
    seeds = tuple(s for t in parts for s in t.seeds)
    return replace(first, metrics=metrics, info=info, seeds=seeds, state=None)


def derive(traces: Traces, _: Params) -> dict[str, Number]:
    runs = merged(traces)
    found: dict[str, Number] = {}
    for column in COLUMNS_3:
        best = picked(runs, column, METHODS_3)
        for m in best:
            setting = float(chosen(runs, column, m))
            found[f"{column}_{m}.{'lam' if m == 'sto' else 'lr'}"] = exact(setting)
        coded = {m: runs[f"{column}_code_{m}"] for m in METHODS_3 if f"{column}_code_{m}" in runs}
        for start, shown in ((column, best), (f"{column}_code", coded)):
            found |= measured({f"{start}_{m}": t for m, t in shown.items()}, MEASURES)
            if len(shown) == len(METHODS_3):
                for key in MEASURES:
                    gap = difference(shown["sto"], shown["feddr"], key)
                    found[f"{start}_sto_vs_feddr.{key}"] = gap
    for kind, ours, _theirs in counted(found, {c: TABLE_3[c] for c in COLUMNS_3}, METHODS_3):
        found[f"count_{kind}.cells"] = exact(len(ours), "columns")
        found[f"count_{kind}.ahead"] = exact(sum(x[1] > x[0] for x in ours), "columns")
    return found
