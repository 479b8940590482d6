"""What the studies of FedSGM share: labels of runs, ways of switching, and null data."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from fedlib.core import Trace
from fedlib.steps import Hard, Soft
from papers.kit.quantities import Defaults, Label, Query
from papers.kit.study import Params

#: The labels of a run.
Run = dict[str, Label]


def usual_labels(paper: Defaults, p: Params) -> Defaults:
    """The labels of runs at the paper's setting, with what a study's parameters have instead."""
    return {label: p.get(label, value) for label, value in paper.items()}


def switch_of(labels: Mapping[str, Any], label: str = "switch") -> Hard | Soft:
    """The way of switching that labels describe, one of them by its name."""
    return Soft(labels["beta"]) if labels[label] == "soft" else Hard()


def instead(runs: Iterable[Run], substitute: Run, *measures: str) -> dict[Query, Query]:
    """Measures of runs -> those of another run, which a control reads in their place."""
    queries = {}
    for run in runs:
        for measure in measures:
            queries[Query.of(measure, **run)] = Query.of(measure, **substitute)
    return queries


def disjoint(trace: Trace, count: int) -> list[Trace]:
    """A run on disjoint sets of its seeds, equal in size: null data. None of fewer seeds."""
    size = len(trace.seeds) // count
    starts = range(0, count * size, size) if size else ()
    return [some_seeds(trace, slice(start, start + size)) for start in starts]


def some_seeds(trace: Trace, rows: slice) -> Trace:
    """A run on some of its seeds, its curves alone."""
    return replace(
        trace,
        metrics={name: curve[rows] for name, curve in trace.metrics.items()},
        info={name: curve[rows] for name, curve in trace.info.items()},
        seeds=trace.seeds[rows],
        state=None,
        output=None,
    )
