"""The measures of study `fw_common`, and its null data."""

from __future__ import annotations

from papers.fedfw.authors.numbers import counted, pairs
from papers.fedfw.tables.numbers import MEASURES, difference
from papers.kit.numbers import Number, mean, measured
from papers.kit.study import Params, Traces


def derive(traces: Traces, p: Params) -> dict[str, Number]:  # noqa: ARG001 - as every study
    """Cells, FedFW minus FedDR by split, how far printed values are, and differences of nothing.

    `PAIR.null` is the best of the rounds of FedDR on half of the splits minus that on the others.
    """
    found = measured(traces, MEASURES)
    best, _ = MEASURES["best"]
    for pair, (one, other) in pairs(traces).items():
        for key in MEASURES:
            found[f"{pair}.{key}"] = difference(traces[one], traces[other], key)
        values = best(traces[other])
        half = len(values) // 2
        found[f"{pair}.null"] = mean(values[:half] - values[half : 2 * half], "points")
    return found | counted(found)
