"""The quantities of the study of FedFW's Table 3."""

from __future__ import annotations

import numpy as np

from fedlib.core import Trace
from papers.fedfw.cells import COLUMNS_3, DEFAULTS, METHODS_3
from papers.fedfw.tables.quantities import counts, of_cell
from papers.kit.quantities import Quantities, Row, labels_of, name_of
from papers.kit.study import Params, Traces


def derive(traces: Traces, _: Params) -> Quantities:
    """Every column by both protocols, differences by seed, and counts."""
    runs = merged(traces)
    cells = [(column, "") for column in COLUMNS_3]
    rows: list[Row] = []
    for cell in cells:
        rows += of_cell(runs, cell, METHODS_3)
    rows += counts(Quantities.of([rows], DEFAULTS), cells, METHODS_3)
    return Quantities.of([rows], DEFAULTS)


def merged(traces: Traces) -> dict[str, Trace]:
    """Runs with all their seeds, without those of which some seeds are not there yet."""
    by_run: dict[str, list[Trace]] = {}
    for trace in traces.values():
        by_run.setdefault(name_of(labels_of_all_seeds(trace), DEFAULTS), []).append(trace)
    most = max(map(len, by_run.values()), default=0)
    return {name: joined(seeds) for name, seeds in by_run.items() if len(seeds) == most}


def labels_of_all_seeds(trace: Trace) -> dict[str, str | float | bool]:
    """The labels that the runs of all seeds have."""
    return {label: value for label, value in labels_of(trace).items() if label != "only_seed"}


def joined(traces: list[Trace]) -> Trace:
    """One run of the seeds of several that differ in these alone."""
    metrics = {
        name: np.concatenate([trace.metrics[name] for trace in traces])
        for name in traces[0].metrics
    }
    seeds = tuple(seed for trace in traces for seed in trace.seeds)
    config = {**traces[0].config, "labels": labels_of_all_seeds(traces[0])}
    return Trace(
        metrics,
        {},
        traces[0].rounds,
        seeds,
        config,
    )
