"""The quantities of the study of Gram estimates and of local progress."""

from __future__ import annotations

from collections.abc import Iterator

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedcmoo.probe.methods import SKETCHES, TRAINED
from papers.fedcmoo.probe.runs import CURVES, DEFAULTS, GAINS
from papers.kit import quantities as kit
from papers.kit.numbers import Number, first_minus_last, mean
from papers.kit.quantities import Labels, Quantities, Row, row
from papers.kit.study import Params, Traces

EXCHANGES = {"two_way": "two-way", "one_way": "one-way"}
#: How Jacobians are compressed, in words.
COMPRESSIONS = {
    "block": "low rank, blocks",
    "row": "low rank, rows",
    "column": "low rank, columns",
    "largest16": "largest, 16 bits",
    "largest": "largest, 32 bits",
    "masked": "random, scaled",
    "unscaled": "random, unscaled",
    "own_grams_scaled": "clients' own, scaled",
}
OWN_GRAMS = ("own_grams", "own_grams_scaled")  # estimates without a sketch


def derive(traces: Traces, p: Params) -> Quantities:
    """The table of quantities: errors of Gram estimates, and gains of local training."""
    del p
    rows: list[Row] = []
    for trace in traces.values():
        is_gram = kit.labels_of(trace)["probe"] == "gram"
        rows += errors(trace) if is_gram else gains(trace)
    return Quantities.of([rows], DEFAULTS)


def errors(trace: Trace) -> Iterator[Row]:
    """The mean nRMSE of each estimate over the rounds, in %; `scale_free` of its best multiple."""
    labels = kit.labels_of(trace)
    for exchange in EXCHANGES:
        for sketch in SKETCHES:
            estimate: Labels = {**labels, "exchange": exchange, "sketch": sketch}
            name = f"{exchange}_{sketch}"
            yield row("error", error(trace, f"nrmse_{name}"), **estimate)
            if f"scale_free_{name}" in trace.info:
                yield row("scale_free", error(trace, f"scale_free_{name}"), **estimate)
    for sketch in OWN_GRAMS:
        yield row("error", error(trace, f"nrmse_{sketch}"), **labels, sketch=sketch)


def error(trace: Trace, name: str) -> Number:
    """The mean over the rounds of an error that the rounds report, in %."""
    return mean(100 * trace.info[name].mean(1), "%")


def gains(trace: Trace) -> Iterator[Row]:
    """Mean gains in loss, and in accuracy in percentage points.

    Also those of FedCMOO minus those of a client's share of FSMGDA's step, and FedCMOO's on two
    halves of its seeds.
    """
    labels = kit.labels_of(trace)
    for trained in TRAINED:
        for gain in GAINS:
            number = over_rounds(gain, trace.info[f"{trained}_{gain}"])
            yield row(gain, number, **labels, trained=trained)
    for curve in CURVES:
        ours = trace.info[f"method_{curve}"]
        lead = ours - trace.info[f"share_{curve}"]
        yield row(
            curve,
            over_rounds(curve, lead),
            **labels,
            trained="method",
            minus="share",
        )
        nothing = first_minus_last(ours)
        if len(nothing):
            null = over_rounds(curve, nothing)
            yield row(
                curve,
                null,
                **labels,
                trained="method",
                minus="nothing",
            )


def over_rounds(gain: str, values: Array) -> Number:
    """The mean of a gain over the rounds, `[S, T]` given."""
    if gain.startswith("accuracy"):
        return mean(100 * values.mean(1), "points")
    return mean(values.mean(1))
