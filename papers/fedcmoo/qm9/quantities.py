"""The quantities of the QM9 study: losses at equal rounds and equal upload, and uploads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.fedcmoo.common import METHODS
from papers.fedcmoo.qm9.runs import DEFAULTS, LOSSES
from papers.kit import quantities as kit
from papers.kit.numbers import Number, exact, first_minus_last, mean
from papers.kit.quantities import Quantities, Row, null_rows, row, run_of
from papers.kit.study import Params, Traces

SLACK = 0.01  # by how much more, relative, an upload may be and still count as equal
FLOAT_BITS = 32


def derive(traces: Traces, p: Params) -> Quantities:
    """The table of quantities: of every run, comparisons on QM9, and counted uploads."""
    runs = {method: run_of(traces, DEFAULTS, method=method) for method in METHODS}
    rounds = common_round(runs)
    upload = common_upload(runs)
    same_rounds = dict.fromkeys(METHODS, rounds)
    same_upload = {method: round_within(run, upload) for method, run in runs.items()}
    fedcmoo = runs["fedcmoo"]
    fsmgda = runs["fsmgda"]
    batch = fedcmoo.config["algorithm"]["batch_size"]
    gap = mean(largest_gap(fedcmoo, fsmgda))
    rows = [
        *kit.of_runs(traces, measures),
        row("batch", exact(batch, "molecules")),
        row("rounds", exact(rounds, "rounds"), at="rounds"),
        row("upload", exact(upload, "d"), at="upload"),
        row("largest_gap", gap, method="fedcmoo", minus="fsmgda"),
        row("ratio", ratio(fedcmoo, fsmgda)),
        *null_gap(fedcmoo),
        *compared(runs, same_rounds, "rounds"),
        *compared(runs, same_upload, "upload"),
        *counted(traces, p),
    ]
    return Quantities.of([rows], DEFAULTS)


def measures(trace: Trace) -> dict[str, Number]:
    """The upload of a run; on QM9 also its rounds and the loss that it starts with."""
    numbers = {"upload": exact(upload_of(trace), "d")}
    labels = kit.labels_of(trace)
    if "objectives" in labels:
        return numbers
    loss = trace.metrics["loss"]
    numbers["rounds"] = exact(trace.rounds[-1], "rounds")
    numbers["start"] = mean(loss[:, 0])
    return numbers


def upload_of(trace: Trace) -> float:
    """What a client uploads in a round, in model sizes d of 32-bit numbers."""
    config = trace.config
    bits = config["bits"]["bits_up"]
    participants = config["algorithm"]["participants"]
    dim = config["problem"]["dim"]
    floats = bits / (FLOAT_BITS * participants)
    return float(floats / dim)


def ratio(fedcmoo: Trace, fsmgda: Trace) -> Number:
    """The upload of a client of FSMGDA, divided by that of FedCMOO."""
    full = upload_of(fsmgda)
    compressed = upload_of(fedcmoo)
    return exact(full / compressed)


def uploaded(trace: Trace) -> Array:
    """What a client of every round has uploaded at each evaluation, in d."""
    return np.asarray(trace.rounds * upload_of(trace), float)


def round_within(trace: Trace, upload: float) -> int:
    """The last evaluated round that was reached with an upload (in d)."""
    limit = upload * (1 + SLACK)
    reached = uploaded(trace) <= limit
    return int(trace.rounds[reached][-1])


def common_round(runs: Traces) -> int:
    """The last round after which all runs were evaluated."""
    rounds = [trace.rounds for trace in runs.values()]
    common = reduce(np.intersect1d, rounds)
    return int(common.max())


def common_upload(runs: Traces) -> float:
    """The largest upload of a client of every round that all runs have reached, in d."""
    totals = [uploaded(trace)[-1] for trace in runs.values()]
    return float(min(totals))


def largest_gap(ours: Trace, theirs: Trace) -> Array:
    """Per seed the largest difference of the mean losses after any round that both have."""
    shared = np.intersect1d(ours.rounds, theirs.rounds, return_indices=True)
    rounds, our_columns, their_columns = shared
    our_losses = ours.metrics["loss"][:, our_columns]
    their_losses = theirs.metrics["loss"][:, their_columns]
    gaps = our_losses - their_losses
    return np.asarray(gaps[:, rounds > 0].max(1))


def null_gap(trace: Trace) -> Iterator[Row]:
    """The same of a run on its first seeds and on its last: none of fewer than three seeds."""
    apart = first_minus_last(trace.metrics["loss"])
    if len(apart):
        later = trace.rounds > 0
        largest = apart[:, later].max(1)
        yield row("largest_gap", mean(largest), method="fedcmoo", minus="nothing")


def losses_after(trace: Trace, number: int) -> dict[str, Array]:
    """The losses of a run after a round, each by seed."""
    column = trace.rounds.tolist().index(number)
    return {loss: trace.metrics[loss][:, column] for loss in LOSSES}


def compared(runs: Traces, rounds: dict[str, int], at: str) -> Iterator[Row]:
    """Losses of every method after its rounds, and those minus FSMGDA's.

    Also each method's losses on two halves of its seeds.
    """
    losses = {method: losses_after(runs[method], rounds[method]) for method in METHODS}
    for method in METHODS:
        yield row("loss", mean(losses[method]["loss"]), method=method, at=at)
    for method in ("fedcmoo", "pref"):
        labels = {"method": method, "at": at}
        for loss, values in losses[method].items():
            gap = values - losses["fsmgda"][loss]
            yield row(loss, mean(gap), **labels, minus="fsmgda")
        for loss, values in losses[method].items():
            yield from null_rows(loss, values, **labels)


def counted(traces: Traces, p: Params) -> Iterator[Row]:
    """Uploads on quadratics without the small matrices, and their ratio."""
    dim = p["count_dim"]
    for count in p["objectives"]:
        runs = {}
        for method in METHODS:
            runs[method] = run_of(traces, DEFAULTS, method=method, objectives=count)
        matrices = 2 * count**2
        small = {"fedcmoo": matrices, "pref": matrices + count}
        for method, entries in small.items():
            sent = round(upload_of(runs[method]) * dim)
            long = (sent - entries) / dim
            yield row("upload_long", exact(long, "d"), method=method, objectives=count)
        yield row("ratio", ratio(runs["fedcmoo"], runs["fsmgda"]), objectives=count)
