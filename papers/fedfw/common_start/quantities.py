"""The quantities of study `fw_common`, and its null data."""

from __future__ import annotations

from collections.abc import Iterator

from papers.fedfw.authors.quantities import best_round, difference, tables
from papers.fedfw.authors.runs import DEFAULTS, pairs
from papers.kit.numbers import mean
from papers.kit.quantities import Quantities, Row, name_of, row
from papers.kit.study import Params, Traces


def derive(traces: Traces, _: Params) -> Quantities:
    """Cells, FedFW minus FedDR by split, how far printed values are, and differences of nothing."""
    return Quantities.of([*tables(traces), nothing(traces)], DEFAULTS)


def nothing(traces: Traces) -> Iterator[Row]:
    """The best of the rounds of FedDR on half of the splits minus that on the others."""
    for run, rival in pairs():
        name = name_of(rival, DEFAULTS)
        if name in traces:
            values = best_round(traces[name])
            half = len(values) // 2
            apart = mean(values[:half] - values[half : 2 * half], "points")
            yield row("null", apart, **difference(run))
