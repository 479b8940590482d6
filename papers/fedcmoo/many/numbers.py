"""The derived numbers of the study of many objectives."""

from __future__ import annotations

import numpy as np

from fedlib.core import Trace
from fedlib.core.trace import Array
from papers.kit.numbers import Number, exact, mean
from papers.kit.study import Params, Traces

#: Sets of tasks -> M: two halves and five groups of the attributes, and each by itself.
SETS = {"halves": 2, "groups": 5, "attributes": 40}
LAST = 0.2  # share of the evaluations, the final model's among them, that a final value averages


def final(trace: Trace, metric: str) -> Array:
    x = trace.metrics[metric]
    return np.asarray(x[:, -max(1, round(LAST * x.shape[1])) :].mean(1))


def megabytes(trace: Trace) -> float:
    """What a participant uploads in a round, in units of 10^6 bytes."""
    participants = int(trace.config["algorithm"]["participants"])
    return float(trace.config["bits"]["bits_up"]) / participants / 8e6


def derive(traces: Traces, p: Params) -> dict[str, Number]:
    numbers: dict[str, Number] = {}
    for name, trace in traces.items():
        numbers[f"{name}.accuracy"] = mean(100 * final(trace, "accuracy"), "%")
        numbers[f"{name}.upload"] = exact(megabytes(trace), "MB")
    leads = {}
    for tasks in SETS:
        ours, theirs = traces[f"{tasks}_fedcmoo"], traces[f"{tasks}_fsmgda"]
        leads[tasks] = 100 * (final(ours, "accuracy") - final(theirs, "accuracy"))
        numbers[f"{tasks}.gap"] = mean(leads[tasks], "points")
        numbers[f"{tasks}.gap_upload"] = mean(gap_at_equal_upload(ours, theirs), "points")
        numbers[f"{tasks}.upload_ratio"] = exact(megabytes(theirs) / megabytes(ours))
    for tasks in ("groups", "attributes"):
        numbers[f"{tasks}_vs_halves.gap"] = mean(leads[tasks] - leads["halves"], "points")
    majority = traces["halves_fedcmoo"].config["problem"]["majority"]
    numbers["majority"] = exact(100 * majority, "%")
    numbers["rounds"] = exact(p["rounds"], "rounds")
    return numbers


def gap_at_equal_upload(ours: Trace, theirs: Trace) -> Array:
    """Per seed FedCMOO minus FSMGDA in accuracy, in points, after equal uploads.

    FSMGDA stops where it has sent what all rounds of FedCMOO send, or at its last round if that
    comes first; between two evaluations its curve is taken as straight.
    """
    total = float(ours.rounds[-1])
    stop = min(total, total * megabytes(ours) / megabytes(theirs))
    there = [np.interp(stop, theirs.rounds, x) for x in theirs.metrics["accuracy"]]
    return np.asarray(100 * (ours.metrics["accuracy"][:, -1] - there))
