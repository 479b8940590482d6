"""The quantities of the study of FedFW's Tables 1 and 2, and what that of Table 3 shares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, product

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
from papers.kit.crossings import rounds_to
from papers.kit.numbers import Number, exact, first_minus_last, mean, share
from papers.kit.quantities import (
    Quantities,
    Query,
    Row,
    chosen,
    labels_of,
    name_of,
    null_rows,
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


def shown_run(
    traces: Traces,
    cell: Cell,
    protocol: str,
    method: str,
) -> Trace | None:
    """The run of a method that a table shows; None where none is there.

    By the protocol of the text it is the one with the lowest mean training loss at the end;
    accuracy plays no part.
    """
    if protocol == "code":
        return traces.get(name_of(run_as_traced(*cell, method), DEFAULTS))
    labels = labels_of_cell(*cell)
    grid = chosen(
        traces,
        SETTINGS,
        DEFAULTS,
        **labels,
        protocol=protocol,
        method=method,
    )
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
            of_method = {**labels, "method": method}
            values[method] = measures(trace)
            for measure, by_seed in values[method].items():
                yield row(measure, mean(by_seed, "%"), **of_method)
            if protocol == "text":
                yield from settings_of(trace, of_method)
        yield from from_feddr(values, labels)


def from_feddr(values: Mapping[str, Mapping[str, Array]], labels: Labels) -> Iterator[Row]:
    """The measures of all other methods minus FedDR's, and null data; none without FedDR."""
    rivals = dict(values)
    of_feddr = rivals.pop("feddr", None)
    if of_feddr is None:
        return
    for method, measured in rivals.items():
        of_method = {**labels, "method": method}
        for measure, by_seed in measured.items():
            feddr = of_feddr[measure]
            gap = mean(by_seed - feddr, "points")
            yield row(measure, gap, **of_method, minus="feddr")
            yield from null_rows(measure, feddr, "points", **of_method)


def settings_of(trace: Trace, labels: Labels) -> Iterator[Row]:
    """The settings that were chosen from the grid."""
    of_run = labels_of(trace)
    for setting in SETTINGS:
        if setting in of_run:
            yield row(setting, exact(float(of_run[setting])), **labels)


def rounds_apart(traces: Traces, cell: Cell) -> Iterator[Row]:
    """FedFW+ minus FedFW: rounds to a share of the start's loss, mean over levels and lambda_0.

    Null data, minus `nothing`, are FedFW on its first seeds and on its last.
    """
    labels: Labels = {**labels_of_cell(*cell), "protocol": "text"}
    plain = sweep(
        traces,
        DEFAULTS,
        "lam",
        **labels,
        method="fedfw",
    )
    augmented = sweep(
        traces,
        DEFAULTS,
        "lam",
        **labels,
        method="plus",
    )
    differences = []
    nothing = []
    both = [lam for lam in plain if lam in augmented]
    for lam, level in product(both, LEVELS):
        rounds = rounds_to_share(plain[lam], level)
        augmented_rounds = rounds_to_share(augmented[lam], level)
        differences.append(augmented_rounds - rounds)
        null = first_minus_last(rounds)
        if len(null):
            nothing.append(null)
    for minus, values in {"fedfw": differences, "nothing": nothing}.items():
        if values:
            by_seed = np.mean(values, axis=0)
            number = mean(by_seed, "rounds")
            yield row(
                "rounds",
                number,
                **labels,
                method="plus",
                minus=minus,
            )


def rounds_to_share(trace: Trace, level: float) -> Array:
    """Per seed the round in which the training loss first falls to a share of its start."""
    loss = trace.metrics["loss"]
    return rounds_to(trace.rounds, loss, level * loss[:, 0])


def gap_of(
    protocol: str,
    column: str,
    norm: str,
    method: str = "fedfw",
    minus: str = "feddr",
) -> Query:
    """A method minus FedDR by a protocol, which may read the column in its own way."""
    if protocol == "code":
        column = as_coded(column)
    cell = labels_of_cell(column, norm)
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
    numbers: Quantities,
    protocol: str,
    minus: str,
    also: Labels,
) -> Iterator[Row]:
    """The same by one protocol, of differences from FedDR or from `nothing`."""
    shared: Labels = {"norm": "l2", "protocol": protocol, **also}
    gap_from = partial(gap_of, protocol, norm="l2", minus=minus)
    for name, columns in {"labels": NON_IID, "synthetic": SYNTHETIC}.items():
        gaps = per_seed(numbers, map(gap_from, columns))
        if gaps is not None:
            ahead = np.mean(gaps, axis=0)
            yield row("ahead", mean(ahead, "points"), **shared, columns=name)
    leads = []
    for column in BEST_FEDDR:
        of_fedfw = gap_from(column, method="fedfw")
        of_plus = gap_from(column, method="plus")
        gaps = per_seed(numbers, [of_fedfw, of_plus])
        if gaps is None:
            return
        leads.append(-np.max(gaps, axis=0))
    feddr_ahead = np.mean(leads, axis=0)
    yield row("feddr_ahead", mean(feddr_ahead, "points"), **shared, columns="iid")


def per_seed(numbers: Quantities, queries: Iterable[Query]) -> Array | None:
    """The values by seed of some quantities, a row each; None where one is missing."""
    values = []
    for query in queries:
        if query not in numbers:
            return None
        values.append(numbers[query].per_seed)
    return np.array(values)


def rounds_of(column: str, norm: str, minus: str) -> Query:
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
        of_seeds = [number.per_seed for number in rounds]
        by_seed = np.mean(of_seeds, axis=0)
        values = np.array([number.value for number in rounds])
        differing = values[values != 0]
        ties = len(values) - len(differing)
        yield row("rounds", mean(by_seed, "rounds"), **labels)
        yield row("ties", exact(ties, "cells"), **labels)
        if len(differing):
            yield row("fewer", share(differing < 0, "%"), **labels)


def meet(ours: Number, printed: Printed) -> bool:
    """Whether a printed value with its spread meets our interval; of a single seed its value."""
    low = ours.value if ours.once else ours.low
    high = ours.value if ours.once else ours.high
    return bool(low - printed.points <= printed.value <= high + printed.points)


def counts(
    numbers: Quantities,
    cells: Iterable[Cell],
    methods: Mapping[str, str],
) -> Iterator[Row]:
    """In how many cells Frank-Wolfe is ahead of FedDR, and how far values lie from printed ones.

    Only cells count that have all methods, each column by the protocol's reading.
    """
    for protocol in COMPARED:
        complete = [cell for cell in cells if has_all(numbers, protocol, cell, methods)]
        if not complete:
            continue
        ours = []
        printed = []
        for cell in complete:
            queries = queries_of(protocol, cell, methods)
            ours.append([numbers[query] for query in queries])
            printed.append([PRINTED_AT[*cell, method] for method in methods])
        pairs = [*zip(chain(*ours), chain(*printed), strict=True)]
        distances = [abs(number.value - value.value) for number, value in pairs]
        counted = {
            "cells": exact(len(ours), "cells"),
            "ahead": exact(cells_ahead(ours), "cells"),
            "printed_ahead": exact(cells_ahead(printed), "cells"),
            "distance": exact(float(np.mean(distances)), "points"),
            "values": exact(len(pairs), "values"),
            "meets": exact(sum(meet(*pair) for pair in pairs), "values"),
        }
        for name, number in counted.items():
            yield row(name, number, protocol=protocol, columns="all")


def queries_of(protocol: str, cell: Cell, methods: Iterable[str]) -> list[Query]:
    """The accuracies of all methods in a cell, by the measure of a protocol."""
    labels: Labels = {**labels_of_cell(*cell), "protocol": protocol}
    return [Query.of(COMPARED[protocol], **labels, method=method) for method in methods]


def has_all(
    numbers: Quantities,
    protocol: str,
    cell: Cell,
    methods: Iterable[str],
) -> bool:
    """Whether a cell has all methods by a protocol, its column read as that protocol reads it."""
    column, _ = cell
    if protocol == "text" and COLUMNS[column].split == "classes":
        return False
    return all(query in numbers for query in queries_of(protocol, cell, methods))


def cells_ahead(cells: Iterable[Sequence[Number | Printed]]) -> int:
    """In how many cells Frank-Wolfe, the second method, is ahead of FedDR, the first."""
    return sum(frank_wolfe.value > feddr.value for feddr, frank_wolfe, *_ in cells)
