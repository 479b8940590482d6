"""The quantities of the study of FedFW's Tables 1 and 2, and what that of Table 3 shares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedfw.cells import (
    BEST_FEDDR,
    CELLS,
    COLUMNS,
    DEFAULTS,
    METHODS,
    NON_IID,
    NORMS,
    PRINTED_AT,
    SYNTHETIC,
    Labels,
    Printed,
    as_coded,
    labels_of_cell,
    run_as_traced,
)
from papers.kit.numbers import Number, exact, mean, share
from papers.kit.quantities import (
    Quantities,
    Query,
    Row,
    chosen,
    labels_of,
    name_of,
    row,
    sweep,
)
from papers.kit.study import Params, Traces

LATE = 3  # evaluated models, the last ones, whose mean training loss decides about a setting
LEVELS = (0.9, 0.75, 0.5)  # of the start's training loss, to which rounds are counted
SETTINGS = ("lam", "lr", "eta")  # labels among which the training loss chooses
#: Protocol -> the measure by which it compares methods.
COMPARED = {"text": "accuracy", "code": "best"}
Cell = tuple[str, str]  # column and norm


def derive(traces: Traces, _: Params) -> Quantities:
    """Every cell by both protocols, differences by seed, rounds to levels, and counts."""
    cells = [(column, norm) for norm in NORMS for column in COLUMNS]
    rows: list[Row] = []
    for cell in cells:
        rows += of_cell(traces, cell, METHODS)
        rows += rounds_apart(traces, cell)
    numbers = Quantities.of([rows], DEFAULTS)
    rows += [*counts(numbers, cells, METHODS), *over_columns(numbers), *faster(numbers)]
    return Quantities.of([rows], DEFAULTS)


def percent(trace: Trace) -> Array:
    """Test accuracy in %, `[S, R]`."""
    return np.asarray(100 * trace.metrics["accuracy"])


def late(trace: Trace) -> Array:
    """Per seed the training loss, its mean over the last evaluated models, `[S]`."""
    return np.asarray(trace.metrics["loss"][:, -LATE:].mean(1))


def measures(trace: Trace) -> dict[str, Array]:
    """Test accuracy in % of the last model, and the best of the rounds, by seed."""
    accuracy = percent(trace)
    return {"accuracy": accuracy[:, -1], "best": accuracy.max(1)}


def shown_run(traces: Traces, cell: Cell, protocol: str, method: str) -> Trace | None:
    """The run of a method that a table shows; None where none is there.

    By the protocol of the text it is the one with the lowest mean training loss at the end;
    accuracy plays no part.
    """
    if protocol == "code":
        return traces.get(name_of(run_as_traced(*cell, method), DEFAULTS))
    labels = labels_of_cell(*cell)
    grid = chosen(traces, SETTINGS, DEFAULTS, **labels, protocol=protocol, method=method)
    return min(grid.values(), key=lambda trace: late(trace).mean(), default=None)


def of_cell(traces: Traces, cell: Cell, methods: Iterable[str]) -> Iterator[Row]:
    """Accuracies of a cell by both protocols, chosen settings, and methods minus FedDR by seed.

    Null data, minus `nothing`, are FedDR on its first seeds and on its last; of one seed there are
    none.
    """
    for protocol in COMPARED:
        labels: Labels = {**labels_of_cell(*cell), "protocol": protocol}
        values = {}
        for method in methods:
            trace = shown_run(traces, cell, protocol, method)
            if trace is None:
                continue
            values[method] = measures(trace)
            for measure, by_seed in values[method].items():
                yield row(measure, mean(by_seed, "%"), **labels, method=method)
            if protocol == "text":
                yield from settings_of(trace, {**labels, "method": method})
        baseline = values.pop("feddr", None)
        if baseline is None:
            continue
        for method, accuracies in values.items():
            for measure, by_seed in accuracies.items():
                gap = mean(by_seed - baseline[measure], "points")
                yield row(measure, gap, **labels, method=method, minus="feddr")
                if len(baseline[measure]) > 2:
                    nothing = mean(baseline[measure][:2] - baseline[measure][-2:], "points")
                    yield row(measure, nothing, **labels, method=method, minus="nothing")


def settings_of(trace: Trace, labels: Labels) -> Iterator[Row]:
    """The settings that were chosen from the grid."""
    for setting in SETTINGS:
        if setting in labels_of(trace):
            yield row(setting, exact(float(labels_of(trace)[setting])), **labels)


def rounds_apart(traces: Traces, cell: Cell) -> Iterator[Row]:
    """FedFW+ minus FedFW: rounds to a share of the start's loss, mean over levels and lambda_0.

    Null data, minus `nothing`, are FedFW on its first seeds and on its last.
    """
    labels: Labels = {**labels_of_cell(*cell), "protocol": "text"}
    plain = sweep(traces, DEFAULTS, "lam", **labels, method="fedfw")
    augmented = sweep(traces, DEFAULTS, "lam", **labels, method="plus")
    differences = []
    nothing = []
    for lam, trace in plain.items():
        if lam not in augmented:
            continue
        for level in LEVELS:
            rounds = rounds_to(trace, level)
            differences.append(rounds_to(augmented[lam], level) - rounds)
            if len(rounds) > 2:
                nothing.append(rounds[:2] - rounds[-2:])
    for minus, values in (("fedfw", differences), ("nothing", nothing)):
        if values:
            number = mean(np.mean(values, axis=0), "rounds")
            yield row("rounds", number, **labels, method="plus", minus=minus)


def rounds_to(trace: Trace, level: float) -> Array:
    """The round at which each loss first falls to a share of its start; the last if it never does.

    Between two evaluations a curve is taken as straight.
    """
    rounds = trace.rounds
    reached = []
    for loss in trace.metrics["loss"]:
        below = np.flatnonzero(loss <= level * loss[0])
        if len(below):
            around = slice(max(below[0] - 1, 0), below[0] + 1)
            reached.append(np.interp(-level * loss[0], -loss[around], rounds[around]))
        else:
            reached.append(rounds[-1])
    return np.array(reached, float)


def gap_of(
    protocol: str, column: str, norm: str, method: str = "fedfw", minus: str = "feddr"
) -> Query:
    """A method minus FedDR by a protocol, which may read the column in its own way."""
    cell = labels_of_cell(as_coded(column) if protocol == "code" else column, norm)
    labels: Labels = {**cell, "protocol": protocol, "method": method, "minus": minus}
    return Query.of(COMPARED[protocol], **labels)


def over_columns(numbers: Quantities) -> Iterator[Row]:
    """C7's sentences: means over columns, seed by seed, of differences with the l2 ball.

    `ahead` is FedFW minus FedDR, `feddr_ahead` FedDR minus the better of FedFW and FedFW+. Both
    also of null data.
    """
    for protocol in COMPARED:
        yield from means_over_columns(numbers, protocol, "feddr", {})
        yield from means_over_columns(numbers, protocol, "nothing", {"minus": "nothing"})


def means_over_columns(
    numbers: Quantities, protocol: str, minus: str, also: Labels
) -> Iterator[Row]:
    """The same by one protocol, of differences from FedDR or from `nothing`."""
    shared: Labels = {"norm": "l2", "protocol": protocol, **also}
    gap_from = partial(gap_of, protocol, norm="l2", minus=minus)
    for name, columns in (("labels", NON_IID), ("synthetic", SYNTHETIC)):
        gaps = [gap_from(column) for column in columns]
        if all(gap in numbers for gap in gaps):
            by_seed = np.mean([numbers[gap].per_seed for gap in gaps], axis=0)
            yield row("ahead", mean(by_seed, "points"), **shared, columns=name)
    leads = []
    for column in BEST_FEDDR:
        gaps = [gap_from(column, method=method) for method in ("fedfw", "plus")]
        if all(gap in numbers for gap in gaps):
            leads.append(-np.max([numbers[gap].per_seed for gap in gaps], axis=0))
    if len(leads) == len(BEST_FEDDR):
        number = mean(np.mean(leads, axis=0), "points")
        yield row("feddr_ahead", number, **shared, columns="iid")


def rounds_of(column: str, norm: str, minus: str = "fedfw") -> Query:
    """The rounds of FedFW+ minus those of FedFW in a cell, or null data."""
    return Query.of("rounds", **labels_of_cell(column, norm), method="plus", minus=minus)


def faster(numbers: Quantities) -> Iterator[Row]:
    """C10: rounds of FedFW+ minus those of FedFW over all cells, and in which share it is fewer.

    The share is of the cells that differ, with its exact binomial interval: where neither method
    gets to a level there is nothing to compare. The same of null data.
    """
    for minus in ("fedfw", "nothing"):
        queries = [rounds_of(*cell, minus) for cell in CELLS]
        rounds = [numbers[query] for query in queries if query in numbers]
        if not rounds:
            continue
        labels: Labels = {"method": "plus", "minus": minus, "columns": "all"}
        by_seed = np.mean([number.per_seed for number in rounds], axis=0)
        yield row("rounds", mean(by_seed, "rounds"), **labels)
        fewer = [number.value < 0 for number in rounds if number.value != 0]
        yield row("ties", exact(len(rounds) - len(fewer), "cells"), **labels)
        if fewer:
            yield row("fewer", share(fewer, "%"), **labels)


def meet(ours: Number, printed: Printed) -> bool:
    """Whether a printed value with its spread meets our interval; of a single seed its value."""
    low, high = (ours.value, ours.value) if ours.once else (ours.low, ours.high)
    return bool(low - printed.points <= printed.value <= high + printed.points)


def counts(numbers: Quantities, cells: Iterable[Cell], methods: Mapping[str, str]) -> Iterator[Row]:
    """In how many cells Frank-Wolfe is ahead of FedDR, and how far values lie from printed ones.

    Only cells count that have all methods, each column by the protocol's reading.
    """
    for protocol, measure in COMPARED.items():
        ours = []
        printed = []
        for column, norm in cells:
            labels: Labels = {**labels_of_cell(column, norm), "protocol": protocol}
            queries = [Query.of(measure, **labels, method=method) for method in methods]
            other_reading = protocol == "text" and COLUMNS[column].split == "classes"
            if not other_reading and all(query in numbers for query in queries):
                ours.append([numbers[query] for query in queries])
                printed.append([PRINTED_AT[column, norm, method] for method in methods])
        if not ours:
            continue
        of_all: Labels = {"protocol": protocol, "columns": "all"}
        yield row("cells", exact(len(ours), "cells"), **of_all)
        ahead = sum(frank_wolfe.value > feddr.value for feddr, frank_wolfe, *_ in ours)
        yield row("ahead", exact(ahead, "cells"), **of_all)
        ahead = sum(frank_wolfe.value > feddr.value for feddr, frank_wolfe, *_ in printed)
        yield row("printed_ahead", exact(ahead, "cells"), **of_all)
        pairs = [*zip(chain(*ours), chain(*printed), strict=True)]
        distance = np.mean([abs(x.value - y.value) for x, y in pairs])
        yield row("distance", exact(float(distance), "points"), **of_all)
        yield row("values", exact(len(pairs), "values"), **of_all)
        yield row("meets", exact(sum(meet(x, y) for x, y in pairs), "values"), **of_all)
