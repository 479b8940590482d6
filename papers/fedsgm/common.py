"""What the studies of FedSGM share: labels of runs, ways of switching, and null data."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from fedlib import data
from fedlib.core import Problem, Trace
from fedlib.problems import neyman_pearson
from fedlib.steps import Hard, Soft
from papers.kit.quantities import Defaults, Label, Query, labels_of
from papers.kit.study import Params, Traces

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


def without_splits(traces: Traces, splits: Label) -> dict[str, Trace]:
    """The runs on other splits than these."""
    return {n: trace for n, trace in traces.items() if labels_of(trace)["splits"] != splits}


def breast_cancer(
    seed: int,
    *,
    clients: int,
    positive: str = "malignant",
    config: Mapping[str, Any] = {},
    **options: Any,
) -> Problem:
    """Neyman-Pearson classification of the breast cancer data on equal, stratified clients."""
    table = data.breast_cancer(positive)
    return neyman_pearson(
        table.X,
        table.y,
        clients=clients,
        seed=seed,
        config={"data": "breast_cancer", "positive": positive, **config},
        **options,
    )


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
